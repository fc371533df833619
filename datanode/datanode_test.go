package datanode_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/datanode"
)

// stateWith returns a state with data nodes d1 and d2 and an index of some
// shards, the even ones on d1.
func stateWith(t testing.TB, index string, shards int, service cluster.ServiceTime) *cluster.State {
	s := cluster.Empty()
	for _, c := range []cluster.Command{
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "1", Roles: []cluster.Role{cluster.Data}}},
		&cluster.PutNode{Node: cluster.Node{Name: "d2", ID: "2", Roles: []cluster.Role{cluster.Data}}},
		&cluster.CreateIndex{Name: index, Shards: shards, ServiceTime: service},
	} {
		var err error
		s, err = cluster.Apply(s, c)
		require.NoError(t, err)
	}
	return s
}

// open returns data node d1, closed when the test ends, with what change makes
// of its config.
func open(t testing.TB, s *cluster.State, change func(*datanode.Config)) *datanode.DataNode {
	c := datanode.Config{Node: "d1", Seed: 7, States: func() *cluster.State { return s }}
	if change != nil {
		change(&c)
	}
	d := datanode.New(c)
	t.Cleanup(d.Close)
	return d
}

// request asks for shards of index logs.
func request(search string, service time.Duration, shards ...int) *wire.SearchRequest {
	r := &wire.SearchRequest{Search: search, Group: "g", Query: []byte("q"), Size: 10, ServiceTime: service}
	for _, shard := range shards {
		r.Shards = append(r.Shards, wire.ShardID{Index: "logs", Shard: shard})
	}
	return r
}

// Promise 3.
func TestAnswersFollowFromIndexShardAndQueryAlone(t *testing.T) {
	logs := stateWith(t, "logs", 8, cluster.ServiceTime{})
	ask := func(change func(*datanode.Config), r *wire.SearchRequest) *wire.SearchAnswer {
		a, err := open(t, logs, change).Search(t.Context(), "m1", r)
		require.NoError(t, err)
		return a
	}
	first := ask(nil, request("one", 0, 0, 2, 4, 6))
	again := ask(func(c *datanode.Config) { c.Seed = 99 }, request("two", 0, 0, 2, 4, 6))
	require.Equal(t, first, again, "neither seed nor search matters")

	other := request("one", 0, 0, 2, 4, 6)
	other.Query = []byte("r")
	require.NotEqual(t, first, ask(nil, other), "the query matters")

	wide := request("one", 0, 0)
	wide.From, wide.Size = 5, 15
	all := ask(nil, wide).Shards[0]
	require.Len(t, all.Hits, 20, "a shard returns its best from+size")
	require.Equal(t, first.Shards[0].Hits, all.Hits[:10], "a page is a part of a longer one")

	seen := map[string]bool{}
	for i, a := range first.Shards {
		require.Nil(t, a.Failure)
		require.Equal(t, wire.ShardID{Index: "logs", Shard: 2 * i}, a.Shard, "in the order asked")
		require.Positive(t, a.Searched)
		require.LessOrEqual(t, a.Total, a.Searched)
		require.Equal(t, a.MaxScore, a.Hits[0].Score)
		require.Len(t, a.Hits, 10)
		for k, h := range a.Hits {
			require.False(t, seen[h.ID], "id %s came twice", h.ID)
			seen[h.ID] = true
			require.Len(t, h.ID, 20)
			require.Positive(t, h.Score)
			require.True(t, k == 0 || a.Hits[k-1].Score > h.Score, "scores fall")
		}
	}
}

// Promise 3: the greatest window still has falling scores and distinct ids.
func TestAnswersHoldUpToTheGreatestWindow(t *testing.T) {
	d := open(t, stateWith(t, "logs", 64, cluster.ServiceTime{}), nil)
	for shard := 0; shard < 64; shard += 2 {
		r := request("one", 0, shard)
		r.Size = datanode.MaxResultWindow
		a, err := d.Search(t.Context(), "m1", r)
		require.NoError(t, err)
		hits, seen := a.Shards[0].Hits, map[string]bool{}
		require.Len(t, hits, int(min(a.Shards[0].Total, datanode.MaxResultWindow)))
		for k, h := range hits {
			seen[h.ID] = true
			require.True(t, h.Score > 0 && (k == 0 || hits[k-1].Score > h.Score))
		}
		require.Len(t, seen, len(hits))
	}
}

