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
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// meet makes callers wait for one another, n at a time.
type meet struct {
	mu      sync.Mutex
	n, here int
	gate    chan struct{}
}

func newMeet(n int) *meet { return &meet{n: n, gate: make(chan struct{})} }

func (m *meet) wait() {
	m.mu.Lock()
	m.here++
	open := m.gate
	if m.here == m.n {
		m.here, m.gate = 0, make(chan struct{})
		close(open)
	}
	m.mu.Unlock()
	<-open
}

func ptr[T any](v T) *T { return &v }

// undecodable answers like a node whose message was cut off on the way.
func undecodable(answer *wire.SearchAnswer) (*wire.SearchAnswer, error) {
	data := answer.AppendTo(nil)
	return wire.DecodeSearchAnswer(data[:len(data)-1])
}

// Case C07. Promises 3, 4 and 5.
func TestAFanOutThatFailsEndsExactlyOnce(t *testing.T) {
	broken := errors.New("disk on fire")
	type fault func(node string, a *wire.SearchAnswer) (*wire.SearchAnswer, error)
	fails := func(nodes ...string) fault {
		return func(node string, a *wire.SearchAnswer) (*wire.SearchAnswer, error) {
			for _, n := range nodes {
				if n == node {
					return nil, broken
				}
			}
			return a, nil
		}
	}
	for _, variant := range []struct {
		name      string
		meets     int // nodes, from d3 down, that answer at the same instant
		partial   bool
		fault     fault
		reason    string // of the error; "": an answer
		failed    []string
		undecoded bool
	}{
		{name: "d2 fails as d3 answers", meets: 2, fault: fails("d2"), reason: coordinator.PartialFailure, failed: []string{"d2"}},
		{name: "the last answer cannot be decoded", meets: 1, reason: coordinator.PartialFailure, failed: []string{"d3"}, undecoded: true,
			fault: func(node string, a *wire.SearchAnswer) (*wire.SearchAnswer, error) {
				if node == "d3" {
					return undecodable(a)
				}
				return a, nil
			}},
		{name: "all three fail at once", meets: 3, fault: fails("d1", "d2", "d3"), reason: coordinator.AllShardsFailed, failed: []string{"d1", "d2", "d3"}},
		{name: "all three fail at once, partial results allowed", meets: 3, partial: true, fault: fails("d1", "d2", "d3"), reason: coordinator.AllShardsFailed, failed: []string{"d1", "d2", "d3"}},
		{name: "d2 fails as d3 answers, partial results allowed", meets: 2, partial: true, fault: fails("d2"), failed: []string{"d2"}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				barrier := newMeet(variant.meets)
				w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
					return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
						a, err := next.Search(ctx, node, r)
						if err != nil {
							return nil, err
						}
						if node > fmt.Sprintf("d%d", 3-variant.meets) {
							barrier.wait()
						}
						return variant.fault(node, a)
					})
				}})
				w.group("g", cluster.ByGroup, 1)
				searches := rounds(150, 1000)
				for round := range searches {
					r := in(fmt.Sprint(round), "g")
					r.AllowPartial = &variant.partial
					a := w.search(t.Context(), r)
					require.Equal(t, 1, w.releases(r.ID), "releases in round %d", round)
					w.idle()
					var failures []coordinator.ShardFailure
					if variant.reason == "" {
						shards := completed(t, a).Shards
						failures = shards.Failures
						require.Equal(t, []int{6, 4, 2}, []int{shards.Total, shards.Successful, shards.Failed})
						require.False(t, a.response.TimedOut)
						require.Len(t, a.response.Hits, 10)
					} else {
						require.Nil(t, a.response, "one response")
						var failure *coordinator.SearchError
						require.ErrorAs(t, a.err, &failure)
						require.Equal(t, variant.reason, failure.Reason)
						require.Equal(t, 503, failure.Status)
						failures = failure.Failures
					}
					require.Equal(t, variant.failed, nodesOf(failures))
					for _, f := range failures {
						require.Equal(t, wire.NodeNotConnected, f.Kind)
						require.Equal(t, "logs", f.Index)
						if !variant.undecoded {
							require.Contains(t, f.Reason, broken.Error())
						}
					}
				}
				want := coordinator.GroupOutcomes{Group: "id-g", Failed: uint64(searches)}
				if variant.reason == "" {
					want = coordinator.GroupOutcomes{Group: "id-g", Completed: uint64(searches)}
				}
				require.Equal(t, want, w.outcomes("g"))
			})
		})
	}
}

