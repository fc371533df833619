package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// look is a search of a principal that looks at a bucket.
func look(search, user string, roles []string, attribute string, b uint64, more ...func(*history.Event)) []history.Event {
	begin := at(probe.AcquireBegin, search, append(more, bucket(b), detail(attribute))...)
	ask := sent(search)
	ask.Node, ask.Detail = begin.Node, history.PrincipalKey(user, roles)
	end := answered(search, 200)
	end.Node = begin.Node
	return []history.Event{ask, begin, end}
}

// nested is a search of bob that starts another one, which looks at a bucket.
func nested(outer, inner string, b uint64) []history.Event {
	ask := sent(outer)
	ask.Detail = history.PrincipalKey("bob", nil)
	return []history.Event{ask, at(probe.AcquireBegin, inner, bucket(b), detail("username")), answered(outer, 200)}
}

func TestBucketsDistinct(t *testing.T) {
	const share = "two principals share a bucket: "
	const two = "one principal has two buckets: "
	ab, b := []string{"a", "b"}, []string{"b"}
	noted := sent("s")
	noted.Detail = ""
	judgeAll(t, scenario.BucketsDistinct, []judgement{
		{name: "one each", events: events(look("s", "bob", nil, "username", 1), look("t", "Bob", nil, "username", 2), look("u", "bob", ab, "username", 1)), want: check.Held},
		{name: "shared by a byte", events: events(look("s", "bob", nil, "username", 1), look("t", "bob,x", nil, "username", 1)), want: check.Broken, says: share},
		{name: "two", events: events(look("s", "bob", nil, "username", 1), look("t", "bob", ab, "username", 2)), want: check.Broken, says: two},
		{name: "by role, the first one is charged", events: events(look("s", "bob", ab, "role", 1), look("t", "eve", []string{"", "a"}, "role", 1), look("u", "bob", b, "role", 2)), want: check.Held},
		{name: "by role, shared", events: events(look("s", "bob", ab, "role", 1), look("t", "bob", b, "role", 1)), want: check.Broken, says: share},
		{name: "all of a group share", events: events(look("s", "bob", nil, "group", 1), look("t", "eve", nil, "group", 1), look("u", "", nil, "group", 1)), want: check.Held},
		{name: "a group with two", events: events(look("s", "bob", nil, "group", 1), look("t", "bob", nil, "group", 2)), want: check.Broken, says: two},
		{name: "groups are apart", events: events(look("s", "bob", nil, "username", 1), look("t", "bob", nil, "username", 2, ofGroup("h"))), want: check.Held},
		{name: "attributes are apart", events: events(look("s", "bob", nil, "username", 1), look("t", "bob", ab, "role", 2), look("u", "bob", nil, "group", 3)), want: check.Held},
		{name: "nodes are apart", events: events(look("s", "bob", nil, "username", 1), look("t", "bob", nil, "username", 2, onNode("m2"))), want: check.Held},
		{name: "lives are apart", events: events(look("s", "bob", nil, "username", 1), look("t", "bob", nil, "username", 2, inLife(2))), want: check.Held},
		{name: "a bucket of nobody", events: events(look("s", "", ab, "username", 1)), want: check.Broken, says: "a search without a principal has a bucket of one: "},
		{name: "whose it was is not known", events: events(noted, at(probe.AcquireBegin, "s", bucket(1), detail("username"))), want: check.Undecided, says: "nobody knows whose search s on node m1 was"},
		{name: "a nested search has the outer one's principal", events: events(nested("s", "s/1", 1), look("t", "bob", nil, "username", 1)), want: check.Held},
		{name: "a nested search of a nested one", events: events(nested("s", "s/1/2", 2), look("t", "bob", nil, "username", 1)), want: check.Broken, says: two},
		{name: "a name that only looks nested", events: events(nested("s", "s/01", 1)), want: check.Undecided, says: "nobody knows whose search s/01 on node m1 was"},
		{name: "whose it was does not matter", events: events(at(probe.AcquireBegin, "s", bucket(1), detail("group"))), want: check.Held},
		{name: "an attribute that is not known", events: events(look("s", "bob", nil, "tenant", 1)), want: check.Undecided, says: `attribute "tenant" of search s on node m1 is unknown`},
	})
}

// Promise 3.
func TestBucketsDistinctIsUndecidedBeyondItsBound(t *testing.T) {
	c := check.NewBucketsDistinct(2)
	for i, user := range []string{"a", "b", "a", "c"} {
		for _, e := range look(user, user, nil, "username", uint64(user[0])) {
			e.Seq = uint64(i)
			if e.Kind == history.RequestSent || e.Kind == history.RequestAnswered || e.Kind == string(probe.AcquireBegin) {
				c.Observe(&e)
			}
		}
	}
	r := c.Finish(&check.Facts{})
	require.Equal(t, check.Undecided, r.Verdict)
	require.Equal(t, "there are more than 2 buckets of principals", r.Message)
}
