package check_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// create makes a group whose id ends as given.
func create(name, id string) *cluster.CreateGroup {
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: strings.Repeat("x", 21) + id, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.1},
	}}
}

// limit updates a group's share of the processors, by which values are told
// apart here.
func limit(name string, cpu float64) *cluster.UpdateGroup {
	return &cluster.UpdateGroup{Name: name, ResourceLimits: map[string]float64{"cpu": cpu}}
}

func remove(name string) *cluster.DeleteGroup { return &cluster.DeleteGroup{Name: name} }

// op is a command from one instant to another, with the answer done.
func op(call, back time.Duration, c cluster.Command) check.Operation {
	return check.Operation{Node: "m1", Call: call, Return: back, Command: c}
}

// fails gives it another answer.
func fails(o check.Operation, err error) check.Operation {
	o.Err = err
	return o
}

var errGone = cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown")

// refusal is how a command is refused after others.
func refusal(t testing.TB, c cluster.Command, after ...cluster.Command) error {
	t.Helper()
	_, err := cluster.Apply(apply(t, after...), c)
	require.Error(t, err)
	return err
}

// list is a read that shows what others have made.
func list(t testing.TB, call, back time.Duration, made ...cluster.Command) check.Operation {
	t.Helper()
	return check.Operation{Node: "m2", Call: call, Return: back, Groups: apply(t, made...).Groups()}
}

func operations(ops ...check.Operation) *check.Facts { return &check.Facts{Operations: ops} }

