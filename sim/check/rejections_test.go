package check_test

import (
	"errors"
	"testing"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// swallowedRun is a search that found its bucket full and was run.
func swallowedRun(search string) []history.Event {
	return events(sent(search), read(search), rejected(search), counted(search, ""),
		at(probe.FannedOut, search), at(probe.Merged, search), at(probe.Released, search), answered(search, 200))
}

func TestRejectionKept(t *testing.T) {
	const ran = "a search that found its bucket full was run all the same: "
	const told = "a search that found its bucket full was not answered with 429: "
	judgeAll(t, scenario.RejectionKept, []judgement{
		{name: "refused", events: events(refusedRun("a")), want: check.Held},
		{name: "admitted", events: events(admittedRun("a")), want: check.Held},
		{name: "run", events: swallowedRun("a"), want: check.Broken, says: ran + "node m1, life 1, group g, search a reached coordinator.fanned_out"},
		{name: "run although there was nobody to ask", events: events(rejected("a"), at(probe.Merged, "a")), want: check.Broken, says: ran},
		{name: "answered as if it had run", events: events(rejected("a"), answered("a", 200)), want: check.Broken, says: told},
		{name: "answered as if it had failed", events: events(rejected("a"), answered("a", 500)), want: check.Broken, says: told},
		{name: "the client heard nothing", events: events(rejected("a"), answered("a", 0)), want: check.Held},
		{name: "another search runs", events: events(rejected("a"), at(probe.FannedOut, "b"), at(probe.FannedOut, "a", onNode("m2"))), want: check.Held},
		{name: "a later search of the same name runs", events: events(refusedRun("a"), admittedRun("a")), want: check.Held},
	})
}

func TestRejectionAttribution(t *testing.T) {
	const other = "a rejection was counted on another group than its own: "
	const more = "a group has more throttled searches counted than it had rejections: "
	unread := books(0, 1, 0)
	unread.StatsErr = errors.New("a write was under way")
	judgeAll(t, scenario.RejectionAttribution, []judgement{
		{name: "on its own", events: events(refusedRun("a")), facts: facts(books(0, 1, 0, throttledOf("g", 1))), want: check.Held},
		{name: "on none", events: events(rejected("a"), counted("a", "")), facts: facts(books(0, 1, 1, throttledOf("g", 0))), want: check.Held},
		{name: "on the default group", events: events(rejected("a"), counted("a", cluster.DefaultGroupID)), facts: facts(books(0, 1, 0)), want: check.Broken, says: other},
		{name: "on the default group, and nobody says so", events: events(rejected("a"), counted("a", "g")),
			facts: facts(books(0, 1, 0, throttledOf(cluster.DefaultGroupID, 1))), want: check.Broken, says: more},
		{name: "of another life", events: events(refusedRun("a")), facts: facts(func() check.Life { l := books(0, 1, 0, throttledOf("g", 1)); l.Number = 2; return l }()),
			want: check.Broken, says: more},
		{name: "nobody looked", want: check.Undecided, says: "nobody looked at the counters of the nodes"},
		{name: "cannot be read", facts: facts(unread), want: check.Undecided, says: "the counters of node m1, life 1 cannot be read: a write was under way"},
	})
}

func TestCountersAddUp(t *testing.T) {
	const broken = "the counts of throttled searches do not add up to the 429s given: "
	unread := books(0, 1, 0)
	unread.StatsErr = errors.New("a write was under way")
	uncounted := events(sent("a"), read("a"), rejected("a"), counted("a", ""), answered("a", 429))
	judgeAll(t, scenario.CountersAddUp, []judgement{
		{name: "counted", events: events(refusedRun("a"), refusedRun("b"), admittedRun("c")), facts: facts(books(1, 2, 0, throttledOf("g", 2))), want: check.Held},
		{name: "uncounted", events: uncounted, facts: facts(books(0, 1, 1, throttledOf("g", 0))), want: check.Held},
		{name: "on another group, which is for rejection_attribution", events: events(rejected("a"), counted("a", "h"), answered("a", 429)),
			facts: facts(books(0, 1, 0, throttledOf("g", 0), throttledOf("h", 1))), want: check.Held},
		{name: "of a group that was deleted", events: events(refusedRun("a")), facts: facts(books(0, 1, 0)), want: check.Held},
		{name: "one that was run nevertheless was given none", events: swallowedRun("a"), facts: facts(books(1, 0, 0, throttledOf("g", 0))), want: check.Held},
		{name: "a count is lost", events: events(refusedRun("a")), facts: facts(books(0, 1, 0, throttledOf("g", 0))), want: check.Broken,
			says: broken + "node m1, life 1: 0 in the counters, 0 of deleted groups and 0 uncounted, with outcome throttled 1; given 1"},
		{name: "counted twice", events: events(refusedRun("a")), facts: facts(books(0, 1, 0, throttledOf("g", 2))), want: check.Broken, says: broken},
		{name: "counted and called uncounted", events: events(refusedRun("a")), facts: facts(books(0, 1, 1, throttledOf("g", 1))), want: check.Broken, says: broken},
		{name: "given and not an outcome", events: events(refusedRun("a")), facts: facts(books(1, 0, 0, throttledOf("g", 1))), want: check.Broken, says: broken},
		{name: "lives have books of their own", events: events(refusedRun("a")),
			facts: facts(books(0, 1, 0, throttledOf("g", 1)), func() check.Life { l := books(0, 1, 0, throttledOf("g", 1)); l.Number = 2; return l }()),
			want:  check.Broken, says: broken + "node m1, life 2"},
		{name: "nobody looked", want: check.Undecided, says: "nobody looked at the counters of the nodes"},
		{name: "cannot be read", facts: facts(unread), want: check.Undecided, says: "the counters of node m1, life 1 cannot be read: a write was under way"},
	})
}
