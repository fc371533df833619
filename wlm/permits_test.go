package wlm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestLocksAreAPowerOfTwo(t *testing.T) {
	for _, bad := range []int{-1, 3, 48, 2 * wlm.DefaultLocks} {
		_, err := wlm.New(wlm.Config{Locks: bad})
		require.ErrorContains(t, err, fmt.Sprintf("a throttle cannot have %d locks: a power of two of at most 64", bad))
	}
}

// TestPermitsAgreeWithANaiveModel draws acquires of few keys under limits that
// change, releases, and releases of what was released. One after another, both
// ways of acquiring are exact. Hashes are drawn from three values, so that
// almost all keys collide.
func TestPermitsAgreeWithANaiveModel(t *testing.T) {
	for _, acquire := range []string{"exact", "rollback"} {
		t.Run(acquire, func(t *testing.T) {
			switches := with(t, "acquire", acquire)
			rapid.Check(t, func(t *rapid.T) {
				locks := rapid.SampledFrom([]int{0, 1, 2, wlm.DefaultLocks}).Draw(t, "locks")
				th, err := wlm.New(wlm.Config{Switches: switches, Locks: locks})
				require.NoError(t, err)
				type taken struct {
					permit *wlm.Permit
					key    [3]string // group, attribute, value
				}
				var live, ended []taken
				model := map[[3]string]int{}
				t.Repeat(map[string]func(*rapid.T){
					"acquire": func(t *rapid.T) {
						key := [3]string{
							rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"),
							string(rapid.SampledFrom([]cluster.Attribute{cluster.ByUsername, cluster.ByRole}).Draw(t, "by")),
							fmt.Sprint("name-", rapid.IntRange(0, 30).Draw(t, "value")),
						}
						limit := rapid.IntRange(1, 4).Draw(t, "limit")
						hash := uint64(len(key[2])+int(key[2][len(key[2])-1])) % 3 << 6
						p := new(wlm.Permit)
						require.Equal(t, model[key] < limit, th.AcquireHashed(hash, key[0], cluster.Attribute(key[1]), key[2], limit, p))
						require.Equal(t, model[key] < limit, p.Held())
						if p.Held() {
							model[key]++
							live = append(live, taken{p, key})
						}
					},
					"release": func(t *rapid.T) {
						if len(live) == 0 {
							t.Skip("nothing is held")
						}
						i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
						require.True(t, live[i].permit.Release())
						require.False(t, live[i].permit.Held())
						model[live[i].key]--
						ended = append(ended, live[i])
						live = append(live[:i], live[i+1:]...)
					},
					"release again": func(t *rapid.T) {
						if len(ended) == 0 {
							t.Skip("nothing was released")
						}
						require.False(t, ended[rapid.IntRange(0, len(ended)-1).Draw(t, "which")].permit.Release())
					},
					"": func(t *rapid.T) { require.Equal(t, view(model), th.Permits()) },
				})
			})
		})
	}
}

// view is what Permits must say of a model.
func view(model map[[3]string]int) []wlm.GroupPermits {
	groups := []wlm.GroupPermits{}
	for _, id := range []string{"g", "h"} {
		g := wlm.GroupPermits{Group: id}
		for key, held := range model {
			if key[0] == id && held > 0 {
				g.Buckets++
				g.Held += held
			}
		}
		if g.Buckets > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// TestCheckAndIncrementAreOneStep is case C05 at the throttle: 200 goroutines
// at one barrier, limit 3, every round, whatever the number of processors.
// Under rollback no more than 3 get in, and none is counted that got in.
func TestCheckAndIncrementAreOneStep(t *testing.T) {
	const searches, limit = 200, 3
	rounds := times(500, 30)
	for _, acquire := range []string{"exact", "rollback"} {
		for _, processors := range []int{1, 4, 16} {
			t.Run(fmt.Sprintf("%s, %d processors", acquire, processors), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				s := enabled(t, group("g", cluster.ByUsername, limit))
				th := throttle(t, wlm.Config{Switches: with(t, "acquire", acquire)}, s)
				var throttled uint64
				for range rounds {
					permits, refused := atOnce(t, th, s, user("alice"), searches)
					counted := stats(t, th, "g").Throttled - throttled
					throttled += counted
					require.EqualValues(t, refused, counted)
					if acquire == "exact" {
						require.Len(t, permits, limit)
					} else {
						require.LessOrEqual(t, len(permits), limit)
					}
					require.Equal(t, searches, len(permits)+refused)
					for _, p := range permits {
						require.True(t, p.Release())
					}
					require.Empty(t, th.Permits())
				}
			})
		}
	}
}

// atOnce admits n searches at a barrier and returns the permits and how many
// were refused.
func atOnce(t *testing.T, th *wlm.Throttle, s *cluster.State, ctx context.Context, n int) (permits []*wlm.Permit, refused int) {
	t.Helper()
	var done sync.WaitGroup
	start := make(chan struct{})
	all, errs := make([]wlm.Permit, n), make([]error, n)
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = th.Admit(ctx, s, "g", "", &all[i])
		})
	}
	close(start)
	done.Wait()
	for i, err := range errs {
		if _, ok := errors.AsType[*wlm.Rejection](err); ok {
			refused++
			continue
		}
		require.NoError(t, err)
		require.True(t, all[i].Held())
		permits = append(permits, &all[i])
	}
	return permits, refused
}

