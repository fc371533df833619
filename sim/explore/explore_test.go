package explore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lagFile = "../../scenarios/explore/the-registration-lag.yaml"

// read returns a file with values set in it.
func read(t testing.TB, path string, set ...string) *scenario.File {
	t.Helper()
	f, err := scenario.Read(path, set...)
	require.NoError(t, err)
	return f
}

func run(t testing.TB, f *scenario.File, o explore.Options) *explore.Result {
	t.Helper()
	r, err := explore.Run(f, o)
	require.NoError(t, err)
	return r
}

// outcomes lists the observed values of all outcomes, sorted.
func outcomes(r *explore.Result) []string {
	var all []string
	for _, o := range r.Outcomes {
		var values []string
		for _, v := range o.Observed {
			values = append(values, fmt.Sprint(v.Value))
		}
		all = append(all, strings.Join(values, ","))
	}
	slices.Sort(all)
	return all
}

// complaints lists what did not hold.
func complaints(r *explore.Result) []string {
	all := []string{}
	for _, c := range r.Checks {
		if c.Verdict != check.Held {
			all = append(all, fmt.Sprintf("%s: %s: %s", c.Name, c.Verdict, c.Message))
		}
	}
	return all
}

func TestTheLagRaceHasTheKnownOutcomes(t *testing.T) {
	r := run(t, read(t, lagFile), explore.Options{})
	require.Empty(t, complaints(r))
	require.True(t, r.Complete)
	require.Equal(t, check.Held, r.Verdict)
	require.Equal(t, []string{"200,0,0", "200,1,0", "429,0,0", "429,1,0"}, outcomes(r))
}

func TestThePlantedFlawOfTheLagRaceIsFound(t *testing.T) {
	f := read(t, lagFile, "switches.missing_counters=default_group")
	r := run(t, f, explore.Options{})
	require.Equal(t, check.Broken, r.Verdict)
	require.True(t, r.Complete)
	require.Equal(t, []string{"200,0,0", "200,0,1", "200,1,0", "429,0,1", "429,1,0"}, outcomes(r))
	require.Len(t, complaints(r), 2, "the promise and the forbidden outcome")

	// Its schedule shows it again, alone.
	i := slices.IndexFunc(r.Checks, func(c explore.Check) bool { return c.Name == "forbid default > 0" })
	s, err := explore.ParseSchedule(r.Checks[i].Schedule)
	require.NoError(t, err)
	again := run(t, f, explore.Options{Schedule: s})
	require.Equal(t, 1, again.Schedules)
	require.False(t, again.Complete)
	require.Len(t, again.Outcomes, 1)
	require.True(t, again.Outcomes[0].Forbidden)
	require.Equal(t, r.Checks[i].Schedule, again.Outcomes[0].Schedule)
}

// The strategies that draw find the flaw too, and draw the same each time.
func TestDrawnSchedulesFindTheFlaw(t *testing.T) {
	f := read(t, lagFile, "switches.missing_counters=default_group")
	for _, strategy := range []string{explore.PCT, explore.Random} {
		o := explore.Options{Strategy: strategy, Schedules: 1000}
		r := run(t, f, o)
		require.Equal(t, check.Broken, r.Verdict, strategy)
		require.Equal(t, 1000, r.Schedules)
		require.False(t, r.Complete)
		again := run(t, f, o)
		require.Equal(t, r.Checks, again.Checks)
		for i := range r.Outcomes {
			require.Equal(t, r.Outcomes[i].Schedules, again.Outcomes[i].Schedules)
			if r.Outcomes[i].Forbidden {
				t.Logf("%s: %s by %d of 1000", strategy, r.Outcomes[i].Schedule, r.Outcomes[i].Schedules)
			}
		}
	}
}

// What does not fit is refused before anything runs.
func TestMisfitsAreRefused(t *testing.T) {
	const frame = "version: 1\nname: x\nexplore: {node: m1, observe: {v: '1'}, actors: {%s}}"
	for _, row := range []struct {
		actors string
		o      explore.Options
		want   string
	}{
		{"a: [{search: {}}]", explore.Options{Schedule: explore.Schedule{"b"}}, `lane "b", which is unknown: one of [a applier]`},
		{"a: [{search: {}}]", explore.Options{Schedule: explore.Schedule{"applier"}}, "lane applier cannot take turn 1"},
	} {
		f, err := scenario.Parse("x.yaml", fmt.Appendf(nil, frame, row.actors))
		require.NoError(t, err)
		_, err = explore.Run(f, row.o)
		require.ErrorIs(t, err, explore.ErrUsage)
		require.ErrorContains(t, err, row.want)
	}
	bad := -1
	_, err := explore.Run(read(t, lagFile), explore.Options{Strategy: "guess", Schedules: -1, Preemptions: &bad, Turns: -1})
	for _, fault := range []string{`strategy "guess"`, "-1 schedules", "-1 preemptions", "-1 turns"} {
		require.ErrorContains(t, err, fault)
	}
}

// An order that is longer than the bound is not called covered.
func TestABoundOnTurnsLeavesTheVerdictOpen(t *testing.T) {
	r := run(t, read(t, lagFile), explore.Options{Turns: 5})
	require.Equal(t, check.Undecided, r.Verdict)
	require.False(t, r.Complete)
	require.Contains(t, strings.Join(complaints(r), "\n"), "an order has more turns than the bound of 5; schedule: update")
}

// flaws are the planted flaws by the file that must find each.
var flaws = map[string][]string{
	"the-registration-lag":                   {"switches.missing_counters=default_group"},
	"a-count-during-a-change-of-the-map":     {"switches.counters=plain", "switches.count_failure=swallows_rejection"},
	"exact-permits-refuse-nobody-needlessly": {"switches.acquire=rollback"},
	"names-with-a-comma-stay-apart":          {"switches.principal_join=comma"},
	"a-principal-stays-in-its-context":       {"switches.principal_carrier=header"},
	"stats-are-read-while-counters-appear":   {"switches.counters=plain"},
}

// Each file of the folder holds, completely: either all orders keep the
// promises, or the file plants a flaw and says what it breaks.
func TestTheFilesHoldInEveryOrder(t *testing.T) {
	paths, err := filepath.Glob("../../scenarios/explore/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 15)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			r := run(t, read(t, path), explore.Options{})
			require.Empty(t, complaints(r))
			require.Equal(t, check.Held, r.Verdict)
			require.True(t, r.Complete)
			if flaw := flaws[name]; flaw != nil {
				planted := run(t, read(t, path, flaw...), explore.Options{})
				require.Equal(t, check.Broken, planted.Verdict)
			}
		})
	}
	for name := range flaws {
		require.Contains(t, paths, "../../scenarios/explore/"+name+".yaml")
	}
}
