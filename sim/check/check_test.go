package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// A promise without a check, or a check without a promise, would go unnoticed.
func TestEveryPromiseHasItsCheckInTheOrderOfResults(t *testing.T) {
	var names, promises []scenario.Promise
	for _, c := range check.All() {
		names = append(names, c.Name())
	}
	for _, m := range scenario.Promises() {
		promises = append(promises, m.Promise)
	}
	require.Equal(t, promises, names)
}

func TestASelectionKeepsTheOrder(t *testing.T) {
	all := check.All(scenario.Settles, scenario.PermitsReturn)
	require.Len(t, all, 2)
	require.Equal(t, scenario.PermitsReturn, all[0].Name())
	require.Equal(t, scenario.Settles, all[1].Name())
	require.PanicsWithValue(t, `check: "guess" is no promise`, func() { check.All("guess") })
}

// A kind that no node and no world reports would leave a check blind.
func TestChecksAskForKindsThatThereAre(t *testing.T) {
	known := map[string]bool{history.RequestSent: true, history.RequestAnswered: true}
	for _, s := range probe.Steps() {
		known[string(s)] = true
	}
	for _, c := range check.All() {
		for _, kind := range c.Kinds() {
			require.True(t, known[kind], "%s asks for %s", c.Name(), kind)
		}
	}
}

// Promise 1.
func TestWithoutFactsNoCheckThatNeedsThemHolds(t *testing.T) {
	set := check.NewSet()
	var undecided []string
	for _, r := range set.Finish(&check.Facts{}) {
		if r.Verdict == check.Undecided {
			undecided = append(undecided, r.Name)
		} else {
			require.Equal(t, check.Held, r.Verdict, r.Name)
		}
	}
	require.Equal(t, []string{
		"permits_return", "one_outcome", "counters_add_up", "rejection_attribution", "principal_stays", "states_equal",
		"history_linearizable", "settles",
	}, undecided, "the others watch events alone")
}

// One clean run, of one search that is admitted, one that is refused, and a
// change of the state, holds everything.
func TestACleanRunHoldsEverything(t *testing.T) {
	set := check.NewSet()
	for _, e := range events(cleanVersions(), admittedRun("one"), refusedRun("two")) {
		set.Observe(e)
	}
	f := facts(books(1, 1, 0, throttledOf("g", 1), throttledOf(cluster.DefaultGroupID, 0)))
	f.States = []check.NodeState{{Node: "m1", State: cluster.Empty()}, {Node: "m2", State: cluster.Empty()}}
	f.Operations, f.Wire, f.Settle = []check.Operation{}, &check.Wire{}, &check.Settle{Bound: 2, Took: 1}
	for _, r := range set.Finish(f) {
		require.Equal(t, check.Held, r.Verdict, "%s: %s", r.Name, r.Message)
	}
}

// Promise 2.
func TestAMessageIsASentenceThenValuesThenHowManyMore(t *testing.T) {
	r := judge(scenario.PermitsBounded, events(acquired("one", 2, 1), acquired("two", 3, 1)), &check.Facts{})
	require.Equal(t, "a bucket held more permits than the limit that its search read, or none: "+
		"node m1, life 1, group g, bucket 0000000000000007, search one: 2 held, limit 1 in version 0, at 0s; and 2 more", r.Message)
}

func BenchmarkObserveThrottled(b *testing.B) {
	set, run := check.NewSet(), refusedRun("two")
	for b.Loop() {
		for i := range run {
			set.Observe(run[i])
		}
	}
}

func BenchmarkObserveAdmitted(b *testing.B) {
	set, run := check.NewSet(), admittedRun("one")
	for b.Loop() {
		for i := range run {
			set.Observe(run[i])
		}
	}
}