// Promise 5.
func TestAShardThatIsNotHereFailsAlone(t *testing.T) {
	d := open(t, stateWith(t, "logs", 4, cluster.ServiceTime{}), nil)
	r := request("one", 0, 0, 1, 4, -1)
	r.Shards = append(r.Shards, wire.ShardID{Index: "gone", Shard: 0})
	a, err := d.Search(t.Context(), "m1", r)
	require.NoError(t, err)
	kinds := []cluster.Kind{"", wire.ShardNotFound, wire.ShardNotFound, wire.ShardNotFound, cluster.IndexNotFound}
	for i, kind := range kinds {
		require.Equal(t, r.Shards[i], a.Shards[i].Shard)
		if kind == "" {
			require.Nil(t, a.Shards[i].Failure)
			continue
		}
		require.Equal(t, kind, a.Shards[i].Failure.Kind, "%v", r.Shards[i])
	}
	require.Equal(t, datanode.Stats{Completed: 1}, d.Stats())
}

func TestAWindowBeyondTheBoundIsRefused(t *testing.T) {
	d := open(t, stateWith(t, "logs", 4, cluster.ServiceTime{}), nil)
	for _, page := range [][2]int{{1, 10000}, {10001, 0}, {0, 10001}, {-1, 5}, {5, -1}, {math.MaxInt, math.MaxInt}} {
		r := request("one", 0, 0)
		r.From, r.Size = page[0], page[1]
		a, err := d.Search(t.Context(), "m1", r)
		require.NoError(t, err)
		require.Equal(t, cluster.IllegalArgument, a.Shards[0].Failure.Kind, "%v", page)
	}
	require.Zero(t, d.Stats().Completed)
}

// Promise 1.
func TestATaskThatFindsTheQueueFullFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := stateWith(t, "logs", 20, cluster.ServiceTime{})
		counted := map[string]int{}
		var text strings.Builder
		d := open(t, logs, func(c *datanode.Config) {
			c.Workers, c.Queue = 2, 3
			c.Completed = func(group string) { counted[group]++ }
			c.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		began := time.Now()
		a, err := d.Search(t.Context(), "m1", request("one", time.Second, 0, 2, 4, 6, 8, 10, 12))
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(began), "5 tasks on 2 workers")
		for i := range a.Shards {
			if i < 5 {
				require.Nil(t, a.Shards[i].Failure)
			} else {
				require.Equal(t, cluster.TooMany, a.Shards[i].Failure.Kind)
			}
		}
		require.Equal(t, datanode.Stats{Completed: 5, Rejected: 2}, d.Stats())
		require.Equal(t, map[string]int{"g": 5}, counted)
		require.Contains(t, text.String(), "rejected_tasks=2")
	})
}

// Promise 2.
func TestTheEndOfAContextFreesWorkersAndQueueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, stateWith(t, "logs", 20, cluster.ServiceTime{}), func(c *datanode.Config) { c.Workers, c.Queue = 2, 3 })
		ctx, cancel := context.WithCancel(t.Context())
		long := make(chan error, 1)
		go func() {
			_, err := d.Search(ctx, "m1", request("long", time.Hour, 0, 2, 4, 6, 8))
			long <- err
		}()
		synctest.Wait()
		require.Equal(t, datanode.Stats{Active: 2, Queued: 3}, d.Stats())
		began := time.Now()
		cancel()
		require.ErrorIs(t, <-long, context.Canceled)
		require.Equal(t, datanode.Stats{Cancelled: 5}, d.Stats())
		_, err := d.Search(t.Context(), "m1", request("next", time.Second, 0, 2))
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began), "the next search did not wait")
		require.Equal(t, datanode.Stats{Cancelled: 5, Completed: 2}, d.Stats())
		_, err = d.Search(ctx, "m1", request("late", 0, 0))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, datanode.Stats{Cancelled: 5, Completed: 2}, d.Stats(), "a search that has ended before it came is not worked on")
	})
}

func TestAHeldAnswerWaitsAndKeepsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var holds probe.Holds
		d := open(t, stateWith(t, "logs", 4, cluster.ServiceTime{}), func(c *datanode.Config) { c.Probe = probe.New("d1", &holds) })
		require.NoError(t, holds.Hold(probe.DataNodeAnswer, probe.Filter{Search: "one"}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := d.Search(ctx, "m1", request("one", time.Second, 0))
			done <- err
		}()
		require.True(t, holds.Await(nil, probe.DataNodeAnswer, 1))
		require.Equal(t, datanode.Stats{Completed: 1}, d.Stats())
		_, err := d.Search(t.Context(), "m1", request("two", 0, 0))
		require.NoError(t, err, "another search is not held")
		cancel()
		holds.Release(probe.DataNodeAnswer)
		require.ErrorIs(t, <-done, context.Canceled, "nobody waits for this answer any more")
	})
}

