package replica

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streams is raft's stream layer over a listener and a dial function. It knows
// every open connection, pooled ones too, so that cut can end them all.
type streams struct {
	listener net.Listener
	address  address
	dial     func(context.Context, string) (net.Conn, error)
	ctx      context.Context
	cancel   context.CancelFunc

	mu       sync.Mutex
	open     map[*stream]struct{}
	opened   uint64
	closed   bool
	handlers sync.WaitGroup // one a connection that raft's transport serves
}

type address string

func (address) Network() string  { return "raft" }
func (a address) String() string { return string(a) }

type stream struct {
	net.Conn
	of       *streams
	number   uint64
	accepted bool
	once     sync.Once
}

func newStreams(c Config) *streams {
	ctx, cancel := context.WithCancel(context.Background())
	return &streams{
		listener: c.Listener, address: address(c.Address), dial: c.Dial,
		ctx: ctx, cancel: cancel, open: map[*stream]struct{}{},
	}
}

// Accept implements [net.Listener] for raft's transport.
func (s *streams) Accept() (net.Conn, error) {
	conn, err := s.listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.track(conn, true)
}

// Dial implements [raft.StreamLayer].
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	conn, err := s.dial(ctx, string(to))
	if err != nil {
		return nil, err
	}
	return s.track(conn, false)
}

// Close implements [net.Listener]; raft's transport calls it.
func (s *streams) Close() error { return s.listener.Close() }

// Addr returns the advertised address, by which raft names this server.
func (s *streams) Addr() net.Addr { return s.address }

func (s *streams) track(conn net.Conn, accepted bool) (net.Conn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = conn.Close() // the error that matters is that we are closed
		return nil, net.ErrClosed
	}
	s.opened++
	t := &stream{Conn: conn, of: s, number: s.opened, accepted: accepted}
	s.open[t] = struct{}{}
	if accepted {
		s.handlers.Add(1)
	}
	s.mu.Unlock()
	return t, nil
}

// Close ends the connection; its owner, raft, calls it once it is done with it.
func (t *stream) Close() error {
	err := t.Conn.Close()
	t.once.Do(func() {
		t.of.mu.Lock()
		delete(t.of.open, t)
		t.of.mu.Unlock()
		if t.accepted {
			t.of.handlers.Done()
		}
	})
	return err
}

// cut ends all connections and dials, in the order in which they were opened,
// and refuses new ones. It does not wait for those who use them.
func (s *streams) cut() {
	s.mu.Lock()
	s.closed = true
	open := make([]*stream, 0, len(s.open))
	for t := range s.open {
		open = append(open, t)
	}
	s.mu.Unlock()
	slices.SortFunc(open, func(a, b *stream) int { return cmp.Compare(a.number, b.number) })
	s.cancel()
	for _, t := range open {
		_ = t.Conn.Close() // whoever uses it sees the error
	}
}
