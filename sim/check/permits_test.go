package check_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestPermitsBounded(t *testing.T) {
	const over = "a bucket held more permits than the limit that its search read, or none: "
	const many = "more searches held a permit of one bucket at the same time than any of their limits: "
	const twice = "a permit was given back that was not held: "
	judgeAll(t, scenario.PermitsBounded, []judgement{
		{name: "nothing happened", want: check.Held},
		{name: "up to the limit", events: events(acquired("a", 1, 2), acquired("b", 2, 2), merged("a"), released("a"), acquired("c", 2, 2)), want: check.Held},
		{name: "the throttle says one too many", events: events(acquired("a", 3, 2)), want: check.Broken, says: over},
		{name: "the throttle says none", events: events(acquired("a", 0, 2)), want: check.Broken, says: over},
		{name: "the throttle does not see the other", events: events(acquired("a", 1, 1), acquired("b", 1, 1)), want: check.Broken, says: many},
		{name: "the other may be gone although its release is not told yet", events: events(acquired("a", 1, 1), merged("a"), acquired("b", 1, 1), released("a")), want: check.Held},
		{name: "a lower limit does not cut who runs", events: events(acquired("a", 1, 5), acquired("b", 2, 5), acquired("c", 3, 5), merged("a"), released("a"), merged("b"), released("b"), acquired("d", 2, 2)), want: check.Held},
		{name: "told late, under a limit that is higher by now", events: events(acquired("b", 2, 5), acquired("a", 1, 1)), want: check.Held},
		{name: "a higher limit that nobody has any more is no excuse",
			events: events(acquired("a", 1, 5), merged("a"), released("a"), acquired("b", 1, 1), acquired("c", 1, 1)), want: check.Broken, says: many},
		{name: "buckets are apart", events: events(acquired("a", 1, 1), at(probe.Acquired, "b", bucket(8), fill(1, 1))), want: check.Held},
		{name: "nodes are apart", events: events(acquired("a", 1, 1), at(probe.Acquired, "b", bucket(7), fill(1, 1), onNode("m2"))), want: check.Held},
		{name: "lives are apart", events: events(acquired("a", 1, 1), at(probe.Acquired, "b", bucket(7), fill(1, 1), inLife(2))), want: check.Held},
		{name: "given back twice", events: events(acquired("a", 1, 1), merged("a"), released("a"), released("a")), want: check.Broken, says: twice},
		{name: "given back without having one", events: events(released("a")), want: check.Broken, says: twice},
		{name: "a search without a permit gives none back", events: events(at(probe.Merged, "a"), at(probe.Released, "a")), want: check.Held},
		{name: "given back without a merge", events: events(acquired("a", 1, 1), released("a"), acquired("b", 1, 1)), want: check.Held},
		{name: "one name twice", events: events(acquired("a", 1, 1), acquired("a", 2, 3), merged("a"), released("a"), merged("a"), released("a")), want: check.Held},
	})
}

// naive holds every permit in a list and looks at all of them at each event.
type naive struct {
	held   []history.Event
	merged map[string]bool
	broken bool
}

func (n *naive) observe(e history.Event) {
	switch probe.Step(e.Kind) {
	case probe.Acquired:
		n.broken = n.broken || e.Held < 1 || e.Held > e.Limit
		n.held = append(n.held, e)
		sure, most := 0, 0
		for _, h := range n.held {
			if h.Bucket == e.Bucket && !n.merged[h.Search] {
				sure, most = sure+1, max(most, h.Limit)
			}
		}
		n.broken = n.broken || sure > most
	case probe.Merged:
		n.merged[e.Search] = true
	case probe.Released:
		kept := n.held[:0:0]
		for _, h := range n.held {
			if h.Search != e.Search {
				kept = append(kept, h)
			}
		}
		n.broken = n.broken || len(kept) == len(n.held)
		n.held = kept
		delete(n.merged, e.Search)
	}
}

func TestPermitsBoundedAgainstAListOfAllPermits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := naive{merged: map[string]bool{}}
		var stream []history.Event
		stage, home := map[string]int{}, map[string]uint64{}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "search")
			e := history.Event{}
			switch stage[name] {
			case 0:
				home[name] = rapid.Uint64Range(1, 2).Draw(t, "bucket")
				limit := rapid.IntRange(1, 3).Draw(t, "limit")
				e = at(probe.Acquired, name, bucket(home[name]), fill(rapid.IntRange(1, limit).Draw(t, "held"), limit))
			case 1:
				e = at(probe.Merged, name, bucket(home[name]))
			default:
				e = at(probe.Released, name, bucket(home[name]))
			}
			stage[name] = (stage[name] + 1) % 3
			model.observe(e)
			stream = append(stream, e)
		}
		want := check.Held
		if model.broken {
			want = check.Broken
		}
		r := judge(scenario.PermitsBounded, stream, &check.Facts{})
		require.Equal(t, want, r.Verdict, r.Message)
	})
}

func TestPermitsReturn(t *testing.T) {
	idle := books(1, 0, 0)
	running, left, second := idle, idle, idle
	running.Running = 2
	left.Permits = []wlm.GroupPermits{{Group: "g", Buckets: 1, Held: 3}}
	second.Number = 2
	judgeAll(t, scenario.PermitsReturn, []judgement{
		{name: "all back", events: events(admittedRun("a")), facts: facts(idle), want: check.Held},
		{name: "nobody looked", want: check.Undecided, says: "nobody looked at the permits of the nodes"},
		{name: "something runs", facts: facts(running), want: check.Undecided, says: "2 searches still run on node m1, life 1"},
		{name: "a bucket is left", facts: facts(left), want: check.Broken, says: "with nothing running, permits are still held: node m1, life 1, group g: 3 in 1 buckets"},
		{name: "books that forgot a permit", events: events(acquired("a", 1, 1)), facts: facts(idle), want: check.Broken,
			says: "with nothing running, a search has not given its permit back: node m1, life 1, bucket 0000000000000007, search a"},
		{name: "of a life that nobody looked at", events: events(acquired("a", 1, 1)), facts: facts(second), want: check.Held},
		{name: "a breach on one node counts although another runs", facts: facts(running, func() check.Life { l := left; l.Node = "m2"; return l }()),
			want: check.Broken, says: "with nothing running, permits are still held: node m2"},
	})
}
