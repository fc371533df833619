package shrink

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/explore"
)

// A simpler schedule may have fewer turns: two messages travel as one in it.
func TestASimplerScheduleMayBeShorter(t *testing.T) {
	best := &repetition{Failure: Failure{Schedule: explore.Schedule{"a", "b", "c", "b"}}, preemptions: 3}
	shorter := &repetition{Failure: Failure{Schedule: explore.Schedule{"a", "b"}}, preemptions: 1}
	found := simplest(t.Context(), best, func(s explore.Schedule) (*repetition, bool) {
		return shorter, s.String() == "a b×2 c"
	})
	require.Equal(t, shorter, found)
}
