package gossip_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// fabric is a network in memory for bubbles: hosts by address, one latency, cuts and stalls.
type fabric struct {
	latency time.Duration

	mu    sync.Mutex
	hosts map[string]*host
	cut   func(from, to string) bool // nil: everybody reaches everybody
	dials map[string]int             // streams opened, by address
}

func newFabric() *fabric {
	return &fabric{latency: time.Millisecond, hosts: make(map[string]*host), dials: make(map[string]int)}
}

// host is one address: what gossip sees of it is a listener, datagrams and a dialer.
type host struct {
	f       *fabric
	address string
	streams chan net.Conn
	packets chan packet
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	stalled chan struct{} // closed when the stall ends; nil while running
}

type packet struct {
	from string
	body []byte
}

func (f *fabric) host(address string) *host {
	h := &host{
		f: f, address: address,
		streams: make(chan net.Conn, 128), packets: make(chan packet, 1024), closed: make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[address] = h
	return h
}

// partition cuts the link between every two hosts for which cut is true, in that direction; nil heals.
func (f *fabric) partition(cut func(from, to string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = cut
}

func (f *fabric) reach(from, to string) (h *host, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts[to], f.cut != nil && f.cut(from, to)
}

func (f *fabric) dialled(address string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials[address]
}

func (h *host) dial(ctx context.Context, address string) (net.Conn, error) {
	to, cut := h.f.reach(h.address, address)
	if _, back := h.f.reach(address, h.address); cut || back {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	h.f.mu.Lock()
	h.f.dials[address]++
	h.f.mu.Unlock()
	trip := time.NewTimer(2 * h.f.latency)
	defer trip.Stop()
	select {
	case <-trip.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	refused := fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	if to == nil {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case <-to.closed:
		return nil, refused
	default:
	}
	select {
	case to.streams <- &stallingConn{theirs, to}:
		return ours, nil
	case <-to.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stall stops the handling of everything that arrives until the returned function is called.
func (h *host) stall() (resume func()) {
	c := make(chan struct{})
	h.mu.Lock()
	h.stalled = c
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		h.stalled = nil
		h.mu.Unlock()
		close(c)
	}
}

func (h *host) running() {
	h.mu.Lock()
	c := h.stalled
	h.mu.Unlock()
	if c != nil {
		select {
		case <-c:
		case <-h.closed:
		}
	}
}

type stallingConn struct {
	net.Conn
	h *host
}

func (c *stallingConn) Read(b []byte) (int, error) {
	c.h.running()
	return c.Conn.Read(b)
}

func (h *host) close() {
	h.once.Do(func() { close(h.closed) })
}

func (h *host) addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(h.address))
}

// listener and datagrams share a host; closing either closes both, as a crash does.
type listener struct{ *host }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.streams:
		l.running()
		return c, nil
	case <-l.closed:
		for {
			select {
			case c := <-l.streams:
				_ = c.Close()
			default:
				return nil, net.ErrClosed
			}
		}
	}
}
func (l listener) Close() error   { l.close(); return nil }
func (l listener) Addr() net.Addr { return l.addr() }

type datagrams struct{ *host }

func (d datagrams) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-d.packets:
		d.running()
		return copy(b, p.body), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(p.from)), nil
	case <-d.closed:
		return 0, nil, net.ErrClosed
	}
}

func (d datagrams) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-d.closed:
		return 0, net.ErrClosed
	default:
	}
	p := packet{d.address, append([]byte(nil), b...)}
	time.AfterFunc(d.f.latency, func() {
		if h, cut := d.f.reach(p.from, to.String()); h != nil && !cut {
			select {
			case h.packets <- p:
			default: // full: lost
			}
		}
	})
	return len(b), nil
}
func (d datagrams) Close() error                     { d.close(); return nil }
func (d datagrams) LocalAddr() net.Addr              { return d.addr() }
func (d datagrams) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (d datagrams) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (d datagrams) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
