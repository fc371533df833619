package check_test

import (
	"testing"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestOneOutcome(t *testing.T) {
	const number = "a coordinator has not one outcome for each search that it began: "
	const differ = "the outcomes on a coordinator are not those that clients saw: "
	failed := func(n uint64) check.Life {
		l := books(0, 0, 0)
		l.Outcomes = []coordinator.GroupOutcomes{{Group: "g", Failed: n}}
		return l
	}
	running := books(1, 0, 0)
	running.Running = 1
	run := func(code int, more ...history.Event) []history.Event {
		return events(sent("a"), read("a"), more, answered("a", code))
	}
	judgeAll(t, scenario.OneOutcome, []judgement{
		{name: "one completed, one throttled", events: events(admittedRun("a"), refusedRun("b")), facts: facts(books(1, 1, 0)), want: check.Held},
		{name: "failed", events: run(503), facts: facts(failed(1)), want: check.Held},
		{name: "refused by all data nodes has failed", events: run(429), facts: facts(failed(1)), want: check.Held},
		{name: "a client that left may have any", events: run(0), facts: facts(books(0, 1, 0)), want: check.Held},
		{name: "refused before a coordinator began it", events: events(sent("a"), answered("a", 503)), facts: facts(books(0, 0, 0)), want: check.Held},
		{name: "refused by a coordinator that closes", events: events(sent("a"), answered("a", 503)), facts: facts(failed(1)), want: check.Held},
		{name: "a client that nobody noted", events: events(read("a")), facts: facts(books(1, 0, 0)), want: check.Held},
		{name: "no outcome", events: run(200), facts: facts(books(0, 0, 0)), want: check.Broken, says: number + "node m1, life 1: 0 outcomes, 1 begun, 0 sent and not begun"},
		{name: "two outcomes", events: run(200), facts: facts(books(1, 1, 0)), want: check.Broken, says: number},
		{name: "an outcome in another life", events: run(200), facts: facts(books(0, 0, 0), func() check.Life { l := books(1, 0, 0); l.Number = 2; return l }()), want: check.Broken, says: number},
		{name: "throttled, and the client saw 200", events: run(200), facts: facts(books(0, 1, 0)), want: check.Broken, says: differ},
		{name: "failed, and the client saw 200", events: run(200), facts: facts(failed(1)), want: check.Broken, says: differ},
		{name: "completed, and the client saw 429", events: run(429, rejected("a")), facts: facts(books(1, 0, 0)), want: check.Broken, says: differ},
		{name: "completed, and the client saw 500", events: run(500), facts: facts(books(1, 0, 0)), want: check.Broken, says: differ},
		{name: "never answered", events: events(sent("a"), read("a")), facts: facts(books(1, 0, 0)), want: check.Broken, says: "the client of a search saw no outcome: node m1, search a"},
		{name: "answered twice", events: events(admittedRun("a"), answered("a", 200)), facts: facts(books(1, 0, 0)), want: check.Broken,
			says: "a client had an answer to a search that was not under way: "},
		{name: "begun twice", events: events(sent("a"), read("a"), read("a"), answered("a", 200)), facts: facts(books(2, 0, 0)), want: check.Broken, says: "a search was begun twice: "},
		{name: "answered out of the air", events: events(sent("a"), answered("a", 200)), facts: facts(books(0, 0, 0)), want: check.Broken,
			says: "a client had an answer to a search that no coordinator began: "},
		{name: "two of one name", events: events(sent("a"), sent("a"), read("a"), answered("a", 200)), facts: facts(books(1, 0, 0)), want: check.Undecided,
			says: "search a was sent to node m1 a second time before its answer was there"},
		{name: "nobody looked", events: events(admittedRun("a")), want: check.Undecided, says: "nobody looked at the outcomes of the nodes"},
		{name: "something runs", events: events(admittedRun("a")), facts: facts(running), want: check.Undecided, says: "1 searches still run on node m1, life 1"},
	})
}
