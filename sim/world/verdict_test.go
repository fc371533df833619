package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// found returns the check of a name.
func found(t *testing.T, r *world.Result, name string) world.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no such check", "%s in %+v", name, r.Checks)
	return world.Check{}
}

const leak = `
cluster: {data: 2}
users: {alice: {roles: [analyst]}}
steps:
  - {at: 1s, search: {id: one, user: alice, via: m1}}
expect:
  - one.status == 200
`

func TestAFlawBreaksItsPromiseAndTheFileMaySaySo(t *testing.T) {
	r := run(t, leak)
	require.Equal(t, check.Held, r.Verdict)

	r = run(t, "switches: {principal_carrier: header}"+leak)
	require.Equal(t, check.Broken, r.Verdict)
	require.Equal(t, check.Broken, found(t, r, "principal_stays").Verdict)

	r = run(t, "switches: {principal_carrier: header}"+leak+"breaks: [principal_stays]\n")
	require.Equal(t, check.Held, r.Verdict)
	require.Equal(t, check.Broken, found(t, r, "principal_stays").Verdict)
	require.Contains(t, found(t, r, "principal_stays").Message, "as the file says")

	r = run(t, leak+"breaks: [principal_stays]\n")
	require.Equal(t, check.Broken, r.Verdict)
	require.Contains(t, found(t, r, "principal_stays").Message, "but it held")

	r = run(t, leak+"under: {submitted: {breaks: [principal_stays]}}\n", func(o *world.Options) { o.Profile = "submitted" })
	require.Equal(t, check.Held, r.Verdict)
	require.Equal(t, "wlmsim run test.yaml --seed 0 --profile submitted", r.Repeat)

	r = run(t, leak+"breaks: [principal_stays]\n", func(o *world.Options) { o.Checks = []scenario.Promise{scenario.Settles} })
	require.Equal(t, check.Undecided, r.Verdict, "a promise that nobody looked at")
}

func TestAnExpectationThatIsNotTrueNamesItsLine(t *testing.T) {
	r := run(t, `
steps:
  - {at: 1s, search: {id: one}}
  - {at: 2s, expect: [one.status == 200, one.status == 201]}
  - {at: 3s, crash: {node: d1}}
  - {at: 4s, expect: ['state("d1").version > 0']}
expect:
  - one.status == 202
`)
	require.Equal(t, check.Broken, r.Verdict)
	c := found(t, r, "expect one.status == 201")
	require.Equal(t, check.Broken, c.Verdict)
	require.Equal(t, 6, c.Line)
	require.Contains(t, c.Message, "at 2s")
	c = found(t, r, "expect one.status == 202")
	require.Equal(t, 10, c.Line)
	c = found(t, r, `expect state("d1").version > 0`)
	require.Equal(t, check.Undecided, c.Verdict)
	require.Contains(t, c.Message, "node d1 is down")
}

func TestAStepThatCannotBeDoneLeavesTheRunUndecided(t *testing.T) {
	r := run(t, `
steps:
  - {at: 1s, crash: {node: d1}}
  - {at: 2s, hold: {node: d1, step: applier.published}}
`)
	require.Equal(t, check.Undecided, r.Verdict)
	require.Equal(t, 6, found(t, r, "hold").Line)
}

func TestAClusterWithoutADiskDoesNotSettleAndStillEnds(t *testing.T) {
	r := run(t, `
cluster: {data: 1}
steps:
  - {at: 1s, crash: {node: all, disk: lost, restart_after: 1s}}
  - {at: 5s, get_groups: {id: read, via: d1}}
  - {at: 5s, search: {id: one, via: d1}}
expect:
  - read.status == 503 and one.status == 503
`)
	require.Equal(t, check.Held, r.Checks[len(r.Checks)-1].Verdict)
	require.Equal(t, check.Broken, found(t, r, "settles").Verdict)
}

func TestTheHistoryHoldsWhatHappenedAndItsHash(t *testing.T) {
	r := run(t, leak, func(o *world.Options) { o.Keep = 1000 })
	kinds := map[string]int{}
	for _, e := range r.History.Events() {
		kinds[e.Kind]++
		require.NotContains(t, e.String(), "alice")
	}
	require.Equal(t, 1, kinds[history.RequestSent])
	require.Equal(t, 1, kinds[history.RequestAnswered])
	require.Equal(t, 5, kinds[history.NodeStarted])
	require.Equal(t, 1, kinds[history.Settled])
	require.Equal(t, r.TraceHash, r.History.Hash())

	r = run(t, leak, func(o *world.Options) { o.Bare = true })
	require.Nil(t, r.History)
	require.Empty(t, r.TraceHash)
	require.Len(t, r.Checks, 2, "settles and the expectation")
}

func TestBoltFilesSurviveACrashInVirtualTime(t *testing.T) {
	r := run(t, `
cluster: {storage: bolt, data: 1}
steps:
  - {at: 1s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 2s, crash: {node: all, restart_after: 1s}}
  - {at: 10s, get_groups: {id: read}}
expect:
  - put.status == 200 and read.groups == ["a"]
`)
	require.Equal(t, check.Held, r.Verdict, "%+v", r.Checks)
}

// The history says which point in time a step was about.
func TestTheHistoryNamesPointsInTime(t *testing.T) {
	r := run(t, `
steps:
  - {at: 1s, open_pit: {id: point, keep_alive: 1m}}
  - {at: 2s, close_pit: {pit: point}}
expect: [point.successful]
`, func(o *world.Options) { o.Keep = 1000 })
	var asked []string
	for _, e := range r.History.Events() {
		if e.Kind == history.WriteBegin {
			asked = append(asked, e.Detail)
		}
	}
	require.Equal(t, []string{"open_pit point", "close_pit point"}, asked)
}

// A point in time cannot be searched or ended before it has been opened.
func TestAPointInTimeWithoutAnAnswerIsUndecided(t *testing.T) {
	r := run(t, `
steps:
  - {at: 1s, crash: {node: d1}}
  - {at: 2s, open_pit: {id: point, keep_alive: 1m, via: d1}}
  - {at: 3s, search: {id: one, pit: point}}
  - {at: 4s, close_pit: {id: closed, pit: point}}
expect: [point.status == 0 and one.status == 0 and closed.status == 0]
`)
	require.Equal(t, check.Undecided, r.Verdict)
	for i, name := range []string{"search", "close_pit"} {
		c := found(t, r, name)
		require.Equal(t, 7+i, c.Line)
		require.Equal(t, fmt.Sprintf("the step at %ds could not be done: open_pit point has not been answered with a point in time", 3+i), c.Message)
	}
}

// A page cannot be asked for before the search has been answered.
func TestAPageOfASearchWithoutAnAnswerIsUndecided(t *testing.T) {
	r := run(t, `
steps:
  - {at: 1s, search: {id: first, scroll: 1m, service_time: 2s}}
  - {at: 2s, search: {id: page, page_of: first}}
expect: [first.status == 200 and page.status == 0]
`)
	require.Equal(t, check.Undecided, r.Verdict)
	c := found(t, r, "search")
	require.Equal(t, 6, c.Line)
	require.Equal(t, "the step at 2s could not be done: search first has not been answered with a scroll id", c.Message)
}
