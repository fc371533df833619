package netsim

import (
	"context"
	"net"
	"syscall"
	"time"
)

// Dial connects to an address: "name:port" or "ip:port" of a host, or
// "localhost:port" for this one. It costs one round trip. It fails with
// ECONNREFUSED when nobody listens there, with the context's error when that
// ends first, with ETIMEDOUT after Config.DialTimeout, and with ENETDOWN when
// this host is down. The connection is a net.Conn that has CloseWrite too.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	return h.DialContext(ctx, "tcp", address)
}

// DialContext is Dial in the form that net/http and others want; the network
// must be "tcp" or "tcp4".
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	}
	c, err := h.begin(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	c.tap()
	if err := c.connect(ctx); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: c.remote, Err: err}
	}
	return c, nil
}

// begin makes a stream that nobody but its dialer's host knows yet.
func (h *Host) begin(address string) (*conn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := h.usableLocked(); err != nil {
		return nil, err
	}
	to, port, err := h.resolveLocked(address)
	if err != nil {
		return nil, err
	}
	n.streams++
	n.stats.Dials++
	s := n.newStreamLocked(h, to, port)
	h.conns.Add(&s.dialer, &s.dialer.place)
	return &s.dialer, nil
}

// newStreamLocked returns a stream with the two halves wired up.
func (n *Network) newStreamLocked(from, to *Host, port int) *stream {
	s := &stream{id: n.streams, port: port}
	there, back := from.linkLocked(to), to.linkLocked(from)
	seeds := there.flowLocked("stream", port).next()
	s.there = half{net: n, from: &s.dialer, to: &s.server, link: there, back: back, seed: seeds.next()}
	s.back = half{net: n, from: &s.server, to: &s.dialer, link: back, back: there, seed: seeds.next()}
	near, far := from.tcpAddr(from.nextDialPortLocked()), to.tcpAddr(port)
	s.dialer = conn{stream: s, host: from, local: near, remote: far, in: &s.back, out: &s.there}
	s.server = conn{stream: s, host: to, local: far, remote: near, in: &s.there, out: &s.back}
	return s
}

// tap lets the taps see both directions from the first byte on.
func (c *conn) tap() {
	taps := c.host.net.cfg.Taps
	if len(taps) == 0 {
		return
	}
	s := c.stream
	there := Flow{
		From: c.host.name, To: s.server.host.name, Stream: s.id,
		FromPort: c.local.(*net.TCPAddr).Port, ToPort: s.port,
	}
	back := Flow{
		From: there.To, To: there.From, Stream: s.id,
		FromPort: there.ToPort, ToPort: there.FromPort,
	}
	s.there.sinks, s.back.sinks = sinks(taps, there), sinks(taps, back)
}

// connect asks the other host for the connection and waits for its answer.
func (c *conn) connect(ctx context.Context) error {
	n := c.host.net
	deadline := time.Now().Add(n.cfg.DialTimeout)
	n.mu.Lock()
	defer n.mu.Unlock()
	c.out.sendLocked(Dialled, 0)
	for {
		switch {
		case c.gone != nil:
			return c.gone
		case c.opened:
			return nil
		case c.in.sawReset:
			c.leaveLocked(net.ErrClosed)
			return syscall.ECONNREFUSED
		case ctx.Err() != nil:
			c.giveUpLocked()
			return ctx.Err()
		case passed(deadline):
			c.giveUpLocked()
			return syscall.ETIMEDOUT
		}
		n.waitLocked(&c.in.readers, deadline, ctx.Done())
	}
}

// giveUpLocked ends a dial that has no answer yet. If it has not even arrived,
// it never will; else the other host learns of it.
func (c *conn) giveUpLocked() {
	if c.out.items.len > 0 && c.out.items.at(0).what == Dialled {
		c.out.forgetLocked()
		c.leaveLocked(net.ErrClosed)
		return
	}
	c.abortLocked(net.ErrClosed)
}
