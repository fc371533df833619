package wlm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestStatisticsListTheGroupsAndTheDefault(t *testing.T) {
	s := enabled(t, group("h", cluster.ByGroup, 1), group("g", cluster.ByGroup, 1))
	th := throttle(t, wlm.Config{}, s)
	th.Completed("g")
	th.Completed("g")
	th.Failed("g")
	th.Cancelled("h")
	th.ResourceRejected("h")
	_, held := admit(t, th, context.Background(), s, "g")
	_, _ = admit(t, th, context.Background(), s, "g")
	held.Release()
	g := wlm.GroupStats{ID: "g", Completions: 2, Failures: 1, Throttled: 1}
	h := wlm.GroupStats{ID: "h", Cancellations: 1, Rejections: 1}
	for _, row := range []struct{ ask, want any }{
		{[]string(nil), []wlm.GroupStats{{ID: cluster.DefaultGroupID}, g, h}},
		{[]string{}, []wlm.GroupStats{{ID: cluster.DefaultGroupID}, g, h}},
		{[]string{"h", "g", "h"}, []wlm.GroupStats{g, h}},
		{[]string{cluster.DefaultGroupID}, []wlm.GroupStats{{ID: cluster.DefaultGroupID}}},
	} {
		got, err := th.Stats(row.ask.([]string))
		require.NoError(t, err)
		require.Equal(t, row.want, got)
	}
	_, err := th.Stats([]string{"g", "no"})
	require.EqualError(t, err, "WorkloadGroup with id no does not exist")
	require.Equal(t, cluster.ResourceNotFound, cluster.KindOf(err))
}

// TestAGroupWithoutCounters: completions fall to the default group as upstream,
// nothing else does, and a search without a group is the default group's.
func TestAGroupWithoutCounters(t *testing.T) {
	for _, profile := range wlm.Profiles() {
		switches, err := wlm.Profile(profile)
		require.NoError(t, err)
		th, err := wlm.New(wlm.Config{Switches: switches})
		require.NoError(t, err)
		for _, count := range []func(string){th.Completed, th.Failed, th.Cancelled, th.ResourceRejected} {
			count("gone")
		}
		var none *uint64
		if profile == wlm.ProfileUpstream {
			none = new(uint64(0))
		}
		require.Equal(t, wlm.GroupStats{ID: cluster.DefaultGroupID, Completions: 1, WouldThrottle: none}, stats(t, th, cluster.DefaultGroupID))
		for _, count := range []func(string){th.Completed, th.Failed, th.Cancelled, th.ResourceRejected} {
			count("")
		}
		require.Equal(t, wlm.GroupStats{ID: cluster.DefaultGroupID, Completions: 2, Failures: 1, Cancellations: 1, Rejections: 1, WouldThrottle: none},
			stats(t, th, cluster.DefaultGroupID))
	}
}

// TestCountersFollowTheGroups: they appear and go with the groups of a state,
// however many versions lie between, and stay as long as the group does.
func TestCountersFollowTheGroups(t *testing.T) {
	one := enabled(t, group("g", cluster.ByGroup, 1), group("h", cluster.ByGroup, 1))
	th := throttle(t, wlm.Config{}, one)
	th.Completed("g")
	th.Completed("h")
	two := apply(t, one, &cluster.DeleteGroup{Name: "h"}, &cluster.CreateGroup{Group: group("i", cluster.ByGroup, 1)},
		&cluster.UpdateGroup{Name: "g", Throttling: cluster.ThrottlingPatch{Clear: true}})
	require.NoError(t, th.ClusterChanged(one, two))
	all, err := th.Stats(nil)
	require.NoError(t, err)
	require.Equal(t, []wlm.GroupStats{{ID: cluster.DefaultGroupID}, {ID: "g", Completions: 1}, {ID: "i"}}, all)
	require.NoError(t, th.ClusterChanged(two, one))
	require.Zero(t, stats(t, th, "h").Completions, "counters are lost with the group")
}