// nodesOf returns the nodes of failures, each once, in order; it fails on
// failures that are not sorted by shard.
func nodesOf(failures []coordinator.ShardFailure) []string {
	var nodes []string
	seen := map[string]bool{}
	for i, f := range failures {
		if i > 0 && failures[i-1].Shard >= f.Shard {
			return []string{"out of order"}
		}
		if !seen[f.Node] {
			seen[f.Node] = true
			nodes = append(nodes, f.Node)
		}
	}
	return nodes
}

// Promise 5: an answer that does not fit its request fails the shards asked for.
func TestAnAnswerThatDoesNotFitFailsItsShards(t *testing.T) {
	for name, spoil := range map[string]func(*wire.SearchAnswer){
		"a shard too few":     func(a *wire.SearchAnswer) { a.Shards = a.Shards[:1] },
		"a shard too many":    func(a *wire.SearchAnswer) { a.Shards = append(a.Shards, a.Shards[0]) },
		"another shard":       func(a *wire.SearchAnswer) { a.Shards[1].Shard.Shard = 9 },
		"a shard twice":       func(a *wire.SearchAnswer) { a.Shards[1] = a.Shards[0] },
		"too many hits":       func(a *wire.SearchAnswer) { a.Shards[0].Hits = append(a.Shards[0].Hits, wire.Hit{ID: "x"}) },
		"more hits than docs": func(a *wire.SearchAnswer) { a.Shards[0].Total = 1 },
		"fewer than no docs":  func(a *wire.SearchAnswer) { a.Shards[0].Total, a.Shards[0].Hits = -1, nil },
		"hits out of order":   func(a *wire.SearchAnswer) { h := a.Shards[0].Hits; h[0], h[1] = h[1], h[0] },
		"a score that is NaN": func(a *wire.SearchAnswer) { a.Shards[0].Hits[9].Score = nan() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
				return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
					a, err := next.Search(ctx, node, r)
					if node == "d2" && err == nil {
						spoil(a)
					}
					return a, err
				})
			}})
			response := completed(t, w.search(t.Context(), in("", "g")))
			require.Equal(t, []string{"d2"}, nodesOf(response.Shards.Failures))
			for _, f := range response.Shards.Failures {
				require.Equal(t, wire.BadAnswer, f.Kind)
			}
		})
	}
	t.Run("no answer and no error", func(t *testing.T) {
		w := newWorld(t, options{peers: func(coordinator.Peers) coordinator.Peers {
			return peers(func(context.Context, string, *wire.SearchRequest) (*wire.SearchAnswer, error) { return nil, nil })
		}})
		var failure *coordinator.SearchError
		require.ErrorAs(t, w.search(t.Context(), in("", "g")).err, &failure)
		require.Equal(t, 500, failure.Status)
	})
}

func nan() float64 { zero := 0.0; return zero / zero }

// Promise 5: a full queue on one node is the failure of its shards; on all of
// them it is the search's.
func TestRejectionsOfDataNodesAreNamedFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{dataNodes: 2, shards: 4})
		w.nodes["d1"].Close()
		w.nodes["d1"] = newPool(t, w, "d1", 1, 1)
		first := in("first", "g")
		first.ServiceTime = time.Second
		running := w.start(t.Context(), first)
		synctest.Wait()
		response := completed(t, w.search(t.Context(), in("second", "g")))
		require.Equal(t, []string{"d1"}, nodesOf(response.Shards.Failures))
		require.Equal(t, cluster.TooMany, response.Shards.Failures[0].Kind)
		require.Empty(t, completed(t, <-running).Shards.Failures)

		w.nodes["d2"].Close()
		w.nodes["d2"] = newPool(t, w, "d2", 1, 1)
		running = w.start(t.Context(), first)
		synctest.Wait()
		var failure *coordinator.SearchError
		require.ErrorAs(t, w.search(t.Context(), in("second", "g")).err, &failure)
		require.Equal(t, []any{coordinator.AllShardsFailed, 429, 4}, []any{failure.Reason, failure.Status, len(failure.Failures)})
		require.ErrorContains(t, failure, "all shards failed: rejected execution")
		require.Equal(t, cluster.TooMany, cluster.KindOf(failure), "the causes are in its chain")
		<-running
	})
}

