package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

// Case C02: groups come and go through the leader while a follower refuses
// searches in a full group and its stats are read.
func TestTheRegistryHoldsWhileGroupsComeAndGo(t *testing.T) {
	warnings := &recorder{}
	inLab(t, "m1 m2 m3", func(c *node.Config) { c.Log = slog.New(warnings) }, func(l *lab) {
		l.index(3)
		leader, follower := l.leader(), l.follower()
		g := l.group(leader, "full", cluster.ByGroup, 1)
		release, done := l.hold(follower, "holder", g)

		ctx, stop := context.WithCancel(l.t.Context())
		var load sync.WaitGroup
		var refused, others [32]int
		for i := range refused {
			load.Go(func() {
				for ctx.Err() == nil {
					if throttled(l.search(ctx, follower, fmt.Sprint(i), g, 0).err) {
						refused[i]++
					} else {
						others[i]++
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		for range 4 {
			load.Go(func() {
				for ctx.Err() == nil {
					_, err := l.nodes[follower].Throttle().Stats(nil)
					require.NoError(l.t, err)
					time.Sleep(time.Millisecond)
				}
			})
		}
		for i := range counts(500, 5000) {
			name := fmt.Sprintf("g%d", i/2%50)
			if i%2 == 0 {
				l.group(leader, name, cluster.ByGroup, 1)
			} else {
				l.mustPropose(leader, &cluster.DeleteGroup{Name: name})
			}
		}
		stop()
		load.Wait()
		release()
		<-done
		for i := range refused {
			require.Positive(l.t, refused[i])
			require.Zero(l.t, others[i], "a search in the full group was not refused")
		}
		for name, n := range l.nodes {
			stats, err := n.Throttle().Stats(nil)
			require.NoError(l.t, err)
			require.ElementsMatch(l.t, []string{cluster.DefaultGroupID, g}, idsOf(stats), name)
		}
		l.requireNoPermit()
	})
	require.Empty(t, warnings.matching("listener"), "no listener failed")
}

func idsOf(stats []wlm.GroupStats) []string {
	ids := make([]string, len(stats))
	for i, s := range stats {
		ids[i] = s.ID
	}
	return ids
}

// recorder is a log handler that keeps warnings and errors.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (*recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler             { return r }
func (r *recorder) WithGroup(string) slog.Handler                  { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

func (r *recorder) matching(text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.lines), func(line string) bool { return !strings.Contains(line, text) })
}

// unchecked is a command that no API would let through; only a log can hold
// it.
type unchecked struct{ *cluster.CreateGroup }

func (unchecked) Validate() error { return nil }

// storedFaults are groups that no writer should have stored.
func storedFaults() map[string]*cluster.CreateGroup {
	limit := func(n int64) *int64 { return &n }
	faults := map[string]*cluster.CreateGroup{}
	for name, throttling := range map[string]*cluster.Throttling{
		"zero limit":           {Attribute: cluster.ByGroup, NodeLimit: limit(0)},
		"negative limit":       {Attribute: cluster.ByGroup, NodeLimit: limit(-5)},
		"limit is missing":     {Attribute: cluster.ByGroup},
		"attribute unknown":    {Attribute: "tenant", NodeLimit: limit(1)},
		"attribute is missing": {NodeLimit: limit(1)},
	} {
		c := newGroup(node.NewID(seedOf(name)), name, cluster.ByGroup, 1)
		c.Group.Throttling = throttling
		faults[name] = c
	}
	faults["no name"] = newGroup(node.NewID(seedOf("no name")), "", cluster.ByGroup, 1)
	faults["long name"] = newGroup(node.NewID(seedOf("long name")), strings.Repeat("x", 10_000), cluster.ByGroup, 1)
	return faults
}

// Case C12: values that no API takes, straight from the log or a snapshot: the
// node comes up, warns once for each, does not throttle the group, and
// enforces the healthy one.
func TestStoredGroupsThatNoWriterShouldHaveStoredDoNoHarm(t *testing.T) {
	for _, from := range []string{"log", "snapshot"} {
		t.Run(from, func(t *testing.T) {
			warnings := &recorder{}
			record := false
			inLab(t, "m1", func(c *node.Config) {
				if from == "snapshot" {
					c.Timings.SnapshotThreshold, c.Timings.TrailingLogs = 4, 1
				}
				if record {
					c.Log = slog.New(warnings)
				}
			}, func(l *lab) {
				l.index(1)
				healthy := l.group("m1", "healthy", cluster.ByGroup, 1)
				for _, c := range storedFaults() {
					require.Error(l.t, c.Validate())
					l.mustPropose("m1", unchecked{c})
				}
				for i := range 10 {
					l.mustPropose("m1", &cluster.UpdateGroup{Name: "healthy", UpdatedAt: int64(i)})
				}
				record = true
				l.crash("m1")
				l.start("m1")
				l.awaitReady("m1")

				for name, c := range storedFaults() {
					require.Len(l.t, warnings.matching(c.Group.ID), 1, name)
					if cluster.KeyAttribute.Check(c.Group.Throttling) == nil {
						continue // its name is at fault, not its throttling
					}
					for range 3 {
						_, done := l.hold("m1", "alice", c.Group.ID)
						require.Empty(l.t, done, name)
					}
					require.Zero(l.t, l.held("m1", c.Group.ID), name)
				}
				_, done := l.hold("m1", "alice", healthy)
				require.Empty(l.t, done)
				require.True(l.t, throttled(l.search(l.t.Context(), "m1", "bob", healthy, 0).err))
			})
		})
	}
}

// client sends HTTP requests to nodes over the simulated network.
type client struct {
	l *lab
	*http.Client
	transport *http.Transport
}

func (l *lab) client() *client {
	transport := l.net.Host("client").HTTPTransport()
	return &client{l: l, Client: &http.Client{Transport: transport}, transport: transport}
}

func (c *client) url(name string) string { return "http://" + c.l.net.Host(name).Address(httpPort) }

// search posts a search of a user and returns the status.
func (c *client) search(ctx context.Context, name, user, group, service string) (int, error) {
	body := fmt.Sprintf(`{"ext":{"wlmsim":{"service_time":%q}}}`, service)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(name)+"/logs/_search", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("workloadGroupId", group)
	request.Header.Set("X-Wlmsim-User", url.PathEscape(user))
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// Case C08: a client that closes its connection gives its permit back within a
// second, its data nodes stop, and the search counts as cancelled.
func TestAClientThatGoesAwayKeepsNoPermit(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.index(3)
		g := l.group("m1", "analytics", cluster.ByUsername, 2)
		c := l.client()
		defer c.transport.CloseIdleConnections()
		ctx, leave := context.WithCancel(l.t.Context())
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() { _, _ = c.search(ctx, "m1", "u1", g, "1h") })
		}
		time.Sleep(time.Second)
		require.Equal(l.t, 2, l.held("m1", g))
		for _, name := range l.names {
			require.Equal(l.t, 2, l.nodes[name].Data().Stats().Active, name)
		}
		leave()
		time.Sleep(time.Second)
		require.Zero(l.t, l.held("m1", g))
		for _, name := range l.names {
			require.Zero(l.t, l.nodes[name].Data().Stats().Active, name)
		}
		status, err := c.search(l.t.Context(), "m1", "u1", g, "0ms")
		require.NoError(l.t, err)
		require.Equal(l.t, http.StatusOK, status)
		clients.Wait()
		for _, o := range l.nodes["m1"].Coordinator().Outcomes() {
			if o.Group == g {
				require.EqualValues(l.t, 2, o.Cancelled)
				require.EqualValues(l.t, 1, o.Completed)
				require.Zero(l.t, o.Throttled+o.Failed)
			}
		}
		require.Zero(l.t, l.throttledCount("m1", g))
	})
}

// Cases C16 and C17: names with separators and names that look alike. Over
// HTTP each has a bucket of its own, and the same bytes always share one.
func TestEveryNameHasItsOwnBucketOverHTTP(t *testing.T) {
	names := []string{
		"a", "a,b", "a|b", `a\,b`, `a\|b`, "a:b", "username|a", `"a"`, "a ", "a\nb", "a\x00b", // C16
		"Bob", "bob", "BOB", "café", "cafe\u0301", "\u212b", "\u00c5", "I", "\u0131", "ｂｏｂ", "\u0430dmin", "admin\u200f", "\xff\xfe", // C17
	}
	inLab(t, "m1", nil, func(l *lab) {
		l.index(1)
		g := l.group("m1", "analytics", cluster.ByUsername, 1)
		c := l.client()
		defer c.transport.CloseIdleConnections()
		ctx, leave := context.WithCancel(l.t.Context())
		var clients sync.WaitGroup
		for i, name := range names {
			clients.Go(func() { _, _ = c.search(ctx, "m1", name, g, "1h") })
			time.Sleep(time.Second)
			require.Equal(l.t, i+1, l.held("m1", g), "%q", name)
		}
		for _, name := range names {
			status, err := c.search(l.t.Context(), "m1", name, g, "0ms")
			require.NoError(l.t, err)
			require.Equal(l.t, http.StatusTooManyRequests, status, "%q", name)
		}
		require.EqualValues(l.t, len(names), l.throttledCount("m1", g))
		leave()
		clients.Wait()
		time.Sleep(time.Second)
		l.requireNoPermit()
	})
}

// Case C20: users of the past leave no bucket, whether they were served,
// refused or gone, and a name over the maximum is refused.
func TestPastUsersLeaveNoBucketOnANode(t *testing.T) {
	inLab(t, "m1", nil, func(l *lab) {
		l.index(1)
		g := l.group("m1", "analytics", cluster.ByUsername, 1)
		users := counts(20_000, 200_000)
		before := heap()
		var lanes sync.WaitGroup
		for lane := range 64 {
			lanes.Go(func() {
				for u := lane; u < users; u += 64 {
					if err := l.search(l.t.Context(), "m1", fmt.Sprintf("user-%d", u), g, 0).err; err != nil {
						l.t.Errorf("user %d: %v", u, err)
					}
				}
			})
		}
		lanes.Wait()
		for u := range counts(1_000, 10_000) {
			user := fmt.Sprintf("gone-%d", u)
			leave, done := l.hold("m1", user, g)
			require.True(l.t, throttled(l.search(l.t.Context(), "m1", user, g, 0).err))
			leave()
			<-done
		}
		l.requireNoPermit()
		require.Less(l.t, heap(), before+8<<20, "the heap is where it began, but for a few MB")

		c := l.client()
		defer c.transport.CloseIdleConnections()
		for range 10 {
			status, err := c.search(l.t.Context(), "m1", strings.Repeat("n", 1<<20), g, "0ms")
			require.NoError(l.t, err)
			require.Equal(l.t, http.StatusBadRequest, status)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Case C24: a node that was cut off is sent a snapshot. Its state is the
// leader's, deleted groups are gone from its counters, and a search that it
// held all the while ends cleanly.
func TestASnapshotReplacesTheStateOfANodeThatWasCutOff(t *testing.T) {
	var mu sync.Mutex
	published := map[string][]uint64{}
	inLab(t, "m1 m2 m3", func(c *node.Config) {
		c.Timings.SnapshotThreshold, c.Timings.TrailingLogs = 8, 2
		name := c.Name
		c.Hooks = append(c.Hooks, probe.HookFunc(func(e probe.Event) {
			if e.Step == probe.ApplierPublished {
				mu.Lock()
				defer mu.Unlock()
				published[name] = append(published[name], e.Version)
			}
		}))
	}, func(l *lab) {
		l.index(3)
		g1 := l.group("m1", "g1", cluster.ByGroup, 1)
		g2 := l.group("m1", "g2", cluster.ByGroup, 5)
		far := l.follower()
		leave, done := l.hold(far, "alice", g1)
		var rest []string
		for _, name := range l.names {
			if name != far {
				rest = append(rest, name)
			}
		}
		cut, err := l.net.Partition([]string{far}, rest)
		require.NoError(l.t, err)
		near := rest[0]
		l.mustPropose(near, &cluster.DeleteGroup{Name: "g1"})
		one := int64(1)
		l.mustPropose(near, &cluster.UpdateGroup{Name: "g2", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(one)}})
		for i := range 60 {
			l.mustPropose(near, &cluster.UpdateGroup{Name: "g2", UpdatedAt: int64(i)})
		}
		require.NotNil(l.t, l.nodes[far].State().Group(g1))
		cut.Heal()
		l.awaitSame(l.names...)

		mu.Lock()
		skipped := slices.ContainsFunc(published[far][1:], func(v uint64) bool { return v > 1 && !slices.Contains(published[far], v-1) })
		mu.Unlock()
		require.True(l.t, skipped, "the node was sent a snapshot: %v", published[far])
		require.True(l.t, cluster.Diff(l.nodes[near].State(), l.nodes[far].State()).Empty())
		stats, err := l.nodes[far].Throttle().Stats(nil)
		require.NoError(l.t, err)
		require.ElementsMatch(l.t, []string{cluster.DefaultGroupID, g2}, idsOf(stats), "g1 is gone from the counters")
		leave2, done2 := l.hold(far, "alice", g2)
		require.True(l.t, throttled(l.search(l.t.Context(), far, "bob", g2, 0).err), "the new limit holds")
		leave2()
		<-done2

		leave()
		require.ErrorIs(l.t, (<-done).err, context.Canceled)
		l.requireNoPermit()
	})
}

// Case C27: the disk of the leader, then of a follower, is full for a while.
// Writes fail clearly or another node leads; searches stay throttled; with
// space back, writes work and all nodes are equal.
func TestAFullDiskStopsNoThrottlingAndLosesNothing(t *testing.T) {
	for _, victim := range []string{"leader", "follower"} {
		t.Run(victim, func(t *testing.T) {
			inLab(t, "m1 m2 m3", nil, func(l *lab) {
				l.index(3)
				g := l.group("m1", "analytics", cluster.ByGroup, 1)
				full := l.leader()
				if victim == "follower" {
					full = l.follower()
				}
				l.stores[full].SetFault(func(op replica.Op) error {
					if op.Kind == replica.OpStoreLogs {
						return syscall.ENOSPC
					}
					return nil
				})
				leave, done := l.hold(full, "alice", g)
				written := 0
				for i := range 10 {
					began := time.Now()
					_, err := l.propose(l.names[i%3], &cluster.UpdateGroup{Name: "analytics", UpdatedAt: int64(i)})
					require.LessOrEqual(l.t, time.Since(began), 65*time.Second)
					if err == nil {
						written++
					} else {
						require.NotEmpty(l.t, cluster.KindOf(err), "%v", err)
					}
					require.True(l.t, throttled(l.search(l.t.Context(), full, "bob", g, 0).err))
				}
				require.Positive(l.t, written, "the others have a majority")
				l.stores[full].SetFault(nil)
				l.mustPropose(l.leader(), &cluster.UpdateGroup{Name: "analytics", UpdatedAt: 99})
				leave()
				<-done
				l.awaitSame(l.names...)
				for _, name := range l.names {
					require.True(l.t, cluster.Diff(l.nodes["m1"].State(), l.nodes[name].State()).Empty(), name)
				}
				l.requireNoPermit()
			})
		})
	}
}

// Case C33, over HTTP: the greatest limit is taken, and reads back the same on
// every node; one more is refused, and no version moves.
func TestTheGreatestLimitReadsBackTheSameOnEveryNode(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		c := l.client()
		defer c.transport.CloseIdleConnections()
		send := func(method, name, path, body string) (int, string) {
			request, err := http.NewRequestWithContext(l.t.Context(), method, c.url(name)+path, strings.NewReader(body))
			require.NoError(l.t, err)
			request.Header.Set("Content-Type", "application/json")
			response, err := c.Do(request)
			require.NoError(l.t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(l.t, err)
			return response.StatusCode, string(text)
		}
		const group = `{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},"throttling":{"attribute":"group","node_limit":%s}}`
		for _, limit := range []string{"2147483648", "9007199254740993", "1e1", "10.0"} {
			before := l.nodes["m2"].State().Version()
			status, text := send(http.MethodPut, "m2", "/_wlm/workload_group", fmt.Sprintf(group, limit))
			require.Equal(l.t, http.StatusBadRequest, status, text)
			require.Contains(l.t, text, "node_limit")
			for _, name := range l.names {
				require.Equal(l.t, before, l.nodes[name].State().Version(), name)
			}
		}
		status, text := send(http.MethodPut, "m2", "/_wlm/workload_group", fmt.Sprintf(group, "2147483647"))
		require.Equal(l.t, http.StatusOK, status, text)
		for _, name := range l.names {
			for _, path := range []string{"/_wlm/workload_group/g", "/_wlm/workload_group/g?local=true"} {
				status, text := send(http.MethodGet, name, path, "")
				require.Equal(l.t, http.StatusOK, status, text)
				require.Contains(l.t, text, `"node_limit":2147483647}`, "%s of %s", path, name)
			}
		}
	})
}

// Case C36: two partial updates through two nodes at once lose nothing, on
// every node and after a restart.
func TestTwoPartialUpdatesThroughTwoNodesLoseNothing(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.group("m1", "analytics", cluster.ByUsername, 5)
		for round := range counts(100, 500) {
			reset := &cluster.UpdateGroup{
				Name: "analytics", ResourceLimits: map[string]float64{"cpu": 0.3},
				Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(5))},
			}
			l.mustPropose("m1", reset)
			updates := []*cluster.UpdateGroup{
				{Name: "analytics", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(7))}},
				{Name: "analytics", ResourceLimits: map[string]float64{"cpu": 0.4}},
			}
			var both sync.WaitGroup
			errs := make([]error, len(updates))
			for i, name := range []string{"m2", "m3"} {
				both.Go(func() { _, errs[i] = l.propose(name, updates[i]) })
			}
			both.Wait()
			require.NoError(l.t, errors.Join(errs...))
			for _, name := range l.names {
				g := l.nodes[name].State().GroupNamed("analytics")
				require.EqualValues(l.t, 7, *g.Throttling.NodeLimit, "round %d on %s", round, name)
				require.Equal(l.t, 0.4, g.ResourceLimits["cpu"], "round %d on %s", round, name)
			}
		}
		for _, patch := range []struct {
			name  string
			patch cluster.ThrottlingPatch
			left  bool // whether the throttling is there afterwards
			fails bool
		}{
			{"absent changes nothing", cluster.ThrottlingPatch{}, true, false},
			{"a null limit of a group by username is refused", cluster.ThrottlingPatch{NodeLimit: cluster.Null[int64]()}, true, true},
			{"null or {} removes it", cluster.ThrottlingPatch{Clear: true}, false, false},
		} {
			_, err := l.propose("m2", &cluster.UpdateGroup{Name: "analytics", Throttling: patch.patch})
			require.Equal(l.t, patch.fails, err != nil, "%s: %v", patch.name, err)
			for _, name := range l.names {
				require.Equal(l.t, patch.left, l.nodes[name].State().GroupNamed("analytics").Throttling != nil, "%s on %s", patch.name, name)
			}
		}
		before := l.nodes["m1"].State()
		for _, name := range l.names {
			l.crash(name)
		}
		for _, name := range l.names {
			l.start(name)
		}
		l.awaitReady(l.names...)
		for _, name := range l.names {
			require.True(l.t, cluster.Diff(before, l.nodes[name].State()).Empty(), name)
		}
	})
}

