package datanode_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/datanode"
)

// of makes a request of a context.
func of(phase wire.Phase, number uint64, shards ...int) *wire.SearchRequest {
	r := request("scroll", 0, shards...)
	r.Phase, r.Context = phase, wire.ContextID{Session: 1, Number: number}
	return r
}

func ask(t testing.TB, d *datanode.DataNode, r *wire.SearchRequest) *wire.SearchAnswer {
	t.Helper()
	a, err := d.Search(context.Background(), "m1", r)
	require.NoError(t, err)
	return a
}

// Promise 7, against a model: contexts by number, each with what was taken of
// its one shard and when its time is over.
func TestScrollContextsAgreeWithAModel(t *testing.T) {
	most := "3"
	logs := stateWith(t, "logs", 1, cluster.ServiceTime{})
	logs, err := cluster.Apply(logs, &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingMaxScrolls: &most}}})
	require.NoError(t, err)
	whole := request("whole", 0, 0)
	whole.Size = 1000
	hits := ask(t, open(t, logs, nil), whole).Shards[0].Hits

	type context struct {
		taken     int
		keepAlive time.Duration
		over      time.Time
	}
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			d := datanode.New(datanode.Config{Node: "d1", States: func() *cluster.State { return logs }})
			defer d.Close()
			model := map[uint64]*context{}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				number := rapid.Uint64Range(1, 5).Draw(rt, "number")
				k := model[number]
				if k != nil && !time.Now().Before(k.over) {
					k = nil
				}
				switch rapid.SampledFrom([]string{"open", "page", "take", "free", "free all", "wait"}).Draw(rt, "step") {
				case "open":
					r := of(wire.OpenScroll, number, 0)
					r.KeepAlive = time.Duration(rapid.IntRange(1, 20).Draw(rt, "keep alive")) * time.Second
					held := 0
					for _, other := range model {
						if time.Now().Before(other.over) {
							held++
						}
					}
					failure := ask(t, d, r).Shards[0].Failure
					if model[number] != nil || held == 3 {
						if k != nil || held == 3 {
							require.NotNil(rt, failure)
							continue
						}
						if failure != nil { // its predecessor's time is over, and nobody has looked
							continue
						}
					}
					require.Nil(rt, failure)
					model[number] = &context{0, r.KeepAlive, time.Now().Add(r.KeepAlive)}
				case "page":
					r := of(wire.Query, number, 0)
					r.Size = rapid.IntRange(1, 9).Draw(rt, "size")
					r.KeepAlive = time.Duration(rapid.IntRange(0, 20).Draw(rt, "keep alive")) * time.Second
					a := ask(t, d, r).Shards[0]
					if k == nil {
						require.Equal(rt, wire.ContextMissing, a.Failure.Kind)
						continue
					}
					require.Equal(rt, hits[k.taken:k.taken+r.Size], a.Hits)
					if r.KeepAlive > 0 {
						k.keepAlive = r.KeepAlive
					}
					k.over = time.Now().Add(k.keepAlive)
				case "take":
					r := of(wire.Fetched, number, 0)
					r.Taken = []int{rapid.IntRange(0, 9).Draw(rt, "taken")}
					a := ask(t, d, r).Shards[0]
					require.Equal(rt, k == nil, a.Failure != nil)
					if k != nil {
						k.taken += r.Taken[0]
						k.over = time.Now().Add(k.keepAlive)
					}
				case "free":
					freed := ask(t, d, of(wire.Free, number, 0)).Freed
					require.Equal(rt, k != nil, freed == 1)
					delete(model, number)
				case "free all":
					held := 0
					for _, other := range model {
						if time.Now().Before(other.over) {
							held++
						}
					}
					require.Equal(rt, held, ask(t, d, &wire.SearchRequest{Phase: wire.FreeScrolls}).Freed)
					clear(model)
				case "wait":
					time.Sleep(time.Duration(rapid.IntRange(1, 15).Draw(rt, "seconds")) * time.Second)
				}
			}
		})
	})
}

// A context does not end while a search uses it, however long that takes.
func TestAContextOutlivesTheSearchThatUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := stateWith(t, "logs", 1, cluster.ServiceTime{})
		d := datanode.New(datanode.Config{Node: "d1", States: func() *cluster.State { return logs }})
		defer d.Close()
		r := of(wire.OpenScroll, 1, 0)
		r.KeepAlive, r.ServiceTime = time.Second, time.Minute
		require.Nil(t, ask(t, d, r).Shards[0].Failure)
		require.Nil(t, ask(t, d, of(wire.Query, 1, 0)).Shards[0].Failure)
		time.Sleep(time.Second)
		require.NotNil(t, ask(t, d, of(wire.Query, 1, 0)).Shards[0].Failure)

		// One that nobody hears of is not kept.
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r = of(wire.OpenScroll, 2, 0)
		r.KeepAlive, r.ServiceTime = time.Hour, time.Minute
		_, err := d.Search(ctx, "m1", r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, ask(t, d, of(wire.Query, 2, 0)).Shards[0].Failure)
	})
}

func TestPointsAreListedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := stateWith(t, "logs", 3, cluster.ServiceTime{})
		d := datanode.New(datanode.Config{Node: "d1", States: func() *cluster.State { return logs }})
		defer d.Close()
		began := time.Now().UnixMilli()
		for number, name := range []string{"second name", "a name"} {
			r := of(wire.OpenPoint, uint64(number+1), 0, 2)
			r.Point, r.KeepAlive = name, time.Duration(2-number)*time.Minute
			a := ask(t, d, r)
			require.Len(t, a.Shards, 2)
			require.Nil(t, a.Shards[1].Failure)
			time.Sleep(time.Second)
		}
		list := &wire.SearchRequest{Phase: wire.ListPoints}
		points := []wire.Point{{Text: "second name", Created: began, KeepAlive: 2 * time.Minute}, {Text: "a name", Created: began + 1000, KeepAlive: time.Minute}}
		require.Equal(t, points, ask(t, d, list).Points)
		require.Zero(t, ask(t, d, &wire.SearchRequest{Phase: wire.FreeScrolls}).Freed, "points are no scrolls")
		time.Sleep(time.Minute)
		require.Equal(t, points[:1], ask(t, d, list).Points)
		require.Equal(t, 2, ask(t, d, of(wire.Free, 1, 0, 2)).Freed)
		require.Empty(t, ask(t, d, list).Points)
	})
}

// A distribution that comes with a search is drawn from for each shard, from the
// stream of (seed, node, coordinator, search, index, shard) as the index's own.
func TestAShardDrawsFromTheDistributionOfItsSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := stateWith(t, "logs", 16, cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 10 * time.Millisecond, P99: 80 * time.Millisecond})
		none := stateWith(t, "logs", 16, cluster.ServiceTime{})
		took := func(s *cluster.State, given cluster.ServiceTime, shards ...int) time.Duration {
			d := datanode.New(datanode.Config{Node: "d1", Seed: 3, States: func() *cluster.State { return s }})
			defer d.Close()
			r := request("one", -1, shards...)
			r.Service = given
			begun := time.Now()
			ask(t, d, r)
			return time.Since(begun)
		}
		distribution := own.Index("logs").ServiceTime
		var each []time.Duration
		for shard := 0; shard < 16; shard += 2 {
			each = append(each, took(none, distribution, shard))
			require.Equal(t, took(own, cluster.ServiceTime{}, shard), each[len(each)-1], "the same draw as from the index's own")
		}
		require.Equal(t, slices.Max(each), took(none, distribution, 0, 2, 4, 6, 8, 10, 12, 14), "together they take as long as the slowest")
		slices.Sort(each)
		require.Len(t, slices.Compact(each), 8, "each draws for itself")
		require.Equal(t, time.Second, took(own, cluster.ServiceTime{Distribution: cluster.Constant, Mean: time.Second}, 0, 2))
	})
}

// Of one search no more tasks are served at once than it allows, and those
// beyond that take no place of others.
func TestASearchLimitsItsOwnTasks(t *testing.T) {
	for most, want := range map[int]time.Duration{0: 2 * time.Second, 1: 8 * time.Second, 2: 4 * time.Second, 3: 3 * time.Second, 9: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			logs := stateWith(t, "logs", 16, cluster.ServiceTime{})
			d := datanode.New(datanode.Config{Node: "d1", Workers: 5, Queue: 3, States: func() *cluster.State { return logs }})
			defer d.Close()
			r := request("one", time.Second, 0, 2, 4, 6, 8, 10, 12, 14)
			r.Concurrency = most
			begun := time.Now()
			a := ask(t, d, r)
			for _, s := range a.Shards {
				require.Nil(t, s.Failure)
			}
			require.Equal(t, want, time.Since(begun), "%d at once", most)
			require.Equal(t, datanode.Stats{Completed: 8}, d.Stats())

			ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer leave()
			_, err := d.Search(ctx, "m1", r)
			require.Error(t, err)
			require.Equal(t, datanode.Stats{Completed: 8, Cancelled: 8}, d.Stats())
		})
	}
}

// A shard's task names its parent by the id of the coordinator's node.
func TestShardsAreListedWhileTheyAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := stateWith(t, "logs", 4, cluster.ServiceTime{})
		tasks := task.New("d1-id")
		d := datanode.New(datanode.Config{Node: "d1", Tasks: tasks, States: func() *cluster.State { return logs }})
		defer d.Close()
		ended := make(chan error, 1)
		go func() {
			r := request("one", time.Hour, 0, 2)
			r.Task, r.Headers = 7, []wire.Header{{Name: "X-Opaque-Id", Value: "mine"}}
			_, err := d.Search(t.Context(), "d2", r)
			ended <- err
		}()
		synctest.Wait()
		list := tasks.List(task.Filter{})
		require.Len(t, list, 2)
		for i, x := range list {
			require.Equal(t, task.ID{Node: logs.Node("d2").ID, Number: 7}, x.Parent)
			require.Equal(t, "mine", x.OpaqueID)
			require.Equal(t, fmt.Sprintf("shardId[[logs][%d]]", 2*i), x.Description)
		}
		tasks.Cancel(t.Context(), task.Filter{Number: list[1].ID.Number}, "enough", false)
		err := <-ended
		require.Equal(t, task.Cancelled, cluster.KindOf(err))
		require.ErrorContains(t, err, "cancelled task with reason: enough")
		require.Zero(t, tasks.Len())
	})
}
