package coordinator

import (
	"context"
	"errors"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// call is one request of a search to one data node, and what came of it.
type call struct {
	search  *search
	round   *round
	ctx     context.Context
	target  *target
	request wire.SearchRequest

	done   bool // under the round's lock, like answer and err; the search's own once it is sealed
	answer *wire.SearchAnswer
	err    error
}

// deliver makes a call. A panic of the peer is the node's failure.
func (c *Coordinator) deliver(k *call) (answer *wire.SearchAnswer, err error) {
	if !c.guard("a request to a data node", k.search.name, func() {
		answer, err = c.config.Peers.Search(k.ctx, k.target.node, &k.request)
	}) {
		return nil, errPanicked()
	}
	return answer, err
}

// maxIdle bounds the couriers that are kept for the next search.
const maxIdle = 256

// couriers are the goroutines that wait for data nodes. One that has brought
// its answer is used again: a fresh goroutine would pay for the growth of its
// stack on every request.
type couriers struct {
	limit int
	run   func(*call) (*wire.SearchAnswer, error)

	mu     sync.Mutex
	idle   []chan *call // of couriers without a call; the last one came last
	alive  int          // couriers that have not ended
	closed bool
	all    sync.WaitGroup
}

var errClosed = errors.New("the node is closing")

// send gives a call to a courier, or says why it cannot be made.
func (s *couriers) send(k *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case len(s.idle) > 0:
		last := len(s.idle) - 1
		s.idle[last] <- k // never waits: its courier is idle and the channel holds one
		s.idle = s.idle[:last]
	case s.alive >= s.limit:
		return cluster.Errorf(cluster.TooMany, "rejected execution of a request to node [%s]: %d requests to data nodes are under way", k.target.node, s.limit)
	default:
		s.alive++
		calls := make(chan *call, 1)
		calls <- k
		s.all.Go(func() { s.serve(calls) })
	}
	return nil
}

// serve is the life of a courier.
func (s *couriers) serve(calls chan *call) {
	for k := range calls {
		if !s.carry(calls, k) {
			return
		}
	}
}

// carry makes one call and says whether the courier is idle again. It is so
// before its search hears of the answer, so that searches in a row find it.
// A Goexit of the peer ends the courier, after its search has heard that there
// is no answer.
func (s *couriers) carry(calls chan *call, k *call) (again bool) {
	var (
		answer   *wire.SearchAnswer
		err      error
		returned bool
	)
	defer func() {
		again = s.park(calls, returned)
		k.round.take(k, answer, err)
	}()
	answer, err = s.run(k)
	returned = true
	return true
}

// park makes a courier idle if it is alive and needed.
func (s *couriers) park(calls chan *call, alive bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !alive || s.closed || len(s.idle) >= maxIdle {
		s.alive--
		return false
	}
	s.idle = append(s.idle, calls)
	return true
}

// close ends all couriers and waits for them.
func (s *couriers) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, calls := range s.idle {
			close(calls)
		}
		s.alive -= len(s.idle)
		s.idle = nil
	}
	s.mu.Unlock()
	s.all.Wait()
}
