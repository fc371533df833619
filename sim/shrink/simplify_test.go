package shrink

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
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

// A file whose best schedule nobody had the time to look for has the seed of the
// schedule that was drawn.
func TestTheFileHasTheSeedThatFailed(t *testing.T) {
	f, err := scenario.Parse("x", []byte("version: 1\nname: x\nexplore: {node: m1, observe: {v: '1'}, actors: {a: [{search: {}}]}}"))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := &Shrunk{File: f, Failure: Failure{Check: "x", Schedule: explore.Schedule{"a"}, Seed: 7}}
	(&explorer{strategy: explore.Random}).settle(ctx, s)
	require.EqualValues(t, 7, s.File.Seed)
}
