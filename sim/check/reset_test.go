package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// What one run showed is not held against the next one.
func TestAResetSetKnowsNothing(t *testing.T) {
	s := check.NewSet(scenario.OneOutcome)
	verdict := func() check.Verdict { return s.Finish(&check.Facts{Lives: []check.Life{}})[0].Verdict }
	s.Observe(history.Event{Kind: history.RequestSent, Node: "m1", Search: "lost"})
	require.Equal(t, check.Broken, verdict())
	s.Reset()
	require.Equal(t, check.Held, verdict())
	s.Observe(history.Event{Kind: history.RequestSent, Node: "m1", Search: "lost"})
	require.Equal(t, check.Broken, verdict())
}
