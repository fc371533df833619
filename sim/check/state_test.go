package check_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

func published(v uint64) history.Event { return at(probe.ApplierPublished, "", version(v)) }
func notified(v uint64) history.Event  { return at(probe.ApplierNotified, "", version(v)) }
func notify(v uint64, name string) history.Event {
	return at(probe.ApplierNotify, "", version(v), listener(name))
}

// applied is a version from its publication to the end.
func applied(v uint64) []history.Event {
	return []history.Event{published(v), notify(v, "wlm"), notify(v, "stats"), notified(v)}
}

func cleanVersions() []history.Event { return events(applied(0), applied(1), applied(2)) }

func TestVersionsForward(t *testing.T) {
	const back = "a node's published version went back: "
	const skipped = "a version was skipped by a listener: "
	const order = "listeners heard of a version in another order than of the first: "
	const wrong = "a listener heard of a version that is not the published one: "
	judgeAll(t, scenario.VersionsForward, []judgement{
		{name: "one after the other", events: cleanVersions(), want: check.Held},
		{name: "a snapshot makes it jump", events: events(applied(0), applied(9)), want: check.Held},
		{name: "a life that ends half way", events: events(applied(0), published(1), notify(1, "wlm")), want: check.Held},
		{name: "a life begins anew", events: events(applied(5), at(probe.ApplierPublished, "", version(0), inLife(2))), want: check.Held},
		{name: "back", events: events(applied(0), applied(2), applied(1)), want: check.Broken, says: back + "node m1, life 1: from 2 to 1"},
		{name: "the same again", events: events(applied(0), applied(0)), want: check.Broken, says: back},
		{name: "published while listeners wait", events: events(applied(0), published(1), notify(1, "wlm"), applied(2)), want: check.Broken, says: skipped},
		{name: "a listener is left out", events: events(applied(0), published(1), notify(1, "wlm"), notified(1)), want: check.Broken, says: skipped},
		{name: "another listener is left out", events: events(applied(0), published(1), notify(1, "stats"), notified(1)), want: check.Broken, says: order},
		{name: "in another order", events: events(applied(0), published(1), notify(1, "stats"), notify(1, "wlm"), notified(1)), want: check.Broken, says: order},
		{name: "a listener more", events: events(applied(0), published(1), notify(1, "wlm"), notify(1, "stats"), notify(1, "more"), notified(1)), want: check.Broken, says: order},
		{name: "an older version is told", events: events(applied(0), published(2), notify(1, "wlm")), want: check.Broken, says: wrong},
		{name: "told before it is published", events: events(notify(1, "wlm"), published(1)), want: check.Broken, says: wrong},
		{name: "told after it counts as applied", events: events(applied(0), notify(0, "wlm")), want: check.Broken, says: wrong},
		{name: "counts as applied twice", events: events(applied(0), notified(0)), want: check.Broken, says: skipped},
	})
}

func apply(t testing.TB, commands ...cluster.Command) *cluster.State {
	t.Helper()
	s := cluster.Empty()
	for _, c := range commands {
		next, err := cluster.Apply(s, c)
		require.NoError(t, err)
		s = next
	}
	return s
}

func TestStatesEqual(t *testing.T) {
	one, two := create("late", "1"), create("late", "2")
	settled := &check.Settle{Bound: time.Minute}
	of := func(states ...*cluster.State) *check.Facts {
		f := &check.Facts{Settle: settled}
		for i, s := range states {
			f.States = append(f.States, check.NodeState{Node: string(rune('a' + i)), State: s})
		}
		return f
	}
	unsettled := of(apply(t, one), cluster.Empty())
	unsettled.Settle = &check.Settle{Err: errors.New("no leader")}
	waited := of(cluster.Empty())
	waited.Settle = nil
	judgeAll(t, scenario.StatesEqual, []judgement{
		{name: "equal", facts: of(apply(t, one), apply(t, one), apply(t, one)), want: check.Held},
		{name: "one node", facts: of(apply(t, one)), want: check.Held},
		{name: "a group differs", facts: of(apply(t, one), apply(t, one), apply(t, two)), want: check.Broken,
			says: "two nodes have states that differ: a has version 1, c has version 1; what differs: group " + one.Group.ID + ", group " + two.Group.ID},
		{name: "the version differs", facts: of(apply(t, one), apply(t, one, two2(), &cluster.DeleteGroup{Name: "other"})), want: check.Broken,
			says: "two nodes have states that differ: a has version 1, b has version 3; what differs: the version alone"},
		{name: "nobody looked", facts: &check.Facts{Settle: settled}, want: check.Undecided, says: "nobody looked at the states of the nodes"},
		{name: "nobody waited", facts: waited, want: check.Undecided, says: "nobody waited for the cluster to settle"},
		{name: "not settled", facts: unsettled, want: check.Undecided, says: "the cluster did not settle, so its states may differ: no leader"},
	})
}

func two2() *cluster.CreateGroup { return create("other", "3") }

func TestStatesEqualNamesEveryKind(t *testing.T) {
	a := apply(t, create("late", "1"), &cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "x", Roles: []cluster.Role{cluster.Data}}})
	b := apply(t,
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "y", Roles: []cluster.Role{cluster.Data}}},
		&cluster.CreateIndex{Name: "logs", UUID: "u", Shards: 1},
		&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: ptr("enabled")}}},
	)
	r := judge(scenario.StatesEqual, nil, &check.Facts{Settle: &check.Settle{}, States: []check.NodeState{{Node: "a", State: a}, {Node: "b", State: b}}})
	require.Equal(t, check.Broken, r.Verdict)
	require.Contains(t, r.Message, "what differs: settings, group "+create("late", "1").Group.ID+", index logs, node d1")
}

func ptr[T any](v T) *T { return &v }

func TestPrincipalStays(t *testing.T) {
	judgeAll(t, scenario.PrincipalStays, []judgement{
		{name: "nothing seen", facts: &check.Facts{Wire: &check.Wire{}}, want: check.Held},
		{name: "seen", facts: &check.Facts{Wire: &check.Wire{Sightings: 2, First: "m1 -> d1"}}, want: check.Broken,
			says: "a principal's canary was sent from one node to another: 2 times, first m1 -> d1"},
		{name: "nobody searched", want: check.Undecided, says: "nobody searched what nodes sent one another"},
	})
}

func TestSettles(t *testing.T) {
	judgeAll(t, scenario.Settles, []judgement{
		{name: "in time", facts: &check.Facts{Settle: &check.Settle{Bound: 2, Took: 2}}, want: check.Held},
		{name: "not", facts: &check.Facts{Settle: &check.Settle{Bound: 2, Took: 3, Err: errors.New("two leaders")}}, want: check.Broken,
			says: "the cluster did not settle: two leaders (given up after 3ns, the bound is 2ns)"},
		{name: "too late", facts: &check.Facts{Settle: &check.Settle{Bound: 2, Took: 3}}, want: check.Broken, says: "the cluster settled too late: after 3ns, the bound is 2ns"},
		{name: "nobody waited", want: check.Undecided, says: "nobody waited for the cluster to settle"},
	})
}