// TestRollbackMayRefuseOneTooMany shows what the pull request's way does and
// the exact one cannot: two searches look before either is taken back, and
// both are refused although one permit is free.
func TestRollbackMayRefuseOneTooMany(t *testing.T) {
	s := enabled(t, group("g", cluster.ByGroup, 1))
	holds := &probe.Holds{}
	th := throttle(t, wlm.Config{Switches: with(t, "acquire", "rollback"), Probe: probe.New("n1", holds)}, s)
	require.NoError(t, holds.Hold(probe.AcquireLook, probe.Filter{}))
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- th.Admit(context.Background(), s, "g", "", new(wlm.Permit)) }()
	}
	require.True(t, holds.Await(nil, probe.AcquireLook, 2))
	require.Empty(t, th.Permits(), "an increment is not a permit")
	require.NoError(t, holds.Hold(probe.AcquireRollback, probe.Filter{}))
	holds.Release(probe.AcquireLook)
	require.True(t, holds.Await(nil, probe.AcquireRollback, 2))
	holds.Release(probe.AcquireRollback)
	for range 2 {
		require.ErrorAs(t, <-errs, new(*wlm.Rejection))
	}
	buckets, _, _ := th.Footprint()
	require.Zero(t, buckets)
	require.EqualValues(t, 2, stats(t, th, "g").Throttled)
	require.NoError(t, th.Admit(context.Background(), s, "g", "", new(wlm.Permit)), "nothing of them is left")
}

// TestAnIncrementKeepsItsBucket: while a search has incremented and not looked,
// searches of two colliding keys come. Nobody's bucket is taken.
func TestAnIncrementKeepsItsBucket(t *testing.T) {
	var th *wlm.Throttle
	meanwhile := true
	acquire := func(user string, p *wlm.Permit) bool {
		return th.AcquireHashed(64, "g", cluster.ByUsername, user, 1, p)
	}
	var others [2]wlm.Permit
	hook := probe.HookFunc(func(e probe.Event) {
		if e.Step == probe.AcquireLook && meanwhile {
			meanwhile = false
			for i := range others {
				require.True(t, acquire(fmt.Sprint("other-", i), &others[i]))
			}
		}
	})
	th = throttle(t, wlm.Config{Switches: with(t, "acquire", "rollback"), Probe: probe.New("n1", hook)}, cluster.Empty())
	var p wlm.Permit
	require.True(t, acquire("alice", &p))
	require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 3, Held: 3}}, th.Permits())
	require.False(t, acquire("alice", new(wlm.Permit)))
	for _, held := range []*wlm.Permit{&others[0], &p, &others[1]} {
		require.True(t, held.Release())
	}
	buckets, _, _ := th.Footprint()
	require.Zero(t, buckets)
}

// TestOnePermitIsReleasedOnce is case C06 at the throttle.
func TestOnePermitIsReleasedOnce(t *testing.T) {
	for _, acquire := range []string{"exact", "rollback"} {
		s := enabled(t, group("g", cluster.ByGroup, 2))
		th := throttle(t, wlm.Config{Switches: with(t, "acquire", acquire)}, s)
		got, other := admit(t, th, context.Background(), s, "g")
		require.Equal(t, "permit", got)
		for range times(10_000, 1_000) {
			got, p := admit(t, th, context.Background(), s, "g")
			require.Equal(t, "permit", got)
			var done sync.WaitGroup
			var released atomic.Int32
			start := make(chan struct{})
			for range 2 {
				done.Go(func() {
					<-start
					if p.Release() {
						released.Add(1)
					}
				})
			}
			close(start)
			done.Wait()
			require.EqualValues(t, 1, released.Load())
			require.True(t, other.Held())
			require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 1, Held: 1}}, th.Permits())
		}
		require.True(t, other.Release())
		require.Empty(t, th.Permits())
	}
}

// TestAReleaseHitsTheBucketItWasTakenFrom is case C04: a group that is deleted
// and made again under its name has another id, so other buckets.
func TestAReleaseHitsTheBucketItWasTakenFrom(t *testing.T) {
	old := enabled(t, group("g", cluster.ByGroup, 2))
	th := throttle(t, wlm.Config{}, old)
	_, a := admit(t, th, context.Background(), old, "g")
	again := group("g", cluster.ByGroup, 2)
	again.ID = "g2"
	fresh := apply(t, old, &cluster.DeleteGroup{Name: "g"}, &cluster.CreateGroup{Group: again})
	require.NoError(t, th.ClusterChanged(old, fresh))
	_, b := admit(t, th, context.Background(), fresh, "g2")
	require.True(t, a.Release())
	require.Equal(t, []wlm.GroupPermits{{Group: "g2", Buckets: 1, Held: 1}}, th.Permits())
	got, c := admit(t, th, context.Background(), fresh, "g2")
	require.Equal(t, "permit", got)
	got, _ = admit(t, th, context.Background(), fresh, "g2")
	require.Equal(t, "429", got)
	got, _ = admit(t, th, context.Background(), fresh, "g")
	require.Equal(t, "no permit", got)
	require.True(t, b.Release())
	require.True(t, c.Release())
	require.Empty(t, th.Permits())
}

