package gossip

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport puts a Network under memberlist. It owns two goroutines and knows every open stream, so that its shutdown
// leaves none behind.
type transport struct {
	network Network
	self    netip.AddrPort
	timings Timings
	log     *slog.Logger
	// refused is told the life whose address refused a dial. It must not block.
	refused func(life string)

	packets chan *memberlist.Packet
	streams chan net.Conn
	ctx     context.Context
	cancel  context.CancelFunc
	loops   sync.WaitGroup // accepting, reading packets
	open    sync.WaitGroup // streams not closed yet

	mu     sync.Mutex
	opened uint64
	conns  map[uint64]*stream // by number; nil once shut down
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// dialError marks an error after which nothing can have been sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isDialError(err error) bool {
	var d dialError
	return errors.As(err, &d)
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func newTransport(network Network, self netip.AddrPort, timings Timings, log *slog.Logger, refused func(string)) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		network: network, self: self, timings: timings, log: log, refused: refused,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		ctx: ctx, cancel: cancel, conns: make(map[uint64]*stream),
	}
	t.loops.Go(t.accept)
	t.loops.Go(t.read)
	return t
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.self.Addr().AsSlice(), int(t.self.Port()), nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	_, err = t.network.Packets.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return now, err
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream and gives it a deadline of its own, since memberlist sets none for what it only writes.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, min(timeout, t.timings.Dial))
	defer cancel()
	conn, err := t.network.Dial(ctx, a.Addr)
	if err != nil {
		if isRefused(err) && a.Name != "" {
			t.refused(a.Name)
		}
		return nil, dialError{err}
	}
	s := t.track(conn)
	if s == nil {
		return nil, dialError{net.ErrClosed}
	}
	if err := s.SetDeadline(time.Now().Add(t.timings.Stream)); err != nil {
		_ = s.Close()
		return nil, dialError{err}
	}
	return s, nil
}

// Shutdown closes everything and waits for the two loops.
func (t *transport) Shutdown() error {
	t.cancel()
	_ = t.network.Listener.Close()
	_ = t.network.Packets.Close()
	t.mu.Lock()
	conns := t.conns
	t.conns = nil
	t.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(conns)) {
		_ = conns[number].Conn.Close() // its user still closes the stream itself
	}
	t.loops.Wait()
	return nil
}

func (t *transport) accept() {
	for {
		conn, err := t.network.Listener.Accept()
		if err != nil {
			if !t.survives("accept", err) {
				return
			}
			continue
		}
		s := t.track(conn)
		if s == nil {
			return
		}
		select {
		case t.streams <- s:
		case <-t.ctx.Done():
			_ = s.Close()
			return
		}
	}
}

// maxPacket is the largest datagram there is.
const maxPacket = 65536

func (t *transport) read() {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := t.network.Packets.ReadFrom(buf)
		if err != nil {
			if !t.survives("read", err) {
				return
			}
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packets <- p:
		case <-t.ctx.Done():
			return
		}
	}
}

// survives reports whether a loop goes on after an error, and lets a moment pass so that it does not spin.
func (t *transport) survives(what string, err error) bool {
	if t.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	t.log.Warn("gossip: "+what, "error", err)
	pause := time.NewTimer(10 * time.Millisecond)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// stream is a connection that is known until it is closed.
type stream struct {
	net.Conn
	t      *transport
	number uint64 // in order of opening, from 1
	once   sync.Once
}

// track returns nil, and closes conn, once the transport is shut down.
func (t *transport) track(conn net.Conn) *stream {
	s := &stream{Conn: conn, t: t}
	t.mu.Lock()
	closed := t.conns == nil
	if !closed {
		t.opened++
		s.number = t.opened
		t.conns[s.number] = s
		t.open.Add(1)
	}
	t.mu.Unlock()
	if closed {
		_ = conn.Close()
		return nil
	}
	return s
}

func (s *stream) Close() error {
	err := s.Conn.Close()
	s.once.Do(func() {
		s.t.mu.Lock()
		delete(s.t.conns, s.number)
		s.t.mu.Unlock()
		s.t.open.Done()
	})
	return err
}
