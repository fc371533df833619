package coordinator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

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
	sent    Sent // nil: a courier carries it

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

// post sends a call by [Sender.Send]; false: a courier has to carry it.
func (c *Coordinator) post(k *call) (posted bool, err error) {
	if c.sender == nil {
		return false, nil
	}
	if !c.guard("a request to a data node", k.search.name, func() {
		k.sent, err = c.sender.Send(k.target.node, &k.request, k)
	}) {
		return false, errPanicked()
	}
	return k.sent != nil, err
}

// Answered implements [Answered].
func (k *call) Answered(answer *wire.SearchAnswer, err error) {
	k.search.c.couriers.underWay.Add(-1)
	k.round.take(k, answer, err)
}

// maxIdle bounds the couriers that are kept for the next search.
const maxIdle = 256

// couriers are the goroutines that wait for data nodes which can only be asked
// by waiting. One that has brought its answer is used again: a fresh goroutine
// would pay for the growth of its stack on every request.
type couriers struct {
	limit    int
	post     func(*call) (bool, error)
	run      func(*call) (*wire.SearchAnswer, error)
	underWay atomic.Int64 // calls, also those without a courier

	mu     sync.Mutex
	idle   []chan *call // of couriers without a call; the last one came last
	closed bool
	all    sync.WaitGroup
}

var errClosed = errors.New("the node is closing")

// send lets a call begin, or says why it cannot be made.
func (s *couriers) send(k *call) error {
	if s.underWay.Add(1) > int64(s.limit) {
		s.underWay.Add(-1)
		return cluster.Errorf(cluster.TooMany, "rejected execution of a request to node [%s]: %d requests to data nodes are under way", k.target.node, s.limit)
	}
	posted, err := s.post(k)
	if err == nil && !posted {
		err = s.give(k)
	}
	if err != nil {
		s.underWay.Add(-1)
	}
	return err
}

// give gives a call to a courier.
func (s *couriers) give(k *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if last := len(s.idle) - 1; last >= 0 {
		s.idle[last] <- k // never waits: its courier is idle and the channel holds one
		s.idle = s.idle[:last]
		return nil
	}
	calls := make(chan *call, 1)
	calls <- k
	s.all.Go(func() { s.serve(calls) })
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
	s.underWay.Add(-1)
	if !alive || s.closed || len(s.idle) >= maxIdle {
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
		s.idle = nil
	}
	s.mu.Unlock()
	s.all.Wait()
}