// TestADrainingBucketComesBack is the variant of case C04: one bucket that
// drains and comes back all the time, under both ways of acquiring.
func TestADrainingBucketComesBack(t *testing.T) {
	const goroutines, limit = 64, 4
	for _, acquire := range []string{"exact", "rollback"} {
		s := enabled(t, group("g", cluster.ByUsername, limit))
		th := throttle(t, wlm.Config{Switches: with(t, "acquire", acquire)}, s)
		var inside, most atomic.Int64
		var done sync.WaitGroup
		for range goroutines {
			done.Go(func() {
				ctx, p := user("alice"), new(wlm.Permit)
				for range times(1_000_000, 100_000) / goroutines {
					if th.Admit(ctx, s, "g", "", p) != nil {
						continue
					}
					if now := inside.Add(1); now > most.Load() {
						most.Store(now)
					}
					inside.Add(-1)
					if !p.Release() || p.Release() {
						panic("a permit was not released exactly once")
					}
				}
			})
		}
		done.Wait()
		require.LessOrEqual(t, most.Load(), int64(limit))
		require.Empty(t, th.Permits())
	}
}

// TestPastUsersLeaveNothing is case C20 at the throttle: 200,000 users, 64 at a
// time, then 10,000 that are refused; then 20,000 at once; then 64 whose names
// have a megabyte each.
func TestPastUsersLeaveNothing(t *testing.T) {
	s := enabled(t, group("g", cluster.ByUsername, 1))
	th := throttle(t, wlm.Config{}, s)
	before := heap()
	var window [64]wlm.Permit
	for i := range 1_000_000 {
		p := &window[i%len(window)]
		p.Release()
		require.NoError(t, th.Admit(user(fmt.Sprint("user-", i)), s, "g", "", p))
	}
	for i := range 10_000 {
		require.Error(t, th.Admit(user(fmt.Sprint("user-", 1_000_000-1-i%len(window))), s, "g", "", new(wlm.Permit)))
	}
	require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 64, Held: 64}}, th.Permits())
	for i := range window {
		require.True(t, window[i].Release())
	}
	many := make([]wlm.Permit, 20_000)
	for i := range many {
		require.NoError(t, th.Admit(user(fmt.Sprint("other-", i)), s, "g", "", &many[i]))
	}
	require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: len(many), Held: len(many)}}, th.Permits())
	for i := range many {
		require.True(t, many[i].Release())
	}
	require.Empty(t, th.Permits())
	buckets, slots, spares := th.Footprint()
	require.Zero(t, buckets)
	require.LessOrEqual(t, slots, 64*8, "tables shrink")
	require.LessOrEqual(t, spares, 64*16)
	many = nil
	for i := range 64 {
		require.NoError(t, th.Admit(user(strings.Repeat("x", 1<<20)+fmt.Sprint(i)), s, "g", "", &window[i]))
	}
	for i := range window {
		require.True(t, window[i].Release())
	}
	require.Less(t, int64(heap())-int64(before), int64(1<<20))
	all, err := th.Stats(nil)
	require.NoError(t, err)
	require.Len(t, all, 2, "DEFAULT_WORKLOAD_GROUP and g")
	runtime.KeepAlive(th)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestThePermitOfASearchInUseIsNotLent plants the caller's mistake.
func TestThePermitOfASearchInUseIsNotLent(t *testing.T) {
	s := enabled(t, group("g", cluster.ByGroup, 2))
	th := throttle(t, wlm.Config{}, s)
	var p wlm.Permit
	require.False(t, p.Held())
	require.False(t, p.Release(), "there was none")
	require.Zero(t, p.Bucket())
	require.NoError(t, th.Admit(context.Background(), s, "g", "", &p))
	require.NotZero(t, p.Bucket())
	require.PanicsWithValue(t, "wlm: a permit that is held is used for another search", func() {
		_ = th.Admit(context.Background(), s, "g", "", &p)
	})
	require.True(t, p.Release())
	require.NoError(t, th.Admit(context.Background(), s, "g", "", &p), "it may serve again")
}

// TestTheLedgerRefusesToBreak plants a release that no permit stands behind.
func TestTheLedgerRefusesToBreak(t *testing.T) {
	th, err := wlm.New(wlm.Config{})
	require.NoError(t, err)
	var p wlm.Permit
	require.True(t, th.Acquire("g", cluster.ByGroup, "", 1, &p))
	p.ReleaseBehindItsBack()
	require.PanicsWithValue(t, "wlm: a bucket holds -1 permits, which is not between 0 and 9223372036854775807", func() { p.Release() })
	require.PanicsWithValue(t, "wlm: a bucket holds 4 permits, which is not between 0 and 3", func() { wlm.MustFit(4, 3) })
	require.True(t, th.Acquire("g", cluster.ByGroup, "", 1, &p), "the lock is free and the bucket gone")
}
