package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/wlm"
)

// gate holds the answers of the data nodes to one search, or to all for "".
func (w *world) gate(search string) {
	require.NoError(w.t, w.holds.Hold(probe.DataNodeAnswer, probe.Filter{Search: search}))
}

func (w *world) open(search string) {
	require.True(w.t, w.holds.ReleaseOne(probe.DataNodeAnswer, probe.Filter{Search: search}))
}

// Case C01. Promise 2.
func TestARejectionReachesTheClientWhateverListenersAndCountersDo(t *testing.T) {
	type listener = func(context.Context, coordinator.Request) error
	for _, variant := range []struct {
		name    string
		started []listener
		fault   func(string) error
		counted bool
		log     string
	}{
		{name: "no listener", counted: true},
		{name: "a listener that returns an error", counted: true, log: "out of order",
			started: []listener{func(context.Context, coordinator.Request) error { return errors.New("out of order") }}},
		{name: "a listener that panics", counted: true, log: "out of order",
			started: []listener{func(context.Context, coordinator.Request) error { panic("out of order") }}},
		{name: "a stats sink that fails", fault: func(string) error { return errors.New("sink is full") }, log: "sink is full"},
		{name: "a stats sink that panics", fault: func(string) error { panic("sink is full") }, log: "sink is full"},
	} {
		t.Run(variant.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := 0
				started := append(variant.started, func(context.Context, coordinator.Request) error { heard++; return nil })
				w := newWorld(t, options{wlm: wlm.Config{CountFault: variant.fault}, config: coordinator.Config{Started: started}})
				w.group("g", cluster.ByGroup, 1)
				w.gate("a")
				a := w.start(t.Context(), in("a", "g"))
				synctest.Wait()
				asked := w.asked.Load()

				throttled(t, w.search(t.Context(), in("b", "g")))
				require.Equal(t, asked, w.asked.Load(), "no data node is asked for B")
				require.Equal(t, 1, heard, "listeners hear of A only, the ones after a broken one too")

				w.open("a")
				response := completed(t, <-a)
				require.True(t, response.Permit)
				require.Contains(t, w.log.String(), variant.log)

				count, uncounted := uint64(1), uint64(0)
				if !variant.counted {
					count, uncounted = 0, 1
				}
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: 1, Throttled: 1, Uncounted: uncounted}, w.outcomes("g"))
				// Six shard tasks and the search itself.
				require.Equal(t, wlm.GroupStats{ID: "id-g", Completions: 7, Throttled: count}, w.stats("id-g"))
				require.Equal(t, wlm.GroupStats{ID: cluster.DefaultGroupID}, w.stats(cluster.DefaultGroupID))
				w.idle()
			})
		})
	}
}

// Case C04.
func TestAReleaseHitsTheBucketItWasTakenFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.group("g", cluster.ByGroup, 2)
		w.gate("a")
		a := w.start(t.Context(), in("a", "g"))
		synctest.Wait()
		limit := int64(2)
		w.apply(&cluster.DeleteGroup{Name: "g"}, &cluster.CreateGroup{Group: cluster.Group{
			ID: "id-again", Name: "g", ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.01},
			Throttling: &cluster.Throttling{Attribute: cluster.ByGroup, NodeLimit: &limit},
		}})
		w.gate("b")
		b := w.start(t.Context(), in("b", "again"))
		synctest.Wait()
		require.Equal(t, 1, w.held("g"))
		require.Equal(t, 1, w.held("again"))
		w.open("a")
		completed(t, <-a)
		require.Equal(t, 0, w.held("g"))
		require.Equal(t, 1, w.held("again"), "the new bucket still has B's permit")

		w.gate("c")
		c := w.start(t.Context(), in("c", "again"))
		synctest.Wait()
		throttled(t, w.search(t.Context(), in("d", "again")))
		w.holds.Release(probe.DataNodeAnswer)
		completed(t, <-b)
		completed(t, <-c)
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: 1}, w.outcomes("g"), "A counts on the group that it was admitted by")
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-again", Completed: 2, Throttled: 1}, w.outcomes("again"))
		w.idle()
	})
}

