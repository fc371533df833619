package netsim

import (
	"net"
	"syscall"
)

// listener is a port that accepts connections.
type listener struct {
	host *Host
	port int
	addr *net.TCPAddr

	// Guarded by the network's lock.
	closed    bool
	backlog   ring[*conn]
	acceptors waiters
}

// Listen accepts connections on a port of the host; port 0 is the lowest free
// one from 32768 on. It fails with EADDRINUSE when the port is taken, and with
// ENETDOWN when the host is down.
func (h *Host) Listen(port int) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	err := h.usableLocked()
	if err == nil {
		port, err = freePort(h.listeners, port)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: h.tcpAddr(port), Err: err}
	}
	l := &listener{host: h, port: port, addr: h.tcpAddr(port)}
	h.listeners[port] = l
	return l, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	n := l.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for !l.closed {
		if l.backlog.len > 0 {
			return l.backlog.pop(), nil
		}
		n.waitLocked(&l.acceptors, noDeadline, nil)
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
}

// Close implements net.Listener. Connections that wait to be accepted are
// reset; those that were accepted go on.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	l.closeLocked()
	return nil
}

func (l *listener) closeLocked() {
	l.closed = true
	delete(l.host.listeners, l.port)
	for l.backlog.len > 0 {
		if c := l.backlog.pop(); c.gone == nil {
			c.abortLocked(syscall.ECONNRESET)
		}
	}
	l.acceptors.wake()
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// dialledLocked answers a dial that has arrived at c, the server's end.
func (c *conn) dialledLocked() {
	l := c.host.listeners[c.stream.port]
	if l == nil || l.backlog.len >= c.host.net.cfg.Backlog {
		c.gone = syscall.ECONNREFUSED
		c.host.net.stats.Refusals++
		c.out.sendLocked(Refused, 0)
		return
	}
	c.opened = true
	c.host.conns.Add(c, &c.place)
	l.backlog.push(c)
	l.acceptors.wake()
	c.out.sendLocked(Connected, 0)
}