// The status of a search that failed follows from its causes.
func TestTheStatusOfAFailedSearch(t *testing.T) {
	for _, test := range []struct {
		name  string
		kinds [3]cluster.Kind // of d1, d2, d3
		want  int
	}{
		{"rejections", [3]cluster.Kind{cluster.TooMany, cluster.TooMany, cluster.TooMany}, 429},
		{"nodes out of reach", [3]cluster.Kind{wire.NodeNotConnected, wire.NodeNotConnected, wire.TimedOut}, 503},
		{"both", [3]cluster.Kind{cluster.TooMany, wire.NodeNotConnected, cluster.TooMany}, 503},
		{"shards elsewhere", [3]cluster.Kind{wire.ShardNotFound, wire.ShardNotFound, wire.ShardNotFound}, 503},
		{"bad requests", [3]cluster.Kind{cluster.IllegalArgument, cluster.Parsing, cluster.Validation}, 400},
		{"an index deleted meanwhile", [3]cluster.Kind{cluster.IndexNotFound, cluster.IndexNotFound, cluster.IndexNotFound}, 404},
		{"a bad request and a rejection", [3]cluster.Kind{cluster.IllegalArgument, cluster.TooMany, cluster.TooMany}, 500},
		{"one that is broken", [3]cluster.Kind{wire.NodeNotConnected, wire.BadAnswer, wire.NodeNotConnected}, 500},
		{"an unknown kind", [3]cluster.Kind{"odd", "odd", "odd"}, 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, options{peers: func(coordinator.Peers) coordinator.Peers {
				return peers(func(_ context.Context, node string, _ *wire.SearchRequest) (*wire.SearchAnswer, error) {
					return nil, fmt.Errorf("wrapped: %w", cluster.Errorf(test.kinds[node[1]-'1'], "why"))
				})
			}})
			var failure *coordinator.SearchError
			require.ErrorAs(t, w.search(t.Context(), in("", "g")).err, &failure)
			require.Equal(t, test.want, failure.Status)
			require.Equal(t, test.kinds[0], failure.Failures[0].Kind, "the cause is kept")
		})
	}
}

// Promise 5: the requests under way are bounded.
func TestRequestsBeyondTheBoundFailWithARejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{config: coordinator.Config{Calls: 4}})
		long := in("long", "g")
		long.ServiceTime = time.Second
		running := w.start(t.Context(), long)
		synctest.Wait()
		response := completed(t, w.search(t.Context(), in("next", "g")))
		require.Equal(t, []string{"d2", "d3"}, nodesOf(response.Shards.Failures))
		require.Equal(t, cluster.TooMany, response.Shards.Failures[0].Kind)
		completed(t, <-running)
		require.Empty(t, completed(t, w.search(t.Context(), in("after", "g"))).Shards.Failures)
	})
}

