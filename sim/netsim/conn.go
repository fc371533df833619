package netsim

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/wlmsim/wlmsim/internal/chain"
)

// stream is one connection with both its ends.
type stream struct {
	id             uint64
	port           int // of the listener
	dialer, server conn
	there, back    half // from the dialer to the server, and back
}

// conn is one end of a stream.
type conn struct {
	stream        *stream
	host          *Host
	local, remote net.Addr
	in, out       *half

	// Guarded by the network's lock.
	opened                      bool  // the dialer has its answer, or the listener took it
	gone                        error // why this end is over; nil while it is not
	readDeadline, writeDeadline time.Time
	place                       chain.Place[conn] // among those of its host
}

// Errors of a stream's end, in the words of package net.
var (
	errRead  = os.NewSyscallError("read", syscall.ECONNRESET)
	errWrite = os.NewSyscallError("write", syscall.ECONNRESET)
)

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		if err := c.unreadableLocked(); err != nil {
			return 0, c.failed("read", err)
		}
		switch {
		case len(p) == 0:
			return 0, nil
		case c.in.arrived > 0:
			return c.in.readLocked(p), nil
		case c.in.sawEnd:
			return 0, io.EOF
		case c.in.sawReset:
			return 0, c.failed("read", errRead)
		}
		n.waitLocked(&c.in.readers, c.readDeadline, nil)
	}
}

// unreadableLocked says why no read can succeed, whatever has arrived.
func (c *conn) unreadableLocked() error {
	switch {
	case c.gone == nil && passed(c.readDeadline):
		return os.ErrDeadlineExceeded
	case errors.Is(c.gone, syscall.ECONNRESET):
		return errRead
	}
	return c.gone
}

// Write implements net.Conn. It returns when all bytes have a place in the
// window, before they arrive.
func (c *conn) Write(p []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for c.out.writing {
		if err := c.unwritableLocked(); err != nil {
			return 0, c.failed("write", err)
		}
		c.out.waitRoomLocked(c.writeDeadline)
	}
	c.out.writing = true
	sent, err := c.writeLocked(p)
	c.out.writing = false
	c.out.writers.wake()
	if err != nil {
		return sent, c.failed("write", err)
	}
	return sent, nil
}

// writeLocked sends p, and waits for room where there is none.
func (c *conn) writeLocked(p []byte) (sent int, err error) {
	for {
		if err := c.unwritableLocked(); err != nil {
			return sent, err
		}
		if sent == len(p) {
			return sent, nil
		}
		k := min(len(p)-sent, c.out.room())
		if k <= 0 {
			c.out.waitRoomLocked(c.writeDeadline)
			continue
		}
		c.showLocked(p[sent : sent+k])
		if c.gone == nil && !c.out.ended && !c.out.reset { // it may have ended while the taps looked
			c.out.writeLocked(p[sent : sent+k])
			sent += k
		}
	}
}

// showLocked gives bytes to the taps, without the lock. Nobody else writes in
// the meantime, and room only grows.
func (c *conn) showLocked(p []byte) {
	if len(c.out.sinks) == 0 {
		return
	}
	c.host.net.unlocked(func() {
		for _, sink := range c.out.sinks {
			sink(p)
		}
	})
}

// unwritableLocked says why no write can succeed.
func (c *conn) unwritableLocked() error {
	switch {
	case errors.Is(c.gone, syscall.ECONNRESET), c.gone == nil && c.in.sawReset:
		return errWrite
	case c.gone != nil:
		return c.gone
	case passed(c.writeDeadline):
		return os.ErrDeadlineExceeded
	case c.out.ended:
		return os.NewSyscallError("write", syscall.EPIPE)
	}
	return nil
}

// CloseWrite ends the direction away from this end; the other one goes on.
func (c *conn) CloseWrite() error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.gone != nil {
		return c.failed("close", c.gone)
	}
	c.out.sendLocked(End, 0)
	c.out.writers.wake()
	return nil
}

// Close implements net.Conn. What was written still arrives. The second call
// returns net.ErrClosed.
func (c *conn) Close() error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.gone != nil {
		return c.failed("close", net.ErrClosed)
	}
	unread := c.in.arrived > 0
	c.out.sendLocked(End, 0)
	c.leaveLocked(net.ErrClosed)
	if unread {
		c.out.sendLocked(Reset, 0)
	}
	return nil
}

// abortLocked ends this end with an error, and resets the other one.
func (c *conn) abortLocked(cause error) {
	c.out.sendLocked(Reset, 0)
	c.leaveLocked(cause)
}

// leaveLocked marks this end as gone and wakes who waits for it. When the other
// end is gone too, nobody is left to see what is under way.
func (c *conn) leaveLocked(cause error) {
	c.gone = cause
	c.host.conns.Remove(&c.place)
	c.in.bytes.drop(c.in.arrived)
	if c.in.owed > 0 { // credit that no longer can come: let them write, and learn that nobody reads
		c.in.writers.wake()
	}
	c.in.arrived, c.in.owed = 0, 0
	c.in.readers.wake()
	c.out.writers.wake()
	if c.in.from.gone != nil {
		c.in.forgetLocked()
		c.out.forgetLocked()
		return
	}
	c.in.unreadLocked()
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *conn) setDeadlines(read, write *time.Time) error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.gone != nil {
		return c.failed("set", c.gone)
	}
	if read != nil {
		c.readDeadline = *read
		c.in.readers.wake()
	}
	if write != nil {
		c.writeDeadline = *write
		c.out.writers.wake()
	}
	return nil
}

// failed dresses an error as package net does.
func (c *conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
