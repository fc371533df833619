package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
)

// What one run showed is not held against the next one.
func TestAResetSetKnowsNothing(t *testing.T) {
	s := check.NewSet()
	facts := &check.Facts{Lives: []check.Life{}, States: []check.NodeState{}, Operations: []check.Operation{}, Wire: &check.Wire{}, Settle: &check.Settle{}}
	fresh := s.Finish(facts)
	events := []history.Event{
		{Kind: history.RequestSent, Node: "m1", Search: "lost", Detail: "key"},
		{Kind: string(probe.AcquireBegin), Node: "m1", Search: "lost", Group: "g", Bucket: 1, Detail: "username"},
		{Kind: string(probe.Acquired), Node: "m1", Search: "lost", Group: "g", Bucket: 1, Held: 2, Limit: 1},
		{Kind: string(probe.Rejected), Node: "m1", Search: "other", Group: "g", Bucket: 2},
		{Kind: string(probe.Counted), Node: "m1", Search: "other", Group: "g", Detail: "DEFAULT_WORKLOAD_GROUP"},
		{Kind: string(probe.FannedOut), Node: "m1", Search: "other", Group: "g"},
		{Kind: string(probe.ApplierPublished), Node: "m1", Version: 7},
		{Kind: string(probe.ApplierPublished), Node: "m1", Version: 5},
	}
	s.Reset()
	for _, e := range events {
		s.Observe(e)
	}
	broken := s.Finish(facts)
	count := 0
	for _, r := range broken {
		if r.Verdict == check.Broken {
			count++
		}
	}
	require.GreaterOrEqual(t, count, 4, "%v", broken)
	s.Reset()
	require.Equal(t, fresh, s.Finish(facts))
	s.Reset()
	for _, e := range events {
		s.Observe(e)
	}
	require.Equal(t, broken, s.Finish(facts))
}
