package coordinator_test

import (
	"context"
	"errors"
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

// senders are peers that are asked without waiting: d1 and d2. d3 is left to
// Search.
type senders struct {
	coordinator.Peers
	refusal func() error // of a Send; nil: none

	mu   sync.Mutex
	sent []*sent
	slow chan struct{} // the next Cancel ends with it; nil: at once
}

// sent is a request to d1 or d2 under way.
type sent struct {
	s    *senders
	node string
	r    *wire.SearchRequest
	k    coordinator.Answered

	over, cancelled bool // under the lock of senders
}

func (s *senders) Send(node string, r *wire.SearchRequest, k coordinator.Answered) (coordinator.Sent, error) {
	if node == "d3" {
		return nil, nil
	}
	if s.refusal != nil {
		return nil, s.refusal()
	}
	one := &sent{s: s, node: node, r: r, k: k}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, one)
	return one, nil
}

// end says whether the request was not over before.
func (o *sent) end(cancelled bool) bool {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	before := o.over
	o.over, o.cancelled = true, o.cancelled || cancelled && !before
	return !before
}

// Cancel implements coordinator.Sent.
func (o *sent) Cancel() {
	if o.end(true) {
		o.k.Answered(nil, context.Canceled)
		o.s.mu.Lock()
		slow := o.s.slow
		o.s.slow = nil
		o.s.mu.Unlock()
		if slow != nil {
			<-slow
		}
	}
}

// answer lets the data node answer.
func (o *sent) answer() {
	answer, err := o.s.Search(context.Background(), o.node, o.r)
	if o.end(false) {
		o.k.Answered(answer, err)
	}
}

// take returns the requests that are under way, by node.
func (s *senders) take() map[string]*sent {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string]*sent{}
	for _, o := range s.sent {
		of[o.node] = o
	}
	s.sent = nil
	return of
}

// cancelled returns how many of some requests were taken back.
func (s *senders) cancelled(of map[string]*sent) (n int) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range of {
		if o.cancelled {
			n++
		}
	}
	return n
}

func TestPeersThatAreAskedWithoutWaiting(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *world, *senders){
		"all answer, each in its own order": func(t *testing.T, w *world, s *senders) {
			plain := newWorld(t, options{})
			plain.group("g", cluster.ByGroup, 1)
			want := completed(t, plain.search(t.Context(), in("s", "g")))
			for _, order := range [][]string{{"d1", "d2"}, {"d2", "d1"}} {
				a := w.start(t.Context(), in("s", "g"))
				of := s.take()
				require.Len(t, of, 2)
				for _, node := range order {
					require.Empty(t, a)
					of[node].answer()
				}
				require.Equal(t, want, completed(t, <-a))
				require.Zero(t, s.cancelled(of))
			}
		},
		"an error of one is the failure of its shards": func(t *testing.T, w *world, s *senders) {
			a := w.start(t.Context(), in("s", "g"))
			of := s.take()
			of["d1"].end(false)
			of["d1"].k.Answered(nil, errors.New("gone"))
			of["d2"].answer()
			require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 4, Failed: 2}, counts(completed(t, <-a)))
		},
		"the time is over": func(t *testing.T, w *world, s *senders) {
			r := in("s", "g")
			r.Timeout = time.Second
			a := w.start(t.Context(), r)
			of := s.take()
			of["d2"].answer()
			response := completed(t, <-a)
			require.True(t, response.TimedOut)
			require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 4, Failed: 2}, counts(response))
			require.Equal(t, 1, s.cancelled(of))
		},
		"the client leaves": func(t *testing.T, w *world, s *senders) {
			ctx, leave := context.WithCancel(t.Context())
			a := w.start(ctx, in("s", "g"))
			of := s.take()
			leave()
			require.ErrorIs(t, (<-a).err, context.Canceled)
			require.Equal(t, 2, s.cancelled(of))
		},
		"the client leaves while the search is held": func(t *testing.T, w *world, s *senders) {
			require.NoError(t, w.holds.Hold(probe.FannedOut, probe.Filter{}))
			ctx, leave := context.WithCancel(t.Context())
			a := w.start(ctx, in("s", "g"))
			of := s.take()
			require.Zero(t, s.cancelled(of))
			leave()
			require.Equal(t, 2, s.cancelled(of))
			require.Empty(t, a)
			w.holds.Release(probe.FannedOut)
			require.ErrorIs(t, (<-a).err, context.Canceled)
		},
		"a search that was held returns when its requests are taken back": func(t *testing.T, w *world, s *senders) {
			require.NoError(t, w.holds.Hold(probe.FannedOut, probe.Filter{}))
			slow := make(chan struct{})
			s.slow = slow
			ctx, leave := context.WithCancel(t.Context())
			a := w.start(ctx, in("s", "g"))
			of := s.take()
			leave()
			require.Equal(t, 1, s.cancelled(of))
			w.holds.Release(probe.FannedOut)
			synctest.Wait()
			require.Empty(t, a, "it has begun what goes on")
			close(slow)
			require.ErrorIs(t, (<-a).err, context.Canceled)
			require.Equal(t, 2, s.cancelled(of))
		},
		"the node closes": func(t *testing.T, w *world, s *senders) {
			a := w.start(t.Context(), in("s", "g"))
			of := s.take()
			w.c.Close()
			require.Equal(t, cluster.ClusterBlock, cluster.KindOf((<-a).err))
			require.Equal(t, 2, s.cancelled(of))
		},
		"asking is refused": func(t *testing.T, w *world, s *senders) {
			s.refusal = func() error { return errors.New("full") }
			require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 2, Failed: 4}, counts(completed(t, w.search(t.Context(), in("s", "g")))))
		},
		"asking panics": func(t *testing.T, w *world, s *senders) {
			s.refusal = func() error { panic("injected") }
			require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 2, Failed: 4}, counts(completed(t, w.search(t.Context(), in("s", "g")))))
		},
		"they count among the calls under way": func(t *testing.T, w *world, s *senders) {
			first := w.start(t.Context(), in("first", ""))
			of := s.take() // d1 and d2; d3 has answered
			second := w.start(t.Context(), in("second", ""))
			of2 := s.take()
			require.Len(t, of2, 1, "of three calls at most")
			of2["d1"].answer()
			require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 2, Failed: 4}, counts(completed(t, <-second)))
			of["d1"].answer()
			of["d2"].answer()
			completed(t, <-first)
			third := w.start(t.Context(), in("third", ""))
			for _, o := range s.take() {
				o.answer()
			}
			require.Equal(t, 6, completed(t, <-third).Shards.Successful)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &senders{}
				w := newWorld(t, options{config: coordinator.Config{Calls: 3}, peers: func(next coordinator.Peers) coordinator.Peers {
					s.Peers = next
					return s
				}})
				w.group("g", cluster.ByGroup, 1)
				test(t, w, s)
				w.idle()
			})
		})
	}
}

// counts are the numbers of a summary.
func counts(r *coordinator.Response) coordinator.ShardSummary {
	s := r.Shards
	s.Failures = nil
	return s
}