func TestHistoryLinearizable(t *testing.T) {
	const none = "no order of group writes and leader reads explains all answers: group late, "
	late, again, other := create("late", "1"), create("late", "2"), create("other", "3")
	exists := refusal(t, again, late)
	missing := refusal(t, remove("late"))
	withAnswer := op(4, 5, limit("late", 0.2))
	withAnswer.Group = apply(t, late, limit("late", 0.2)).GroupNamed("late")
	staleAnswer := withAnswer
	staleAnswer.Group = apply(t, late).GroupNamed("late")
	judgeAll(t, scenario.HistoryLinearizable, []judgement{
		{name: "nobody noted", want: check.Undecided, says: "nobody noted the operations on groups"},
		{name: "noted that nothing was done", facts: &check.Facts{Operations: []check.Operation{}}, want: check.Held},
		{name: "one after the other", facts: operations(op(1, 2, late), list(t, 3, 4, late), op(5, 6, limit("late", 0.2)),
			list(t, 7, 8, late, limit("late", 0.2)), op(9, 10, remove("late")), list(t, 11, 12)), want: check.Held},
		{name: "a stale read", facts: operations(op(1, 2, late), op(3, 4, limit("late", 0.2)), list(t, 5, 6, late)), want: check.Broken,
			says: none + "3 operations; the first that nothing explains is a read of the groups on node m2 from 5ns to 6ns: {"},
		{name: "a read of what is gone", facts: operations(op(1, 2, late), op(3, 4, remove("late")), list(t, 5, 6, late)), want: check.Broken, says: none},
		{name: "a write that is lost", facts: operations(op(1, 2, late), list(t, 3, 4)), want: check.Broken,
			says: none + "2 operations; the first that nothing explains is a read of the groups on node m2 from 3ns to 4ns: no such group"},
		{name: "a read of what nobody wrote", facts: operations(list(t, 1, 2, late)), want: check.Broken, says: none},
		{name: "a read meanwhile may go either way", facts: operations(op(1, 5, late), list(t, 2, 3), list(t, 2, 3, late)), want: check.Held},
		{name: "but not back", facts: operations(op(1, 9, late), list(t, 2, 3, late), list(t, 4, 5)), want: check.Broken, says: none},
		{name: "two creations of one name", facts: operations(op(1, 2, late), op(3, 4, again)), want: check.Broken,
			says: none + "2 operations; the first that nothing explains is create_group on node m1 from 3ns to 4ns: done"},
		{name: "the second is refused", facts: operations(op(1, 2, late), fails(op(3, 4, again), exists)), want: check.Held},
		{name: "refused although nothing was there", facts: operations(fails(op(1, 2, again), exists)), want: check.Broken,
			says: none + "1 operations; the first that nothing explains is create_group on node m1 from 1ns to 2ns: WorkloadGroup with name late already exists"},
		{name: "a deletion finds nothing although it is there", facts: operations(op(1, 2, late), fails(op(3, 4, remove("late")), missing)), want: check.Broken, says: none},
		{name: "unknown and done", facts: operations(fails(op(1, 2, late), errGone), list(t, 9, 10, late)), want: check.Held},
		{name: "unknown and not done", facts: operations(fails(op(1, 2, late), errGone), list(t, 9, 10)), want: check.Held},
		{name: "unknown and done later", facts: operations(fails(op(1, 2, late), errGone), list(t, 3, 4), list(t, 9, 10, late)), want: check.Held},
		{name: "unknown and done before it was asked for", facts: operations(list(t, 1, 2, late), fails(op(3, 4, late), errGone)), want: check.Broken, says: none},
		{name: "unknown and done twice", facts: operations(fails(op(1, 2, late), errGone), op(3, 4, remove("late")), list(t, 5, 6), list(t, 7, 8, late)), want: check.Broken, says: none},
		{name: "an error of another make is unknown", facts: operations(fails(op(1, 2, late), context.Canceled), list(t, 9, 10, late)), want: check.Held},
		{name: "what surely failed is not there", facts: operations(fails(op(1, 2, late), cluster.Errorf(cluster.NotDiscovered, "no leader")), list(t, 9, 10, late)),
			want: check.Broken, says: none},
		{name: "refused for all groups together", facts: operations(fails(op(1, 2, late), cluster.Errorf(cluster.IllegalArgument, "the sum")), list(t, 3, 4)), want: check.Held},
		{name: "a read that failed says nothing", facts: operations(op(1, 2, late), fails(list(t, 3, 4), errGone)), want: check.Held},
		{name: "an answer that shows the merge", facts: operations(op(1, 2, late), withAnswer), want: check.Held},
		{name: "an answer that does not", facts: operations(op(1, 2, late), staleAnswer), want: check.Broken, says: none},
		{name: "names are apart", facts: operations(op(1, 2, late), op(1, 2, other), list(t, 3, 4, late, other), op(5, 6, remove("other")), list(t, 7, 8, late)), want: check.Held},
		{name: "the same instant may go either way", facts: operations(op(1, 2, late), list(t, 2, 3)), want: check.Held},
	})
}

// Promise 3. Many writes at once that a read contradicts have more orders than
// anybody can try.
func TestHistoryLinearizableIsUndecidedBeyondItsBounds(t *testing.T) {
	f := operations(op(1, 2, create("late", "1")))
	for i := range 40 {
		f.Operations = append(f.Operations, op(3, 90, limit("late", 0.1+float64(i)/100)))
	}
	f.Operations = append(f.Operations, list(t, 95, 96))
	r := judge(scenario.HistoryLinearizable, nil, f)
	require.Equal(t, check.Undecided, r.Verdict)
	require.Equal(t, "no order of the 42 operations on group late was found within 100000 tries", r.Message)

	f = &check.Facts{}
	for range check.MaxOperations + 1 {
		f.Operations = append(f.Operations, op(1, 2, remove("late")))
	}
	r = judge(scenario.HistoryLinearizable, nil, f)
	require.Equal(t, check.Undecided, r.Verdict)
	require.Equal(t, "group late has 10001 operations: an order is looked for up to 10000", r.Message)
}

func TestAnOperationOnSomethingElseIsAMistake(t *testing.T) {
	require.PanicsWithValue(t, "check: command delete_index is not about a group", func() {
		judge(scenario.HistoryLinearizable, nil, operations(op(1, 2, &cluster.DeleteIndex{Name: "logs"})))
	})
}