// Case C04: a permit goes back to the counter that it was taken from, also
// when its group was deleted and made again meanwhile.
func TestAReleaseFindsItsOwnGroupAfterItWasMadeAgain(t *testing.T) {
	inLab(t, "m1", nil, func(l *lab) {
		l.index(1)
		old := l.group("m1", "analytics", cluster.ByGroup, 2)
		leaveA, doneA := l.hold("m1", "a", old)
		l.mustPropose("m1", &cluster.DeleteGroup{Name: "analytics"})
		again := l.group("m1", "analytics", cluster.ByGroup, 2)
		require.NotEqual(l.t, old, again)
		leaveB, doneB := l.hold("m1", "b", again)
		leaveA()
		<-doneA
		require.Equal(l.t, 1, l.held("m1", again))
		leaveC, doneC := l.hold("m1", "c", again)
		require.Empty(l.t, doneC)
		require.True(l.t, throttled(l.search(l.t.Context(), "m1", "d", again, 0).err))
		leaveB()
		leaveC()
		<-doneB
		<-doneC
		l.requireNoPermit()
	})
}

// Case C05: of 200 searches at once in a bucket of three, three get in.
func TestOfManySearchesAtOnceExactlyTheLimitGetsIn(t *testing.T) {
	inLab(t, "m1", nil, func(l *lab) {
		l.index(1)
		g := l.group("m1", "analytics", cluster.ByUsername, 3)
		for round := range counts(20, 500) {
			ctx, leave := context.WithCancel(l.t.Context())
			fire := make(chan struct{})
			var all sync.WaitGroup
			var mu sync.Mutex
			refused := 0
			for range 200 {
				all.Go(func() {
					<-fire
					_, err := l.nodes["m1"].Search(wlm.WithPrincipal(ctx, wlm.Principal{User: "u"}),
						coordinator.Request{Index: "logs", GroupHeader: g, ServiceTime: time.Hour, Query: []byte("{}")})
					if throttled(err) {
						mu.Lock()
						defer mu.Unlock()
						refused++
					}
				})
			}
			close(fire)
			synctest.Wait()
			require.Equal(l.t, 3, l.nodes["m1"].Data().Stats().Active, "round %d", round)
			require.Equal(l.t, 3, l.held("m1", g))
			leave()
			all.Wait()
			require.Equal(l.t, 197, refused)
			require.EqualValues(l.t, 197*(round+1), l.throttledCount("m1", g))
		}
		l.requireNoPermit()
	})
}