// Case C08, gates that stay shut. Promise 6.
func TestAClientThatLeavesFreesItsPermitAndItsDataNodes(t *testing.T) {
	for _, variant := range []string{"working", "answer held"} {
		t.Run(variant, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.group("g", cluster.ByUsername, 2)
				if variant == "answer held" {
					require.NoError(t, w.holds.Hold(probe.DataNodeAnswer, probe.Filter{Count: 6}))
				}
				ctx, leave := context.WithCancel(as(t.Context(), "u1"))
				var running []<-chan answer
				for _, id := range []string{"a", "b"} {
					r := in(id, "g")
					if variant == "working" {
						r.ServiceTime = time.Hour
					}
					running = append(running, w.start(ctx, r))
				}
				synctest.Wait()
				throttled(t, w.search(ctx, in("c", "g")))
				left := time.Now()
				leave()
				for _, done := range running {
					require.ErrorIs(t, (<-done).err, context.Canceled)
				}
				require.Zero(t, time.Since(left))
				w.idle()
				completed(t, w.search(as(t.Context(), "u1"), in("d", "g")))
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: 1, Cancelled: 2, Throttled: 1}, w.outcomes("g"))
				require.EqualValues(t, 2, w.stats("id-g").Failures)
				synctest.Wait()
				if variant == "working" {
					for name, d := range w.nodes {
						require.EqualValues(t, 4, d.Stats().Cancelled, "tasks of %s that saw the end", name)
						require.Zero(t, d.Stats().Active)
					}
				}
			})
		})
	}
}

// Case C08, while the coordinator merges.
func TestAClientThatLeavesDuringTheMergeIsCancelled(t *testing.T) {
	for _, step := range []probe.Step{probe.FannedOut, probe.Merge, probe.Merged} {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{})
				w.group("g", cluster.ByUsername, 1)
				require.NoError(t, w.holds.Hold(step, probe.Filter{}))
				ctx, leave := context.WithCancel(as(t.Context(), "u1"))
				a := w.start(ctx, in("a", "g"))
				synctest.Wait()
				leave()
				w.holds.Release(step)
				require.ErrorIs(t, (<-a).err, context.Canceled)
				require.Equal(t, 1, w.releases("a"))
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Cancelled: 1}, w.outcomes("g"))
				w.idle()
				completed(t, w.search(as(t.Context(), "u1"), in("b", "g")))
			})
		})
	}
}

// Case C08, just as the last answer arrives.
func TestAClientThatLeavesAsTheLastAnswerArrivesIsCountedOnce(t *testing.T) {
	type key struct{}
	for _, variant := range []string{"before", "beside"} {
		t.Run(variant+" it", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
					return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
						a, err := next.Search(ctx, node, r)
						if node != "d3" {
							return a, err
						}
						leave := ctx.Value(key{}).(context.CancelFunc)
						if variant == "before" {
							leave()
						} else {
							go leave()
						}
						return a, err
					})
				}})
				w.group("g", cluster.ByUsername, 1)
				searches := rounds(200, 1000)
				completions := uint64(0)
				for round := range searches {
					ctx, leave := context.WithCancel(as(t.Context(), "u1"))
					r := in(fmt.Sprint(round), "g")
					a := w.search(context.WithValue(ctx, key{}, leave), r)
					if a.err == nil {
						completions++
					} else {
						require.ErrorIs(t, a.err, context.Canceled)
					}
					require.Equal(t, 1, w.releases(r.ID))
					w.idle()
					synctest.Wait()
				}
				if variant == "before" {
					require.Zero(t, completions, "a client that left before the end was decided is never counted as answered")
				}
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: completions, Cancelled: uint64(searches) - completions}, w.outcomes("g"))
			})
		})
	}
}

