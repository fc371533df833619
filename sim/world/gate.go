package world

import (
	"net"
	"sync"
)

// gate stands before what a node receives from gossip. While it is shut the
// node gets none of it, as a process that is not scheduled; what it sends still
// leaves.
type gate struct {
	mu   sync.Mutex
	shut int           // how many keep it shut
	open chan struct{} // closed when nobody does; nil: nobody does
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut++; g.shut == 1 {
		g.open = make(chan struct{})
	}
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut--; g.shut == 0 {
		close(g.open)
		g.open = nil
	}
}

// pass waits until the gate is open or done is closed.
func (g *gate) pass(done <-chan struct{}) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-done:
	}
}

// gatedPackets are datagrams behind a gate.
type gatedPackets struct {
	net.PacketConn
	gate *gate
	once sync.Once
	done chan struct{}
}

func (p *gatedPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := p.PacketConn.ReadFrom(b)
	p.gate.pass(p.done)
	return n, from, err
}

func (p *gatedPackets) Close() error {
	p.once.Do(func() { close(p.done) })
	return p.PacketConn.Close()
}

// gatedListener accepts streams behind a gate.
type gatedListener struct {
	net.Listener
	gate *gate
	once sync.Once
	done chan struct{}
}

func (l *gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.gate.pass(l.done)
	if err != nil {
		return nil, err
	}
	return l.gate.conn(c), nil
}

func (l *gatedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// gatedConn is a stream behind a gate. A deadline that passes while the gate is
// shut shows when it opens, as to a process that is not scheduled.
type gatedConn struct {
	net.Conn
	gate *gate
	once sync.Once
	done chan struct{}
}

func (g *gate) conn(c net.Conn) net.Conn {
	return &gatedConn{Conn: c, gate: g, done: make(chan struct{})}
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.gate.pass(c.done)
	return n, err
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}