// refusedInTheLag rejects one search of a group that is enforced already and
// has no counters yet, and returns the rejection.
func refusedInTheLag(t *testing.T, switches wlm.Switches) (*wlm.Throttle, *wlm.Rejection, []probe.Event) {
	t.Helper()
	var counted []probe.Event
	before := enabled(t)
	after := apply(t, before, &cluster.CreateGroup{Group: group("late", cluster.ByGroup, 1)})
	th := throttle(t, wlm.Config{Switches: switches, Probe: probe.New("n1", probe.HookFunc(func(e probe.Event) {
		if e.Step == probe.Counted {
			counted = append(counted, e)
		}
	}))}, before)
	require.NoError(t, th.ApplySettings(before, after)) // published, no listener has run
	require.NoError(t, th.Admit(context.Background(), after, "late", "one", new(wlm.Permit)))
	var rejection *wlm.Rejection
	require.ErrorAs(t, th.Admit(context.Background(), after, "late", "two", new(wlm.Permit)), &rejection)
	require.NoError(t, th.ClusterChanged(before, after))
	return th, rejection, counted
}

func TestARejectionInTheLagIsCountedOnNobody(t *testing.T) {
	th, rejection, counted := refusedInTheLag(t, with(t))
	require.False(t, rejection.Counted)
	require.Zero(t, stats(t, th, cluster.DefaultGroupID).Throttled)
	require.Zero(t, stats(t, th, "late").Throttled)
	require.Len(t, counted, 1)
	require.Empty(t, counted[0].Detail)
}

// TestARejectionInTheLagIsChargedToTheDefaultGroup is the flaw of remark 2,
// planted.
func TestARejectionInTheLagIsChargedToTheDefaultGroup(t *testing.T) {
	th, rejection, counted := refusedInTheLag(t, with(t, "missing_counters", "default_group"))
	require.True(t, rejection.Counted)
	require.EqualValues(t, 1, stats(t, th, cluster.DefaultGroupID).Throttled)
	require.Zero(t, stats(t, th, "late").Throttled)
	require.Len(t, counted, 1)
	require.Equal(t, "late", counted[0].Group)
	require.Equal(t, cluster.DefaultGroupID, counted[0].Detail)
}

// TestARejectionDuringAWriteOfTheMap holds the map's write open while a search
// is refused: the race of remark 1, and each switch that answers it.
func TestARejectionDuringAWriteOfTheMap(t *testing.T) {
	for _, row := range []struct {
		counters, failure string
		status            string
		counted           bool
		failedOpen        uint64
	}{
		{"plain", "swallows_rejection", "no permit", false, 1}, // the flaw: a 429 becomes an admit
		{"plain", "keeps_rejection", "429", false, 0},
		{"safe", "swallows_rejection", "429", true, 0},
		{"safe", "keeps_rejection", "429", true, 0},
	} {
		for _, step := range []probe.Step{probe.MapWriteBegin, probe.MapWriteEnd} {
			t.Run(fmt.Sprintf("%s, %s, %s", row.counters, row.failure, step), func(t *testing.T) {
				before := enabled(t, group("g", cluster.ByGroup, 1))
				after := apply(t, before, &cluster.CreateGroup{Group: group("other", cluster.ByGroup, 1)})
				holds := &probe.Holds{}
				th := throttle(t, wlm.Config{Switches: with(t, "counters", row.counters, "count_failure", row.failure), Probe: probe.New("n1", holds)}, before)
				require.NoError(t, th.Admit(context.Background(), before, "g", "one", new(wlm.Permit)))
				require.NoError(t, holds.Hold(step, probe.Filter{Group: "other"}))
				changed := make(chan error)
				go func() { changed <- th.ClusterChanged(before, after) }()
				require.True(t, holds.Await(nil, step, 1))

				var p wlm.Permit
				err := th.Admit(context.Background(), before, "g", "two", &p)
				require.False(t, p.Held())
				rejection, refused := errors.AsType[*wlm.Rejection](err)
				require.Equal(t, row.status == "429", refused, "%v", err)
				if refused {
					require.Equal(t, row.counted, rejection.Counted)
				}
				_, err = th.Stats(nil)
				require.Equal(t, row.counters == "plain", err != nil, "%v", err)
				th.Completed("g") // lost under plain, and harmless

				holds.Release(step)
				require.NoError(t, <-changed)
				want := uint64(0)
				if row.counted {
					want = 1
				}
				require.Equal(t, want, stats(t, th, "g").Throttled)
				require.Zero(t, stats(t, th, cluster.DefaultGroupID).Throttled)
				require.Equal(t, row.failedOpen, th.FailedOpen())
				require.ErrorAs(t, th.Admit(context.Background(), before, "g", "three", &p), new(*wlm.Rejection), "the window is over")
			})
		}
	}
}

