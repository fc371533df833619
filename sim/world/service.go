package world

import (
	"math"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// drawService draws the service time that a search brings along.
func drawService(s *scenario.ServiceTime, d *draws) time.Duration {
	t := s.Cluster()
	switch t.Distribution {
	case cluster.Exponential:
		return bounded(-math.Log1p(-d.share()) * float64(t.Mean))
	case cluster.LogNormal:
		const z99 = 2.3263478740408408 // the 99th percentile of the standard normal distribution
		sigma := math.Log(float64(t.P99)/float64(t.P50)) / z99
		normal := math.Sqrt(-2*math.Log1p(-d.share())) * math.Cos(2*math.Pi*d.share())
		return bounded(float64(t.P50) * math.Exp(sigma*normal))
	case cluster.Pareto:
		return bounded(float64(t.Min) / math.Pow(1-d.share(), 1/t.Alpha))
	}
	return t.Mean
}

// bounded keeps a draw within what a node takes.
func bounded(nanoseconds float64) time.Duration {
	return time.Duration(min(nanoseconds, float64(cluster.MaxServiceTime)))
}