// Case C09. Promise 3.
func TestAPanicOrAnErrorAfterThePermitGivesItBack(t *testing.T) {
	at := func(step probe.Step) options {
		return options{hook: func(e probe.Event) {
			if e.Step == step && e.Search == "bad" {
				panic("injected")
			}
		}}
	}
	badPeers := func(bad func() (*wire.SearchAnswer, error)) options {
		return options{peers: func(next coordinator.Peers) coordinator.Peers {
			return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
				if r.Search == "bad" {
					return bad()
				}
				return next.Search(ctx, node, r)
			})
		}}
	}
	for name, o := range map[string]options{
		"a panic right after the permit":              at(probe.Acquired),
		"a panic in dispatch":                         at(probe.FannedOut),
		"a panic while merging":                       at(probe.Merge),
		"a panic once merged":                         at(probe.Merged),
		"a panic once released":                       at(probe.Released),
		"an error before anybody waits for an answer": badPeers(func() (*wire.SearchAnswer, error) { return nil, errors.New("refused") }),
		"a panic of the peer":                         badPeers(func() (*wire.SearchAnswer, error) { panic("injected") }),
		"a peer that ends its goroutine":              badPeers(func() (*wire.SearchAnswer, error) { runtime.Goexit(); return nil, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, o)
				w.group("g", cluster.ByGroup, 1)
				const times = 50
				for range times {
					a := w.search(t.Context(), in("bad", "g"))
					require.Nil(t, a.response)
					var whole *coordinator.SearchError
					if errors.As(a.err, &whole) {
						require.GreaterOrEqual(t, whole.Status, 500)
					} else {
						require.Equal(t, cluster.IllegalState, cluster.KindOf(a.err))
						require.NotContains(t, a.err.Error(), "injected", "the text of a panic is the log's alone")
					}
					w.idle()
					completed(t, w.search(t.Context(), in("good", "g")))
				}
				require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: times, Failed: times}, w.outcomes("g"))
			})
		})
	}
}

// Promise 3: also when a listener ends the search's goroutine.
func TestAGoexitOfAListenerGivesThePermitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		w := newWorld(t, options{config: coordinator.Config{
			Started: []func(context.Context, coordinator.Request) error{func(_ context.Context, r coordinator.Request) error {
				if r.ID == "bad" {
					runtime.Goexit()
				}
				return nil
			}},
			Ended: []func(context.Context, coordinator.Request, *coordinator.Response, error) error{
				func(_ context.Context, r coordinator.Request, response *coordinator.Response, err error) error {
					if r.ID == "bad" {
						require.Nil(t, response)
						require.Error(t, err)
						ended++
					}
					panic("and a panic in the other listener")
				},
			},
		}})
		w.group("g", cluster.ByGroup, 1)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			w.search(t.Context(), in("bad", "g"))
		}()
		<-gone
		w.idle()
		require.Equal(t, 1, ended)
		completed(t, w.search(t.Context(), in("good", "g")))
		require.Equal(t, coordinator.GroupOutcomes{Group: "id-g", Completed: 1, Failed: 1}, w.outcomes("g"))
		require.Contains(t, w.log.String(), "and a panic in the other listener")
	})
}

// Promises 5 and 6.
func TestATimeOutNamesTheNodesThatDidNotAnswer(t *testing.T) {
	const limit = 500 * time.Millisecond
	for _, test := range []struct {
		name     string
		setup    func(w *world, r *coordinator.Request)
		slow     []string
		partial  *bool
		reason   string // "": a partial answer
		want     time.Duration
		timedOut bool
		polite   bool // the nodes return when they are told to stop
	}{
		{name: "the request's, of a node that stops", setup: requestTimeout(limit), slow: []string{"d3"}, want: limit, timedOut: true, polite: true},
		{name: "the request's, of nodes that all stop", setup: requestTimeout(limit), slow: []string{"d1", "d2", "d3"}, reason: coordinator.AllShardsFailed, want: limit, polite: true},
		{name: "the request's", setup: requestTimeout(limit), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "the cluster's default", setup: clusterTimeout("500ms", 0), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "the request's before the cluster's", setup: clusterTimeout("5s", limit), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "none, whatever the cluster's", setup: clusterTimeout("500ms", -1), slow: []string{"d3"}, want: time.Hour},
		{name: "the group's before the cluster's", setup: groupSettings("500ms", "false", 0), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "the request's before the group's", setup: groupSettings("5s", "false", limit), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "the group's that overrides", setup: groupSettings("500ms", "true", 5*time.Second), slow: []string{"d3"}, want: limit, timedOut: true},
		{name: "the cluster's, partial not allowed", setup: requestTimeout(limit), slow: []string{"d3"}, partial: ptr(false), reason: coordinator.PartialFailure, want: limit},
		{name: "the request's, nobody answers", setup: requestTimeout(limit), slow: []string{"d1", "d2", "d3"}, reason: coordinator.AllShardsFailed, want: limit},
		{name: "none", setup: func(*world, *coordinator.Request) {}, slow: []string{"d1"}, want: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
					return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
						if contains(test.slow, node) {
							slow(ctx, test.polite)
						}
						return next.Search(ctx, node, r)
					})
				}})
				w.group("g", cluster.ByGroup, 1)
				r := in("one", "g")
				r.AllowPartial = test.partial
				test.setup(w, &r)
				began := time.Now()
				a := w.search(t.Context(), r)
				require.Equal(t, test.want, time.Since(began))
				w.idle()
				if test.reason != "" {
					var failure *coordinator.SearchError
					require.ErrorAs(t, a.err, &failure)
					require.Equal(t, test.reason, failure.Reason)
					require.Equal(t, 503, failure.Status)
					require.Equal(t, test.slow, nodesOf(failure.Failures))
					return
				}
				response := completed(t, a)
				require.Equal(t, test.timedOut, response.TimedOut)
				require.Equal(t, test.want, response.Took)
				if !test.timedOut {
					require.Empty(t, response.Shards.Failures)
					return
				}
				require.Equal(t, test.slow, nodesOf(response.Shards.Failures))
				require.Equal(t, wire.TimedOut, response.Shards.Failures[0].Kind)
				require.Contains(t, response.Shards.Failures[0].Reason, "[d3] did not answer within 500ms")
			})
		})
	}
}