// Case C05.
func TestCheckAndIncrementAreOneStepForTwoHundredSearchesAtOnce(t *testing.T) {
	for _, processors := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(processors, " processors"), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			synctest.Test(t, func(t *testing.T) {
				const searches, limit = 200, 3
				w := newWorld(t, options{dataNodes: 1, shards: 1})
				w.group("g", cluster.ByUsername, limit)
				for round := range rounds(40, 500) {
					w.gate("")
					barrier := make(chan struct{})
					answers := make(chan answer, searches)
					for range searches {
						go func() {
							<-barrier
							answers <- w.search(as(t.Context(), "u"), in("", "g"))
						}()
					}
					synctest.Wait()
					close(barrier)
					synctest.Wait()
					require.Len(t, w.holds.Parked(probe.DataNodeAnswer), limit, "searches at the data node in round %d", round)
					require.Equal(t, limit, w.held("g"))
					w.open("")
					admitted, refused := 0, 0
					for range searches {
						if a := <-answers; a.err == nil {
							admitted++
						} else {
							throttled(t, a)
							refused++
						}
					}
					require.Equal(t, []int{limit, searches - limit}, []int{admitted, refused}, "round %d", round)
					require.EqualValues(t, (round+1)*(searches-limit), w.stats("id-g").Throttled)
					w.idle()
				}
			})
		})
	}
}

// Case C06. Promises 3 and 4.
func TestAPermitIsReleasedOnceThoughTheSearchEndsItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends sync.Map // cancel functions by search
		var w *world
		w = newWorld(t, options{config: coordinator.Config{Ended: []func(context.Context, coordinator.Request, *coordinator.Response, error) error{
			func(ctx context.Context, r coordinator.Request, response *coordinator.Response, err error) error {
				require.NoError(t, err)
				require.Equal(t, 1, w.held("g"), "the permit is still held")
				cancel, _ := ends.Load(r.ID)
				cancel.(context.CancelFunc)()
				require.Error(t, ctx.Err())
				_, err = w.throttle.Stats(nil)
				return err
			},
		}}})
		w.group("g", cluster.ByGroup, 1)
		searches := rounds(200, 1000)
		for i := range searches {
			ctx, cancel := context.WithCancel(t.Context())
			id := fmt.Sprint(i)
			ends.Store(id, cancel)
			completed(t, w.search(ctx, in(id, "g")))
			require.Equal(t, 1, w.releases(id))
			w.idle()
		}
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: uint64(searches)}, w.outcomes("g"))

		ctx, cancel := context.WithCancel(t.Context())
		ends.Store("a", cancel)
		w.gate("a")
		a := w.start(ctx, in("a", "g"))
		synctest.Wait()
		throttled(t, w.search(t.Context(), in("b", "g"))) // two are never both in
		w.open("a")
		completed(t, <-a)
		w.idle()
	})
}

// Case C12, the search half.
func TestAGroupWithAStoredFaultIsNotThrottledAndItsNeighbourIs(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for name, bad := range map[string]*cluster.Throttling{
		"limit 0":           {Attribute: cluster.ByGroup, NodeLimit: number(0)},
		"limit -5":          {Attribute: cluster.ByGroup, NodeLimit: number(-5)},
		"no limit":          {Attribute: cluster.ByUsername},
		"no attribute":      {NodeLimit: number(1)},
		"unknown attribute": {Attribute: "tenant", NodeLimit: number(1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.apply(&cluster.CreateGroup{Group: cluster.Group{ID: "id-bad", Name: "bad", ResiliencyMode: cluster.Enforced, Throttling: bad}})
				w.group("good", cluster.ByGroup, 1)
				w.gate("")
				ctx := as(t.Context(), "alice")
				first := w.start(ctx, in("1", "bad"))
				second := w.start(ctx, in("2", "bad"))
				third := w.start(ctx, in("3", "good"))
				synctest.Wait()
				throttled(t, w.search(ctx, in("4", "good")))
				w.open("")
				require.False(t, completed(t, <-first).Permit)
				require.False(t, completed(t, <-second).Permit)
				require.True(t, completed(t, <-third).Permit)
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-bad", Completed: 2}, w.outcomes("bad"))
				w.idle()
			})
		})
	}
}