// Promise 6.
func TestCloseEndsEverySearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, stateWith(t, "logs", 4, cluster.ServiceTime{}), func(c *datanode.Config) { c.Workers = 1 })
		ended := make(chan error, 3)
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				_, err := d.Search(t.Context(), "m1", request(name, time.Hour, 0, 2))
				ended <- err
			}()
		}
		synctest.Wait()
		d.Close()
		for range 3 {
			require.ErrorIs(t, <-ended, datanode.ErrClosed)
		}
		require.Equal(t, datanode.Stats{Cancelled: 6}, d.Stats())
		_, err := d.Search(t.Context(), "m1", request("late", 0, 0))
		require.ErrorIs(t, err, datanode.ErrClosed)
		d.Close()
	})
}

// Promise 4.
func TestWhatASearchDrawsDoesNotDependOnTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := stateWith(t, "logs", 4, cluster.ServiceTime{Distribution: cluster.Exponential, Mean: time.Second})
		took := func(d *datanode.DataNode, name string) time.Duration {
			began := time.Now()
			_, err := d.Search(t.Context(), "m1", request(name, -1, 0))
			require.NoError(t, err)
			return time.Since(began)
		}
		one, two := open(t, logs, nil), open(t, logs, nil)
		a1, b1 := took(one, "a"), took(one, "b")
		b2, a2 := took(two, "b"), took(two, "a")
		require.Equal(t, a1, a2)
		require.Equal(t, b1, b2)
		require.NotEqual(t, a1, b1)
		require.NotEqual(t, a1, took(one, "a"), "a name that comes again draws anew")
		require.NotEqual(t, a1, took(open(t, logs, func(c *datanode.Config) { c.Seed = 8 }), "a"), "another seed")
	})
}

// Promise 4, for more names than there is memory for.
func TestNamesThatPushOneAnotherOutDrawTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names = 3000
		logs := stateWith(t, "logs", 4, cluster.ServiceTime{Distribution: cluster.Exponential, Mean: time.Second})
		one, two := open(t, logs, nil), open(t, logs, nil)
		took := func(d *datanode.DataNode, i int) time.Duration {
			began := time.Now()
			_, err := d.Search(t.Context(), "m1", request(fmt.Sprint(i), -1, 0))
			require.NoError(t, err)
			return time.Since(began)
		}
		var forth, back [names]time.Duration
		for i := range names {
			forth[i] = took(one, i)
			back[names-1-i] = took(two, names-1-i)
		}
		require.Equal(t, forth, back)
	})
}

// Each distribution's mean and quantiles, seen through searches of virtual
// time. The bounds are over three standard errors wide, and the seed is fixed.
func TestServiceTimesFollowTheirDistribution(t *testing.T) {
	const draws = 10000
	second := float64(time.Second)
	for _, test := range []struct {
		name               string
		service            cluster.ServiceTime
		mean, p50, p99, by float64 // by: share that mean and p50 may be off; p99 three times as much
	}{
		{"no service time", cluster.ServiceTime{}, 0, 0, 0, 0},
		{"constant", cluster.ServiceTime{Distribution: cluster.Constant, Mean: time.Second}, second, second, second, 0},
		{"exponential", cluster.ServiceTime{Distribution: cluster.Exponential, Mean: time.Second}, second, second * math.Ln2, second * math.Log(100), 0.04},
		{"lognormal", cluster.ServiceTime{Distribution: cluster.LogNormal, P50: time.Second, P99: 4 * time.Second}, second * math.Exp(math.Pow(math.Log(4)/2.3263478740408408, 2)/2), second, 4 * second, 0.04},
		{"uniform", cluster.ServiceTime{Distribution: cluster.Uniform, Min: time.Second, Max: 3 * time.Second}, 2 * second, 2 * second, 2.98 * second, 0.02},
		{"pareto", cluster.ServiceTime{Distribution: cluster.Pareto, Min: time.Second, Alpha: 3}, 1.5 * second, second * math.Cbrt(2), second * math.Cbrt(100), 0.04},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, stateWith(t, "logs", 1, test.service), nil)
				seen := make([]float64, draws)
				sum := 0.0
				for i := range seen {
					began := time.Now()
					_, err := d.Search(t.Context(), "m1", request("s", -1, 0))
					require.NoError(t, err)
					seen[i] = float64(time.Since(began))
					sum += seen[i]
				}
				slices.Sort(seen)
				near := func(what string, want, got, by float64) {
					require.InDelta(t, want, got, want*by, what)
				}
				near("mean", test.mean, sum/draws, test.by)
				near("p50", test.p50, seen[draws/2], test.by)
				near("p99", test.p99, seen[draws*99/100], 3*test.by)
			})
		})
	}
}

func TestAConfigReportsAllItsFaults(t *testing.T) {
	err := datanode.Config{Workers: -1, Queue: -2}.Check()
	for _, want := range []string{"needs a name", "source of states", "-1 workers", "queue of -2"} {
		require.ErrorContains(t, err, want)
	}
	require.Panics(t, func() { datanode.New(datanode.Config{}) })
	require.NoError(t, datanode.Config{Node: "d1", States: cluster.Empty}.Check())
}
