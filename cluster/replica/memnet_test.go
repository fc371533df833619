package replica_test

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// memnet is a network in memory, for bubbles: listeners made of channels,
// connections of pipes, and cuts.
type memnet struct {
	mu    sync.Mutex
	hosts map[string]*memListener
	conns map[*memConn]bool
	cut   map[string]bool // hosts that reach nobody and are reached by nobody
}

func newMemnet() *memnet {
	return &memnet{hosts: map[string]*memListener{}, conns: map[*memConn]bool{}, cut: map[string]bool{}}
}

type memListener struct {
	network *memnet
	host    string
	queue   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (n *memnet) listen(host string) *memListener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &memListener{network: n, host: host, queue: make(chan net.Conn, 100), closed: make(chan struct{})}
	n.hosts[host] = l
	return l
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		if l.network.hosts[l.host] == l {
			delete(l.network.hosts, l.host)
		}
		l.network.mu.Unlock()
		for {
			select {
			case c := <-l.queue:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr(l.host) }

type memAddr string

func (memAddr) Network() string  { return "mem" }
func (a memAddr) String() string { return string(a) }

type memConn struct {
	net.Conn
	from, to string
}

// dialer returns the dial function of one host.
func (n *memnet) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		here, there := net.Pipe()
		a, b := &memConn{here, from, to}, &memConn{there, from, to}
		n.mu.Lock()
		l := n.hosts[to]
		blocked := from != to && (n.cut[from] || n.cut[to])
		if !blocked && l != nil { // with the look, so that a cut that comes now finds them
			n.conns[a], n.conns[b] = true, true
		}
		n.mu.Unlock()
		if blocked { // as a network that drops packets: nobody answers
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if l == nil {
			return nil, fmt.Errorf("dial %s: connection refused", to)
		}
		select {
		case l.queue <- b:
			return a, nil
		case <-l.closed:
			return nil, fmt.Errorf("dial %s: connection refused", to)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// isolate cuts a host off or heals it; connections over the cut end.
func (n *memnet) isolate(host string, off bool) {
	n.mu.Lock()
	n.cut[host] = off
	var ended []*memConn
	for c := range n.conns {
		if off && c.from != c.to && (c.from == host || c.to == host) {
			ended = append(ended, c)
			delete(n.conns, c)
		}
	}
	n.mu.Unlock()
	for _, c := range ended {
		_ = c.Close()
	}
}
