package node_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// BenchmarkIdleManagers tells how much faster than the wall clock three managers
// with gossip, and nobody else, pass an hour, their start and end included.
// Budget: 4,000 times.
func BenchmarkIdleManagers(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as commands do
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for b.Loop() {
		require.NoError(b, bubble.Run(func() {
			runLab(inside{b}, netsim.Config{Seed: 1}, "m1 m2 m3", nil, func(*lab) { time.Sleep(time.Hour) })
		}))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(time.Hour.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "times")
}

// inside is a benchmark in a bubble, which the benchmark's own context is not of.
type inside struct{ testing.TB }

func (inside) Context() context.Context { return context.Background() }
