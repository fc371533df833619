package applier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// DefaultQueue is how many versions may wait to be applied. A node so far
// behind has a listener that is stuck; its memory should not grow for ever.
const DefaultQueue = 10_000

var (
	// ErrQueueFull is what Enqueue wraps when as many versions wait as the
	// queue holds. The node cannot follow the cluster any more and must stop.
	ErrQueueFull = errors.New("the applier's queue is full")
	// ErrClosed is returned after Close has begun, also to those who wait.
	ErrClosed = errors.New("the applier is closed")
	// ErrNotStarted is returned by Enqueue before Start.
	ErrNotStarted = errors.New("the applier is not started")
)

// Func hears of a change from prev to next. Both are immutable and may be
// kept. It is called on the applier's goroutine, so it must return for the
// next version to be applied; it may call any method of the Applier but Close
// and a Wait for the version under way.
type Func func(prev, next *cluster.State) error

// Config configures an [Applier]. The zero value is ready.
type Config struct {
	Queue int          // versions that may wait; 0 or less: DefaultQueue
	Probe *probe.Probe // nil: no steps
	Log   *slog.Logger // nil: no log
	// Gate, if set, is called between step applier.received and the first
	// subscriber, with the time at which the version was enqueued. It may
	// block, until ctx ends with Close; a version that Close meets here is not
	// applied. The publication manager_last waits here for the other nodes.
	// The initial state passes no gate.
	Gate func(ctx context.Context, next *cluster.State, since time.Time)
}

func (c Config) withDefaults() Config {
	if c.Queue <= 0 {
		c.Queue = DefaultQueue
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Applier applies versions of the state. Make one with [New].
type Applier struct {
	config    Config
	before    []subscriber // fixed from Start on
	listeners []subscriber // fixed from Start on

	state   atomic.Pointer[cluster.State]
	applied atomic.Uint64

	closing context.Context // ends with Close
	close   context.CancelFunc
	wake    chan struct{} // holds a token when the queue may have something
	ended   chan struct{} // closed when the goroutine has ended; nil before Start

	mu      sync.Mutex // guards what follows and ended, never held across a wait or a call
	queue   []queued
	last    uint64 // version that was queued last
	waiters []waiter
}

type subscriber struct {
	name string
	hear Func
}

// queued is a version that waits to be applied.
type queued struct {
	state *cluster.State
	since time.Time // when it was enqueued; zero for the initial state
}

// waiter is somebody in Wait. done is closed when the version is applied.
type waiter struct {
	version uint64
	done    chan struct{}
}

// New returns an applier that has [cluster.Empty] and is not started.
func New(c Config) *Applier {
	a := &Applier{config: c.withDefaults(), wake: make(chan struct{}, 1)}
	a.closing, a.close = context.WithCancel(context.Background())
	a.state.Store(cluster.Empty())
	return a
}

// Before registers a subscriber that runs before a version is readable: State
// still returns prev. Upstream, such an exception fails the application on
// that node. Here the version is committed by then, and a node that refuses it
// would diverge: an error or a panic is logged as an error, and the version is
// published. Registering after Start panics.
func (a *Applier) Before(name string, f Func) {
	a.mustBeNew("subscriber", name)
	a.before = append(a.before, subscriber{name, f})
}

// Listen registers a listener that runs after a version is readable. An error
// or a panic is logged as a warning. Registering after Start panics.
func (a *Applier) Listen(name string, f Func) {
	a.mustBeNew("listener", name)
	a.listeners = append(a.listeners, subscriber{name, f})
}

func (a *Applier) mustBeNew(what, name string) {
	if a.ending() != nil {
		panic(fmt.Sprintf("applier: %s %q registered after the start", what, name))
	}
}

// Start begins to apply versions, the initial one first: subscribers and
// listeners hear of it as a change from [cluster.Empty]. It returns at once,
// so State may still be the empty state. A second Start panics.
func (a *Applier) Start(initial *cluster.State) {
	a.mustBeNew("initial state", fmt.Sprint("version ", initial.Version()))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = make(chan struct{})
	a.queue = []queued{{state: initial}}
	a.last = initial.Version()
	go a.run()
}

// ending returns the channel that is closed at the goroutine's end; nil before
// Start.
func (a *Applier) ending() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// Enqueue hands over the next version and never waits. A version that is not
// newer than the last one queued is skipped without an error: after a restore
// the log repeats what the snapshot held. A jump over versions is fine.
// The errors are [ErrNotStarted], [ErrClosed], and one that wraps
// [ErrQueueFull] and names the bound.
func (a *Applier) Enqueue(next *cluster.State) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended == nil:
		return ErrNotStarted
	case a.closing.Err() != nil:
		return ErrClosed
	case next.Version() <= a.last:
		return nil
	case len(a.queue) >= a.config.Queue:
		return fmt.Errorf("enqueue version %d: %w: %d versions wait and %d may; version %d is applied",
			next.Version(), ErrQueueFull, len(a.queue), a.config.Queue, a.applied.Load())
	}
	a.queue = append(a.queue, queued{next, time.Now()})
	a.last = next.Version()
	select {
	case a.wake <- struct{}{}:
	default: // a token is there already
	}
	return nil
}