// bruteForce tries every order of operations on one name, the unknown ones left
// out or not.
func bruteForce(s *cluster.State, left []check.Operation) bool {
	over := true
	for i, o := range left {
		unknown := o.Err != nil && cluster.KindOf(o.Err) == cluster.OutcomeUnknown
		over = over && unknown
		if !first(o, left) {
			continue
		}
		if next, ok := try(s, o, unknown); ok && bruteForce(next, append(append([]check.Operation(nil), left[:i]...), left[i+1:]...)) {
			return true
		}
	}
	return over
}

// first says whether no other operation ended before o began.
func first(o check.Operation, left []check.Operation) bool {
	for _, other := range left {
		if cluster.KindOf(other.Err) != cluster.OutcomeUnknown && other.Return < o.Call {
			return false
		}
	}
	return true
}

func try(s *cluster.State, o check.Operation, unknown bool) (*cluster.State, bool) {
	if o.Command == nil {
		return s, len(s.Groups()) == len(o.Groups) && (len(o.Groups) == 0 || reflect.DeepEqual(s.Groups()[0], o.Groups[0]))
	}
	next, err := cluster.Apply(s, o.Command)
	switch {
	case unknown && err != nil:
		return s, true
	case unknown:
		return next, true
	case o.Err != nil:
		return s, err != nil && err.Error() == o.Err.Error()
	}
	return next, err == nil
}

func TestHistoryLinearizableAgainstBruteForce(t *testing.T) {
	commands := []cluster.Command{create("late", "1"), create("late", "2"), limit("late", 0.2), limit("late", 0.3), remove("late")}
	exists, missing := refusal(t, commands[1], commands[0]), refusal(t, remove("late"))
	views := []*cluster.State{cluster.Empty(), apply(t, commands[0]), apply(t, commands[1]), apply(t, commands[0], commands[2]), apply(t, commands[0], commands[3])}
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		var ops []check.Operation
		for i := range rapid.IntRange(1, 6).Draw(t, "operations") {
			call := time.Duration(rapid.IntRange(0, 8).Draw(t, "call"))
			o := check.Operation{Node: fmt.Sprint(i), Call: call, Return: call + time.Duration(rapid.IntRange(0, 6).Draw(t, "took"))}
			if rapid.Bool().Draw(t, "read") {
				o.Groups = rapid.SampledFrom(views).Draw(t, "view").Groups()
			} else {
				o.Command = rapid.SampledFrom(commands).Draw(t, "command")
				o.Err = drawAnswer(t, o.Command, exists, missing)
			}
			ops = append(ops, o)
		}
		want := check.Broken
		if bruteForce(cluster.Empty(), ops) {
			want = check.Held
			held++
		}
		r := judge(scenario.HistoryLinearizable, nil, operations(ops...))
		require.Equal(t, want, r.Verdict, r.Message)
	})
	require.NotZero(t, held, "no history was linearizable: the comparison shows little")
}

func drawAnswer(t *rapid.T, c cluster.Command, exists, missing error) error {
	no := missing
	if _, creates := c.(*cluster.CreateGroup); creates {
		no = exists
	}
	err := rapid.SampledFrom([]error{nil, nil, no, errGone}).Draw(t, "answer")
	var refused *cluster.Error
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// A history as a run of an hour makes it: one writer after the other.
func BenchmarkLinearizable(b *testing.B) {
	f := operations(op(0, 1, create("late", "1")))
	for i := range 1000 {
		at := time.Duration(10 * (i + 1))
		f.Operations = append(f.Operations, op(at, at+1, limit("late", 0.1+float64(i%10)/100)), list(b, at+2, at+3, create("late", "1"), limit("late", 0.1+float64(i%10)/100)))
	}
	for b.Loop() {
		if r := judge(scenario.HistoryLinearizable, nil, f); r.Verdict != check.Held {
			b.Fatal(r.Message)
		}
	}
}
