package task_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
)

const search = "indices:data/read/search"

func TestATaskIsListedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := task.New("n1")
		parent := task.ID{Node: "n2", Number: 7}
		ctx, one := r.Begin(t.Context(), task.Spec{Action: search, Parent: parent, OpaqueID: "mine", Describe: func(int) string { return "indices[logs]" }})
		require.Equal(t, task.ID{Node: "n1", Number: 1}, task.From(ctx))
		require.Equal(t, one.ID(), task.From(ctx))
		_, shards := r.Begin(ctx, task.Spec{Action: search + "[phase/query]", Parent: one.ID(), Count: 2, Describe: func(i int) string { return fmt.Sprint("shard ", i) }})
		started := time.Now().UnixMilli()
		time.Sleep(3 * time.Second)
		all := []task.Info{
			{ID: one.ID(), Parent: parent, Action: search, Description: "indices[logs]", OpaqueID: "mine", Started: started, Running: 3 * time.Second},
			{ID: task.ID{Node: "n1", Number: 2}, Parent: one.ID(), Action: search + "[phase/query]", Description: "shard 0", Started: started, Running: 3 * time.Second},
			{ID: task.ID{Node: "n1", Number: 3}, Parent: one.ID(), Action: search + "[phase/query]", Description: "shard 1", Started: started, Running: 3 * time.Second},
		}
		require.Equal(t, all, r.List(task.Filter{}))
		require.Equal(t, all[:1], r.List(task.Filter{Actions: []string{"*/search"}}))
		require.Equal(t, all[:1], r.List(task.Filter{Actions: []string{search}}))
		require.Equal(t, all[2:], r.List(task.Filter{Number: 3}))
		require.Equal(t, all[1:], r.List(task.Filter{Parent: one.ID()}))
		require.Empty(t, r.List(task.Filter{Actions: []string{"*msearch"}}))
		shards.End()
		require.Equal(t, all[:1], r.List(task.Filter{}))
		one.End()
		require.Zero(t, r.Len())
		_, next := r.Begin(t.Context(), task.Spec{Action: search})
		require.Equal(t, uint64(4), next.ID().Number, "no number comes twice")
		next.End()
	})
}

func TestACancelledTaskEndsWithWhatDerivesFromIt(t *testing.T) {
	r := task.New("n1")
	outer, one := r.Begin(t.Context(), task.Spec{Action: "indices:data/read/msearch"})
	inner, two := r.Begin(outer, task.Spec{Action: search, Parent: one.ID()})
	other, three := r.Begin(t.Context(), task.Spec{Action: search})
	defer three.End()
	found := r.Cancel(t.Context(), task.Filter{Number: 1}, "by user request", false)
	require.Len(t, found, 1)
	require.True(t, found[0].Cancelled)
	for _, ctx := range []context.Context{outer, inner} {
		require.Error(t, ctx.Err())
		require.Equal(t, task.Cancelled, cluster.KindOf(context.Cause(ctx)))
		require.EqualError(t, context.Cause(ctx), "cancelled task with reason: by user request")
	}
	require.NoError(t, other.Err())
	require.Equal(t, []bool{true, true, false}, flags(r), "a cancelled task is listed until it is over")
	two.End()
	one.End()
	require.Equal(t, []bool{false}, flags(r))
}

func flags(r *task.Registry) []bool {
	var cancelled []bool
	for _, i := range r.List(task.Filter{}) {
		cancelled = append(cancelled, i.Cancelled)
	}
	return cancelled
}

func TestCancelWaitsUntilTasksAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := task.New("n1")
		ctx, one := r.Begin(t.Context(), task.Spec{Action: search})
		go func() {
			<-ctx.Done()
			time.Sleep(time.Minute)
			one.End()
		}()
		begun := time.Now()
		hasty, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.Len(t, r.Cancel(hasty, task.Filter{}, "x", true), 1)
		require.Equal(t, time.Second, time.Since(begun), "its own time is over")
		require.Len(t, r.Cancel(t.Context(), task.Filter{}, "y", true), 1)
		require.Equal(t, time.Minute, time.Since(begun))
		require.EqualError(t, context.Cause(ctx), "cancelled task with reason: x", "the first reason stays")
		require.Empty(t, r.Cancel(t.Context(), task.Filter{}, "z", true))
	})
}

func TestWithoutARegistryThereAreNoTasks(t *testing.T) {
	var r *task.Registry
	ctx, one := r.Begin(t.Context(), task.Spec{Action: search})
	require.Equal(t, t.Context(), ctx)
	require.True(t, one.ID().IsZero())
	require.True(t, task.From(ctx).IsZero())
	one.End()
}

// told is work that keeps the reasons it was given.
type told struct{ reasons []error }

func (w *told) Describe(i int) string { return fmt.Sprint("part ", i) }
func (w *told) Cancel(why error)      { w.reasons = append(w.reasons, why) }

func TestWorkThatEnteredIsToldWhyItMustEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := task.New("n1")
		ctx, stop := context.WithCancel(t.Context())
		var one, two task.Task
		w, v := &told{}, &told{}
		r.Enter(ctx, &one, task.Spec{Action: search, Count: 2, OpaqueID: "mine"}, w)
		r.Enter(ctx, &two, task.Spec{Action: search}, v)
		time.Sleep(time.Second)
		all := r.List(task.Filter{})
		require.Equal(t, task.Info{
			ID: task.ID{Node: "n1", Number: 2}, Action: search, Description: "part 1", OpaqueID: "mine", Started: time.Now().UnixMilli() - 1000, Running: time.Second,
		}, all[1])
		require.Len(t, all, 3)
		require.True(t, r.Cancel(t.Context(), task.Filter{Number: 1}, "x", false)[0].Cancelled)
		require.Equal(t, []error{task.NewCancelled("x")}, w.reasons)
		require.Empty(t, v.reasons)
		require.NoError(t, ctx.Err())
		require.Equal(t, []bool{true, true, false}, flags(r))
		one.End()
		stop()
		require.Equal(t, []bool{true}, flags(r), "a task whose context has ended")
		two.End()
		require.Zero(t, r.Len())
	})
}

func TestAFilterIsBounded(t *testing.T) {
	require.NoError(t, task.Filter{Actions: make([]string, 100)}.Check())
	require.Error(t, task.Filter{Actions: make([]string, 101)}.Check())
}

func TestIdsParseAsTheyPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := task.ID{Node: rapid.StringN(1, 30, -1).Draw(t, "node"), Number: rapid.Uint64Min(1).Draw(t, "number")}
		parsed, err := task.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, parsed)
	})
	for _, text := range []string{"", "a", "a:", ":1", "a:0", "a:-1", "a:b", "a:18446744073709551616"} {
		_, err := task.ParseID(text)
		require.EqualError(t, err, "malformed task id "+text)
	}
}