// State returns the published state, never nil: one atomic load.
func (a *Applier) State() *cluster.State { return a.state.Load() }

// Applied returns the version whose last listener returned; 0 before any.
func (a *Applier) Applied() uint64 { return a.applied.Load() }

// Wait blocks until Applied is at least version, and then returns nil. It ends
// early with an error that wraps ctx's cause or [ErrClosed].
func (a *Applier) Wait(ctx context.Context, version uint64) error {
	w, there := a.await(version)
	if there {
		return nil
	}
	var why error
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-a.closing.Done():
		why = ErrClosed
	}
	if a.forget(w) {
		return fmt.Errorf("wait for version %d, version %d is applied: %w", version, a.Applied(), why)
	}
	return nil // it was applied at the same moment
}

func (a *Applier) await(version uint64) (w waiter, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied.Load() >= version {
		return waiter{}, true
	}
	w = waiter{version, make(chan struct{})}
	a.waiters = append(a.waiters, w)
	return w, false
}

// forget takes a waiter out; false if it was woken before.
func (a *Applier) forget(gone waiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, w := range a.waiters {
		if w.done == gone.done {
			a.waiters = append(a.waiters[:i], a.waiters[i+1:]...)
			return true
		}
	}
	return false
}

// Close stops after the version under way and waits for the goroutine.
// Versions in the queue are dropped. It cannot return while a subscriber, a
// listener or a held step does not: release holds first. It may be called more
// than once, from several goroutines, and before Start, which then applies
// nothing.
func (a *Applier) Close() {
	a.close()
	if ended := a.ending(); ended != nil {
		<-ended
	}
}

func (a *Applier) run() {
	defer close(a.ended)
	defer a.close() // a listener may end its goroutine: nobody may wait for ever
	for next, more := a.take(); more; next, more = a.take() {
		a.at(probe.Event{Step: probe.ApplierReceived, Touches: a.untilPublished()}, next.state)
		if !next.since.IsZero() && a.config.Gate != nil {
			a.config.Gate(a.closing, next.state, next.since)
		}
		if a.closing.Err() != nil {
			return
		}
		a.apply(next.state)
	}
}

// take waits for the next version of the queue; false once the applier closes.
func (a *Applier) take() (next queued, more bool) {
	for a.closing.Err() == nil {
		if next, more = a.pop(); more {
			return next, true
		}
		select {
		case <-a.wake:
		case <-a.closing.Done():
		}
	}
	return queued{}, false
}

func (a *Applier) pop() (next queued, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return queued{}, false
	}
	next = a.queue[0]
	a.queue[0] = queued{} // the array outlives the slice's start
	a.queue = a.queue[1:]
	return next, true
}

// apply takes the node from the published state to next. The order of its
// lines is what this package is for; see DESIGN.md.
func (a *Applier) apply(next *cluster.State) {
	prev := a.state.Load()
	for _, s := range a.before {
		a.at(probe.Event{Step: probe.ApplierApply, Listener: s.name, Touches: probe.WriteState}, next)
		a.tell(s, prev, next, slog.LevelError, "subscriber %s failed before version %d was readable")
	}
	a.state.Store(next)
	a.at(probe.Event{Step: probe.ApplierPublished}, next)
	for _, s := range a.listeners {
		a.at(probe.Event{Step: probe.ApplierNotify, Listener: s.name, Touches: probe.WriteMap | probe.WriteCounters}, next)
		a.tell(s, prev, next, slog.LevelWarn, "failed to notify listener %s of version %d")
	}
	a.wakeUpTo(next.Version())
	a.at(probe.Event{Step: probe.ApplierNotified}, next)
}

// untilPublished is what step applier.received touches: the publication comes
// straight after it where no subscriber's step stands between.
func (a *Applier) untilPublished() probe.Touch {
	if len(a.before) == 0 {
		return probe.WriteState
	}
	return 0
}

func (a *Applier) at(e probe.Event, next *cluster.State) {
	e.Version = next.Version()
	a.config.Probe.At(e)
}

// tell calls a subscriber and logs its error or panic.
func (a *Applier) tell(s subscriber, prev, next *cluster.State, level slog.Level, message string) {
	defer func() {
		if p := recover(); p != nil {
			a.config.Log.Log(a.closing, level, fmt.Sprintf(message, s.name, next.Version()), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if err := s.hear(prev, next); err != nil {
		a.config.Log.Log(a.closing, level, fmt.Sprintf(message, s.name, next.Version()), "error", err)
	}
}

// wakeUpTo records the applied version and wakes those who wait for it.
func (a *Applier) wakeUpTo(version uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied.Store(version)
	waiting := a.waiters[:0]
	for _, w := range a.waiters {
		if w.version <= version {
			close(w.done)
		} else {
			waiting = append(waiting, w)
		}
	}
	clear(a.waiters[len(waiting):])
	a.waiters = waiting
}
