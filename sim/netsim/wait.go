package netsim

import (
	"slices"
	"time"
)

// waiter is one goroutine that waits for something of the network to change.
// The network keeps them for re-use, with their timers.
type waiter struct {
	ch    chan struct{}
	timer *time.Timer
}

// maxIdleWaiters bounds the waiters that are kept.
const maxIdleWaiters = 1024

// waiters are the goroutines to wake when one thing changes.
type waiters []*waiter

// wake lets all of them look again.
func (l *waiters) wake() {
	for i, w := range *l {
		select {
		case w.ch <- struct{}{}:
		default: // it has been woken already
		}
		(*l)[i] = nil
	}
	*l = (*l)[:0]
}

// waitLocked gives up the network's lock until the list is woken, the deadline
// passes or done is closed, whichever is first, and has the lock again when it
// returns. The caller looks again for itself what has changed. A zero deadline
// and a nil done never come.
func (n *Network) waitLocked(l *waiters, deadline time.Time, done <-chan struct{}) {
	w := n.takeWaiterLocked()
	*l = append(*l, w)
	n.mu.Unlock()
	w.wait(deadline, done)
	n.mu.Lock()
	if i := slices.Index(*l, w); i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	select {
	case <-w.ch: // woken while it gave up
	default:
	}
	if len(n.idle) < maxIdleWaiters {
		n.idle = append(n.idle, w)
	}
}

func (n *Network) takeWaiterLocked() *waiter {
	last := len(n.idle) - 1
	if last < 0 {
		return &waiter{ch: make(chan struct{}, 1)}
	}
	w := n.idle[last]
	n.idle = n.idle[:last]
	return w
}

func (w *waiter) wait(deadline time.Time, done <-chan struct{}) {
	if deadline.IsZero() && done == nil {
		<-w.ch
		return
	}
	var expired <-chan time.Time
	if !deadline.IsZero() {
		expired = w.arm(time.Until(deadline))
		defer w.timer.Stop() // from Go 1.23 on nothing stale stays in the channel
	}
	select {
	case <-w.ch:
	case <-expired:
	case <-done:
	}
}

func (w *waiter) arm(d time.Duration) <-chan time.Time {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	return w.timer.C
}

// noDeadline never comes.
var noDeadline time.Time

// passed tells whether a deadline is over; the zero deadline never is.
func passed(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}
