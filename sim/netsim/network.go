package netsim

import (
	"fmt"
	"math"
	"net"
	"sync"
	"time"
)

// Network is a network of hosts. Its methods may be called from any goroutine.
type Network struct {
	cfg   Config
	start time.Time

	ended chan struct{}
	timer *time.Timer // fires when the first event is due, and when the network closes

	mu       sync.Mutex // guards all below, and the state of every socket
	closed   bool
	hosts    []*Host // by address: the first one has number 1
	byName   map[string]*Host
	cuts     []*Cut  // those not healed, oldest first
	changed  []*link // those with faults of their own
	events   events
	lastSeq  uint64
	armed    int64 // when the timer fires; never if it does not
	stepping bool  // the goroutine delivers, and arms the timer afterwards
	streams  uint64
	idle     []*waiter
	spare    []*datagram
	stats    Stats
	holds    func(from, to string, port int, what Kind) bool // see HoldBack; nil: nothing
	held     []*half                                         // whose first item is held back, the longest first
}

const never = math.MaxInt64

// New returns a network and starts its goroutine; Close ends it. In a bubble, New
// must be called inside of it. It fails when the config is out of bounds, with
// all that is wrong.
func New(cfg Config) (*Network, error) {
	cfg = cfg.filled()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("netsim: %w", err)
	}
	n := &Network{
		cfg:    cfg,
		start:  time.Now(),
		ended:  make(chan struct{}),
		timer:  time.NewTimer(time.Hour),
		byName: make(map[string]*Host),
		armed:  never,
	}
	n.timer.Stop()
	go n.run()
	return n, nil
}

// Host returns the host of that name, and makes it at the first call. Its
// address follows from how many hosts were made before it: 10.0.0.1, 10.0.0.2
// and so on.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.byName[name]; h != nil {
		return h
	}
	h := newHost(n, name, len(n.hosts)+1)
	n.hosts = append(n.hosts, h)
	n.byName[name] = h
	return h
}

// Stats returns what was counted so far.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// Close ends every call on every socket with net.ErrClosed, forgets what is
// under way, and returns when the network's goroutine has ended. Calling it
// again does nothing.
func (n *Network) Close() error {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		for _, h := range n.hosts {
			h.shutLocked(net.ErrClosed)
		}
		n.events = nil
		n.timer.Reset(0)
	}
	n.mu.Unlock()
	<-n.ended
	return nil
}

// run delivers what is due, whenever the timer fires, until the network closes.
func (n *Network) run() {
	defer close(n.ended)
	for range n.timer.C {
		if !n.step() {
			return
		}
	}
}

// step delivers every event that is due. It is false once the network is closed.
func (n *Network) step() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stepping, n.armed = true, never
	for now := n.nowLocked(); len(n.events) > 0 && n.events[0].at <= now; {
		n.observeLocked(n.deliverLocked(n.events.pop()))
	}
	n.stepping = false
	if len(n.events) > 0 {
		n.armLocked(n.events[0].at)
	}
	return !n.closed
}

// deliverLocked lets one event take effect. It is false when nothing arrives:
// the connection is gone, or a cut holds it back.
func (n *Network) deliverLocked(e event) (Delivery, bool) {
	if e.half != nil {
		return e.half.arriveLocked(e.seq)
	}
	return e.gram.arriveLocked(), true
}

func (n *Network) observeLocked(d Delivery, happened bool) {
	if !happened || n.cfg.Observe == nil {
		return
	}
	d.At = time.Duration(n.nowLocked())
	n.unlocked(func() { n.cfg.Observe(d) })
}

// unlocked calls f without the lock, and has it again even if f panics, so that
// the panic is what is reported.
func (n *Network) unlocked(f func()) {
	n.mu.Unlock()
	defer n.mu.Lock()
	f()
}

// nowLocked returns the nanoseconds since the network was made.
func (n *Network) nowLocked() int64 { return int64(time.Since(n.start)) }

// scheduleLocked makes an event and returns its number. A closed network makes
// none.
func (n *Network) scheduleLocked(e event) uint64 {
	if n.closed {
		return 0
	}
	n.lastSeq++
	e.seq = n.lastSeq
	n.events.push(e)
	if e.at < n.armed && !n.stepping {
		n.armLocked(e.at)
	}
	return e.seq
}

func (n *Network) armLocked(at int64) {
	n.armed = at
	n.timer.Reset(time.Duration(at - n.nowLocked()))
}
