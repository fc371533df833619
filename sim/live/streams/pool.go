package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// DialFunc opens a connection to "ip:port".
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

// Config is what New needs.
type Config struct {
	// Listener accepts connections. Required; it is closed by Close.
	Listener net.Listener
	// Dial opens connections. Required. Their deadlines must work.
	Dial DialFunc
	// Bounds default field by field.
	Bounds Bounds
	// Log takes connections that broke the format or were too many. Nil: none.
	Log *slog.Logger
}

// Bounds limit what is kept. Every zero means the default.
type Bounds struct {
	// Kept is the number of connections without a stream that are kept to one
	// address. A sender needs two or three, to write on one while the other
	// end closes its stream on another. Default 4.
	Kept int
	// KeepFor is how long a connection is kept without a stream. The end that
	// accepted it waits twice as long, so that it never closes one that is
	// about to be used. Default 30 s.
	KeepFor time.Duration
	// Wait is how long a connection is awaited whose stream this end has closed
	// and the other end has not yet. While Awaited of them to one address are,
	// a new stream waits too, rather than dial: whoever sends messages faster
	// than they are taken packs more of them. Defaults 300 ms and 1.
	Wait    time.Duration
	Awaited int
	// Patience is how long the other end may take to close such a stream after
	// that, before the connection is given up. Default 1 s.
	Patience time.Duration
	// Accepted is the number of connections accepted and open at a time; more
	// are closed at once. Default 4,096.
	Accepted int
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &c.Bounds
	b.Kept = cmp.Or(b.Kept, 4)
	b.KeepFor = cmp.Or(b.KeepFor, 30*time.Second)
	b.Wait = cmp.Or(b.Wait, 300*time.Millisecond)
	b.Awaited = cmp.Or(b.Awaited, 1)
	b.Patience = cmp.Or(b.Patience, time.Second)
	b.Accepted = cmp.Or(b.Accepted, 4096)
	return c
}

func (c Config) check() error {
	var faults []error
	if c.Listener == nil || c.Dial == nil {
		faults = append(faults, errors.New("streams: a listener and a dial function are required"))
	}
	if b := c.Bounds; min(b.Kept, b.Awaited, b.Accepted) < 0 || min(b.KeepFor, b.Wait, b.Patience) < 0 {
		faults = append(faults, fmt.Errorf("streams: a bound is negative: %+v", b))
	}
	return errors.Join(faults...)
}

// Pool dials and accepts streams. It is a net.Listener of streams. Its methods
// may be called from any goroutine.
type Pool struct {
	cfg      Config
	accepted chan net.Conn
	failed   chan error // of the listener
	done     chan struct{}
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	opened uint64
	conns  map[uint64]connection // every one, by number
	served int                   // how many of them were accepted
	routes map[string]*route     // by address
}

// connection is one of either end.
type connection interface{ abandon(cause error) }

var _ net.Listener = (*Pool)(nil)

// New returns a Pool that accepts at once. It owns c.Listener from here on,
// also when it returns an error, which names every fault of c.
func New(c Config) (*Pool, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		if c.Listener != nil {
			_ = c.Listener.Close()
		}
		return nil, err
	}
	p := &Pool{
		cfg: c, accepted: make(chan net.Conn), failed: make(chan error), done: make(chan struct{}),
		conns: make(map[uint64]connection), routes: make(map[string]*route),
	}
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the listener's address.
func (p *Pool) Addr() net.Addr { return p.cfg.Listener.Addr() }

// Accept returns the next stream that another end has opened. Errors:
// net.ErrClosed after Close, or one of the listener's, after which it goes on.
func (p *Pool) Accept() (net.Conn, error) {
	select {
	case s := <-p.accepted:
		return s, nil
	case err := <-p.failed:
		return nil, err
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Dial opens a stream to an address: on a connection that was kept, or else on
// a new one. An error is net.ErrClosed or the dial's.
func (p *Pool) Dial(ctx context.Context, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := p.reuse(ctx, address); s != nil {
		return s, nil
	}
	conn, err := p.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	l := newLine(p, conn, address)
	if !p.add(l, l.run, false) {
		return nil, net.ErrClosed
	}
	s := l.open()
	if s == nil {
		return nil, l.cause()
	}
	return s, nil
}

// Close ends everything and waits. Calling it again does nothing more.
func (p *Pool) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	conns := maps.Clone(p.conns)
	p.mu.Unlock()
	var err error
	if first {
		close(p.done)
		err = p.cfg.Listener.Close()
		for _, number := range slices.Sorted(maps.Keys(conns)) {
			conns[number].abandon(net.ErrClosed)
		}
	}
	p.running.Wait()
	return err
}

// add takes in a connection and runs what reads it. It returns false, and
// abandons the connection, once the pool is closed or holds too many.
func (p *Pool) add(c connection, run func(), served bool) bool {
	p.mu.Lock()
	full := served && p.served == p.cfg.Bounds.Accepted
	ok := !p.closed && !full
	if ok {
		p.opened++
		number := p.opened
		p.conns[number] = c
		if served {
			p.served++
		}
		if l, dialled := c.(*line); dialled {
			p.routeLocked(l.address).lines++
		}
		p.running.Go(func() {
			defer p.remove(number, served)
			run()
		})
	}
	p.mu.Unlock()
	if !ok {
		c.abandon(net.ErrClosed)
	}
	if full {
		p.cfg.Log.Warn("streams: too many connections, one more was closed", "at most", p.cfg.Bounds.Accepted)
	}
	return ok
}

func (p *Pool) remove(number uint64, served bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, number)
	if served {
		p.served--
	}
}

func (p *Pool) accept() {
	for {
		conn, err := p.cfg.Listener.Accept()
		if err == nil {
			s := newServed(p, conn)
			p.add(s, s.run, true)
			continue
		}
		select {
		case <-p.done:
			return
		default:
		}
		select {
		case p.failed <- err:
		case <-p.done:
			return
		}
	}
}