// TestACountThatFailsKeepsTheRejection is the sink of case C01: it returns an
// error, or panics. Under swallows_rejection, the planted flaw, it admits.
func TestACountThatFailsKeepsTheRejection(t *testing.T) {
	sinks := map[string]func(string) error{
		"error": func(string) error { return errors.New("sink is closed") },
		"panic": func(string) error { panic("sink is broken") },
	}
	for name, sink := range sinks {
		for _, failure := range []string{"keeps_rejection", "swallows_rejection"} {
			t.Run(name+", "+failure, func(t *testing.T) {
				logged := &recorder{}
				s := enabled(t, group("g", cluster.ByGroup, 1))
				th := throttle(t, wlm.Config{Switches: with(t, "count_failure", failure), CountFault: sink, Log: slog.New(logged)}, s)
				_, held := admit(t, th, context.Background(), s, "g")
				var p wlm.Permit
				err := th.Admit(context.Background(), s, "g", "two", &p)
				require.False(t, p.Held())
				if failure == "keeps_rejection" {
					require.Equal(t, &wlm.Rejection{Group: "g", Limit: 1}, err)
				} else {
					require.NoError(t, err)
				}
				for _, id := range []string{"g", cluster.DefaultGroupID} {
					require.Equal(t, wlm.GroupStats{ID: id}, stats(t, th, id))
				}
				require.Equal(t, map[string]int{"g": 1}, logged.groups(), "it is visible")
				require.True(t, held.Release())
				require.Empty(t, th.Permits())
			})
		}
	}
}

// TestTheRegistryUnderApplyAndSearch is the throttle's part of case C02: groups
// come and go while searches of one group are refused and statistics are read.
func TestTheRegistryUnderApplyAndSearch(t *testing.T) {
	for _, profile := range wlm.Profiles() {
		t.Run(profile, func(t *testing.T) {
			switches, err := wlm.Profile(profile)
			require.NoError(t, err)
			s := written(t, switches, group("g0", cluster.ByGroup, 1))
			th := throttle(t, wlm.Config{Switches: switches}, s)
			require.NoError(t, th.Admit(context.Background(), s, "g0", "held", new(wlm.Permit)))
			var stop atomic.Bool
			var refused, uncounted, admitted atomic.Uint64
			var done sync.WaitGroup
			for range 8 {
				done.Go(func() {
					for !stop.Load() {
						var p wlm.Permit
						err := th.Admit(context.Background(), s, "g0", "more", &p)
						rejection, ok := errors.AsType[*wlm.Rejection](err)
						switch {
						case !ok:
							admitted.Add(1)
						case rejection.Counted:
							refused.Add(1)
						default:
							uncounted.Add(1)
						}
						runtime.Gosched()
					}
				})
			}
			for range 4 {
				done.Go(func() {
					for !stop.Load() {
						_, _ = th.Stats(nil) // under plain it may fail
						th.Completed("g7")
						runtime.Gosched()
					}
				})
			}
			now := s
			for i := range times(5_000, 1_000) {
				name := fmt.Sprint("g", 1+i%50)
				command := cluster.Command(&cluster.CreateGroup{Group: group(name, cluster.ByGroup, 1)})
				if now.Group(name) != nil {
					command = &cluster.DeleteGroup{Name: name}
				}
				next := apply(t, now, command)
				require.NoError(t, th.ApplySettings(now, next))
				require.NoError(t, th.ClusterChanged(now, next))
				now = next
			}
			stop.Store(true)
			done.Wait()
			require.Equal(t, refused.Load(), stats(t, th, "g0").Throttled)
			if profile != wlm.ProfileSubmitted {
				require.Zero(t, admitted.Load())
				require.Zero(t, uncounted.Load())
			}
			all, err := th.Stats(nil)
			require.NoError(t, err)
			require.Len(t, all, 1+len(now.Groups()))
			for _, g := range now.Groups() {
				_, err := th.Stats([]string{g.ID})
				require.NoError(t, err)
			}
			require.Equal(t, []wlm.GroupPermits{{Group: "g0", Buckets: 1, Held: 1}}, th.Permits())
		})
	}
}
