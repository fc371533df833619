package explore_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
)

// broken says whether something of a result broke.
func broken(r *explore.Result) bool { return r.Verdict == check.Broken }

// Who asks for one thing alone is asked at each new one, and has no more
// executed than that takes.
func TestAnExplorationEndsWhenItHasSeenEnough(t *testing.T) {
	f := read(t, lagFile, "switches.missing_counters=default_group")
	all := run(t, f, explore.Options{})
	for _, strategy := range explore.Strategies() {
		asked := 0
		r := run(t, f, explore.Options{Strategy: strategy, Until: func(r *explore.Result) bool { asked++; return broken(r) }})
		require.Equal(t, check.Broken, r.Verdict, strategy)
		require.False(t, r.Complete)
		require.Positive(t, asked)
		require.LessOrEqual(t, asked, r.Schedules)
		if strategy == explore.DFS {
			require.Less(t, r.Schedules, all.Schedules)
		}
		i := slices.IndexFunc(r.Checks, func(c explore.Check) bool { return c.Verdict == check.Broken })
		s, err := explore.ParseSchedule(r.Checks[i].Schedule)
		require.NoError(t, err)
		require.True(t, broken(run(t, f, explore.Options{Schedule: s})), "what was found repeats")
	}
	r := run(t, f, explore.Options{Until: func(*explore.Result) bool { return false }})
	require.True(t, r.Complete)
	require.Equal(t, all.Schedules, r.Schedules)
	require.Equal(t, outcomes(all), outcomes(r))
}

// A schedule of another file is followed as far as it fits; one that has to fit
// is not.
func TestAScheduleIsFollowedAsFarAsItFits(t *testing.T) {
	f := read(t, lagFile, "switches.missing_counters=default_group")
	s, err := explore.ParseSchedule("stranger update×2 first×20 update applier second×9 applier×9")
	require.NoError(t, err)
	_, err = explore.Run(f, explore.Options{Schedule: s})
	require.ErrorIs(t, err, explore.ErrUsage)
	r := run(t, f, explore.Options{Schedule: s, Loose: true})
	require.Len(t, r.Outcomes, 1)
	taken, err := explore.ParseSchedule(r.Outcomes[0].Schedule)
	require.NoError(t, err)
	require.Equal(t, []string{"update", "first"}, []string(taken[:2]))
	again := run(t, f, explore.Options{Schedule: taken})
	require.Equal(t, r.Outcomes[0].Schedule, again.Outcomes[0].Schedule, "what was taken fits")
	require.Equal(t, outcomes(again), outcomes(r))
}
