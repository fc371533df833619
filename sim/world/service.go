package world

import (
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// serviceOf returns the service time that a search brings along, as a
// coordinator's request has it: a fixed one, or a distribution that each of its
// shards draws from. nil means the index's own.
func serviceOf(s *scenario.ServiceTime) (fixed time.Duration, drawn cluster.ServiceTime) {
	if s == nil {
		return -1, cluster.ServiceTime{}
	}
	t := s.Cluster()
	if t.Distribution == cluster.Constant {
		return t.Mean, cluster.ServiceTime{}
	}
	return -1, t
}