// Promise 2: what fails after admission gives the permit back.
func TestAnIndexThatDoesNotExistIsFoundMissingAfterAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.group("g", cluster.ByGroup, 1)
		missing := in("missing", "g")
		missing.Index = "logs,gone"
		a := w.search(t.Context(), missing)
		require.Equal(t, cluster.IndexNotFound, cluster.KindOf(a.err))
		require.Equal(t, 1, w.releases("missing"), "it had a permit")
		w.gate("one")
		one := w.start(t.Context(), in("one", "g"))
		synctest.Wait()
		throttled(t, w.search(t.Context(), missing))
		w.open("one")
		completed(t, <-one)
		for _, bad := range []coordinator.Request{{From: -1}, {Size: -1}} {
			bad.Index, bad.GroupHeader = "logs", "id-g"
			require.Equal(t, cluster.IllegalArgument, cluster.KindOf(w.search(t.Context(), bad).err))
		}
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: 1, Failed: 3, Throttled: 1}, w.outcomes("g"))
		w.idle()
	})
}

// How the names of indices are read is up to each search, also where the one
// before had the same names.
func TestASearchSaysHowItsIndicesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.group("g", cluster.ByGroup, 1)
		asked := in("asked", "g")
		for _, row := range []struct {
			index   string
			options cluster.IndexOptions
			whole   bool
		}{
			{"logs", cluster.IndexOptions{}, true},
			{"logs,gone", cluster.IndexOptions{}, false},
			{"logs,gone", cluster.IndexOptions{IgnoreUnavailable: true}, true},
			{"logs,gone", cluster.IndexOptions{}, false},
			{"gone*", cluster.IndexOptions{}, true},
			{"gone*", cluster.IndexOptions{RefuseNone: true}, false},
			{"lo*", cluster.IndexOptions{Wildcards: cluster.ExpandNone}, false},
			{"lo*", cluster.IndexOptions{}, true},
		} {
			asked.Index, asked.Options = row.index, row.options
			if a := w.search(t.Context(), asked); row.whole {
				completed(t, a)
			} else {
				require.Equal(t, cluster.IndexNotFound, cluster.KindOf(a.err), row)
			}
		}
		w.idle()
	})
}

// Promise 1: a search is judged by the state that it read.
func TestASearchThatReadTheOldLimitIsJudgedByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.group("g", cluster.ByGroup, 1)
		require.NoError(t, w.holds.Hold(probe.CoordinatorRead, probe.Filter{Search: "late"}))
		late := w.start(t.Context(), in("late", "g"))
		synctest.Wait()
		w.apply(&cluster.UpdateGroup{Name: "g", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(2))}})
		w.gate("one")
		one := w.start(t.Context(), in("one", "g"))
		synctest.Wait()
		w.holds.Release(probe.CoordinatorRead)
		throttled(t, <-late)
		completed(t, w.search(t.Context(), in("two", "g")))
		w.open("one")
		completed(t, <-one)
		w.idle()
	})
}

func TestAClosedCoordinatorEndsAndRefusesSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.group("g", cluster.ByGroup, 1)
		long := in("long", "g")
		long.ServiceTime = time.Hour
		running := w.start(t.Context(), long)
		synctest.Wait()
		require.Equal(t, 1, w.c.Running())
		began := time.Now()
		w.c.Close()
		require.Zero(t, time.Since(began), "the data nodes are told to stop")
		require.Equal(t, cluster.ClusterBlock, cluster.KindOf((<-running).err))
		require.Equal(t, cluster.ClusterBlock, cluster.KindOf(w.search(t.Context(), in("late", "g")).err))
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Failed: 1}, w.outcomes("g"))
		require.EqualValues(t, 1, w.outcomesOf(cluster.DefaultGroupID).Failed)
		w.idle()
		w.c.Close()
	})
}

func TestAConfigReportsAllItsFaults(t *testing.T) {
	err := coordinator.Config{Calls: -1}.Check()
	for _, want := range []string{"node's name", "source of states", "needs peers", "needs a throttle", "-1 calls"} {
		require.ErrorContains(t, err, want)
	}
	require.Panics(t, func() { coordinator.New(coordinator.Config{}) })
}