// slowNode makes d3 answer a second late, or stop at once if it is polite.
func slowNode(polite bool) options {
	return options{peers: func(next coordinator.Peers) coordinator.Peers {
		return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			if node != "d3" {
				return next.Search(ctx, node, r)
			}
			if polite {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(time.Second)
			return next.Search(context.WithoutCancel(ctx), node, r)
		})
	}}
}

// Promise 6: what arrives after the end changes nothing, while the search is
// held before it looks, and while it merges.
func TestWhatComesAfterATimeOutIsNoAnswer(t *testing.T) {
	for _, test := range []struct {
		step   probe.Step
		polite bool
	}{{probe.FannedOut, true}, {probe.Merge, false}} {
		t.Run(string(test.step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, slowNode(test.polite))
				w.group("g", cluster.ByGroup, 1)
				require.NoError(t, w.holds.Hold(test.step, probe.Filter{}))
				r := in("one", "g")
				r.Timeout = 500 * time.Millisecond
				a := w.start(t.Context(), r)
				time.Sleep(2 * time.Second)
				w.holds.Release(test.step)
				response := completed(t, <-a)
				require.True(t, response.TimedOut)
				require.Equal(t, []string{"d3"}, nodesOf(response.Shards.Failures))
				require.Contains(t, response.Shards.Failures[0].Reason, "did not answer within 500ms")
				w.idle()
			})
		})
	}
}

func contains(list []string, s string) bool {
	for _, other := range list {
		if other == s {
			return true
		}
	}
	return false
}

// slow takes an hour, and looks at ctx only if it is polite.
func slow(ctx context.Context, polite bool) {
	done := ctx.Done()
	if !polite {
		done = nil
	}
	select {
	case <-done:
	case <-time.After(time.Hour):
	}
}

func requestTimeout(limit time.Duration) func(*world, *coordinator.Request) {
	return func(_ *world, r *coordinator.Request) { r.Timeout = limit }
}

func clusterTimeout(value string, request time.Duration) func(*world, *coordinator.Request) {
	return func(w *world, r *coordinator.Request) {
		w.apply(&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingSearchTimeout: &value}}})
		r.Timeout = request
	}
}

func groupSettings(timeout, override string, request time.Duration) func(*world, *coordinator.Request) {
	return func(w *world, r *coordinator.Request) {
		clusterTimeout("5s", request)(w, r)
		w.apply(&cluster.UpdateGroup{Name: "g", Settings: cluster.SettingsPatch{Set: map[string]*string{
			"search.default_search_timeout": &timeout, "override_request_values": &override,
		}}})
	}
}
