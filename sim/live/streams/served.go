package streams

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// served is a connection that this end accepted. Its goroutine reads it while
// no stream is open; else the stream's reader does.
type served struct {
	pool *Pool
	conn net.Conn
	in   *bufio.Reader
	left int           // bytes of the last frame that were not read
	read chan struct{} // holds one: the right to read
	turn chan struct{} // holds one: the right to write
	out  []byte        // the last frame written; the turn's
}

func newServed(p *Pool, conn net.Conn) *served {
	return &served{
		pool: p, conn: conn, in: bufio.NewReaderSize(conn, 4096),
		read: make(chan struct{}, 1), turn: make(chan struct{}, 1),
	}
}

func (c *served) abandon(error) { _ = c.conn.Close() }

// run offers one stream after another until the connection breaks.
func (c *served) run() {
	defer c.conn.Close()
	err := c.serve()
	if errors.Is(err, errFormat) {
		c.pool.cfg.Log.Warn("streams: connection closed", "from", c.conn.RemoteAddr().String(), "error", err)
	}
}

func (c *served) serve() error {
	c.keep()
	if err := readPreface(c.in); err != nil {
		return err
	}
	for {
		if err := c.next(); err != nil {
			return err
		}
		if err := c.conn.SetDeadline(time.Time{}); err != nil {
			return err
		}
		s := &accepted{served: c, over: make(chan struct{})}
		select {
		case c.pool.accepted <- s:
		case <-c.pool.done:
			return net.ErrClosed
		}
		select {
		case <-s.over:
			if s.cut { // its reader may still be at it
				return net.ErrClosed
			}
		case <-c.pool.done:
			return net.ErrClosed
		}
	}
}

// keep bounds how long nothing may happen between streams.
func (c *served) keep() {
	_ = c.conn.SetDeadline(time.Now().Add(2 * c.pool.cfg.Bounds.KeepFor))
}

// next reads up to the first frame of a stream, over what was left of the last.
func (c *served) next() error {
	for {
		if _, err := c.in.Discard(c.left); err != nil {
			return err
		}
		c.left = 0
		k, size, err := readHeader(c.in)
		if err != nil {
			return err
		}
		c.left = size
		switch k {
		case kindOpen:
			return nil
		case kindEnd:
			return fmt.Errorf("%w: the end that dialled says that it accepted", errFormat)
		}
	}
}

// accepted is a stream at the end that accepted.
type accepted struct {
	*served
	over chan struct{} // closed when the stream is
	cut  bool          // the connection cannot go on; written before over is closed

	mu               sync.Mutex
	reading, writing bool
	closed           bool
	broken           bool
}

// Read reads what the other end has written.
func (s *accepted) Read(b []byte) (int, error) {
	s.read <- struct{}{}
	defer func() { <-s.read }()
	if err := s.begin(&s.reading); err != nil {
		return 0, opError("read", err)
	}
	n, err := s.readFrames(b)
	s.end(&s.reading)
	return n, opError("read", err)
}

func (s *accepted) readFrames(b []byte) (int, error) {
	for s.left == 0 && len(b) > 0 {
		k, size, err := readHeader(s.in)
		if err != nil {
			return 0, err
		}
		if k != kindData {
			err := fmt.Errorf("%w: kind %d within a stream", errFormat, k)
			s.pool.cfg.Log.Warn("streams: connection closed", "from", s.conn.RemoteAddr().String(), "error", err)
			s.abandon(err)
			return 0, err
		}
		s.left = size
	}
	n, err := s.in.Read(b[:min(len(b), s.left)])
	s.left -= n
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Write writes to the stream. After an error the stream is broken.
func (s *accepted) Write(b []byte) (int, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	for n := 0; n < len(b); {
		if err := s.begin(&s.writing); err != nil {
			return n, opError("write", err)
		}
		frame := b[n:min(len(b), n+maxFrame)]
		s.out = appendFrame(s.out[:0], kindData, frame)
		_, err := s.conn.Write(s.out)
		s.end(&s.writing)
		if err != nil {
			s.mu.Lock()
			s.broken = true
			s.mu.Unlock()
			s.abandon(err)
			return n, err
		}
		n += len(frame)
	}
	return len(b), nil
}

func (s *accepted) begin(doing *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.broken:
		return syscall.EPIPE
	}
	*doing = true
	return nil
}

func (s *accepted) end(doing *bool) {
	s.mu.Lock()
	*doing = false
	s.mu.Unlock()
}

// Close closes the stream and tells the other end. If a Read or a Write is
// under way, the connection is closed with it.
func (s *accepted) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.cut = s.reading || s.writing || s.broken
	s.mu.Unlock()
	if s.cut {
		s.abandon(net.ErrClosed)
	} else {
		s.keep()
		s.turn <- struct{}{}
		s.out = appendFrame(s.out[:0], kindEnd, nil)
		if _, err := s.conn.Write(s.out); err != nil {
			s.abandon(err)
		}
		<-s.turn
	}
	close(s.over)
	return nil
}

func (s *accepted) LocalAddr() net.Addr  { return s.conn.LocalAddr() }
func (s *accepted) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

func (s *accepted) SetDeadline(t time.Time) error      { return s.set(s.conn.SetDeadline, t) }
func (s *accepted) SetReadDeadline(t time.Time) error  { return s.set(s.conn.SetReadDeadline, t) }
func (s *accepted) SetWriteDeadline(t time.Time) error { return s.set(s.conn.SetWriteDeadline, t) }

// set sets a deadline of the connection, unless that is another stream's by now.
func (s *accepted) set(deadline func(time.Time) error, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return opError("set", net.ErrClosed)
	}
	return deadline(t)
}
