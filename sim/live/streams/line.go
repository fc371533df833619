package streams

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

var (
	errUnanswered = errors.New("streams: the other end has not closed its end of a stream in time")
	errUnused     = errors.New("streams: a connection was kept without a stream for long enough")
)

// line is a connection that this end dialled. Its goroutine reads it from
// beginning to end, so that a break is noticed at once, also between streams.
type line struct {
	pool    *Pool
	conn    net.Conn
	address string
	turn    chan struct{} // holds one: the right to write
	out     []byte        // the last frame written; the turn's

	mu       sync.Mutex
	left     time.Time // when the other end has begun to wait for the next stream
	current  *dialled  // nil: none is open, or one that was is over at both ends
	prefaced bool
	awaited  bool // current is closed here and not there, since Bounds.Wait at the most
	broken   error
	gone     bool // the pool has forgotten it
}

func newLine(p *Pool, conn net.Conn, address string) *line {
	return &line{pool: p, conn: conn, address: address, turn: make(chan struct{}, 1), left: time.Now()}
}

// dialled is a stream at the end that dialled. The line's mutex guards it.
type dialled struct {
	line *line

	opened  bool // something was written
	writing bool
	closed  bool // here
	ended   bool // there
	timed   bool // a deadline for writing was set
	// What the other end sends passes through a pipe, which is made when there
	// is something to read: most streams carry one message one way.
	in, fill net.Conn
	readBy   time.Time // the deadline before there is a pipe
}

// open starts a stream on a line without one, or returns nil if it is broken.
func (l *line) open() *dialled {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil
	}
	// An error is one of a closed connection, of which run hears as well.
	_ = l.conn.SetReadDeadline(time.Time{})
	l.current = &dialled{line: l}
	return l.current
}

func (l *line) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// abandon breaks the line. What was written still travels.
func (l *line) abandon(cause error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = cause
	}
	var in, fill net.Conn
	if s := l.current; s != nil {
		in, fill = s.in, s.fill
	}
	l.mu.Unlock()
	_ = l.conn.Close()
	if in != nil {
		_ = fill.Close()
	}
}

// run reads the line until it breaks.
func (l *line) run() {
	err := l.read()
	l.abandon(err)
	l.mu.Lock()
	awaited := l.awaited
	l.awaited, l.gone = false, true
	others := l.pool.forget(l, awaited, errors.Is(err, errUnanswered))
	l.mu.Unlock()
	for _, kept := range others {
		kept.abandon(err)
	}
	if errors.Is(err, errFormat) {
		l.pool.cfg.Log.Warn("streams: connection closed", "address", l.address, "error", err)
	}
}

func (l *line) read() error {
	r := bufio.NewReaderSize(l.conn, headerSize+512)
	for {
		k, size, err := readHeader(r)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = l.overdue()
		case err == io.EOF:
			err = io.ErrUnexpectedEOF // the connection's end is no end of a stream
		case err != nil:
		case k == kindData:
			err = l.deliver(r, size)
		case k == kindEnd:
			err = l.end()
		default:
			err = fmt.Errorf("%w: kind %d from the end that accepted", errFormat, k)
		}
		if err != nil {
			return err
		}
	}
}

// overdue decides what a deadline for reading meant, if it is not an old one.
func (l *line) overdue() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.current == nil:
		l.broken = errUnused // now, so that nobody who has just taken it opens a stream
	case l.awaited:
		l.awaited = false
		l.pool.giveUp(l)
		_ = l.conn.SetReadDeadline(time.Now().Add(l.pool.cfg.Bounds.Patience))
	case l.current.closed:
		l.broken = errUnanswered
	}
	return l.broken
}

// deliver passes bytes on to the stream's reader, and waits for it. What a
// closed stream would have read is dropped.
func (l *line) deliver(r *bufio.Reader, size int) error {
	l.mu.Lock()
	s := l.current
	if s == nil {
		l.mu.Unlock()
		return fmt.Errorf("%w: bytes of a stream that nobody opened", errFormat)
	}
	s.pipeLocked()
	fill := s.fill
	l.mu.Unlock()
	rest := &io.LimitedReader{R: r, N: int64(size)}
	_, _ = io.Copy(fill, rest) // an error is the reader's: it has closed the stream
	_, err := io.Copy(io.Discard, rest)
	return err
}

// end takes in that the other end has closed the stream.
func (l *line) end() error {
	l.mu.Lock()
	s := l.current
	if s == nil || s.ended || !s.opened {
		l.mu.Unlock()
		return fmt.Errorf("%w: the end of a stream that nobody opened", errFormat)
	}
	s.ended, l.left = true, time.Now()
	fill := s.fill
	enough := s.closed && !l.vacateLocked()
	l.mu.Unlock()
	if fill != nil {
		_ = fill.Close()
	}
	if enough {
		return errUnused
	}
	return nil
}

// vacateLocked has the line kept, without a stream. It returns false if there
// are enough, or it is broken, or the other end has waited for long.
func (l *line) vacateLocked() bool {
	if l.current.timed {
		_ = l.conn.SetWriteDeadline(time.Time{})
	}
	l.current = nil
	until := l.left.Add(l.pool.cfg.Bounds.KeepFor)
	_ = l.conn.SetReadDeadline(until)
	if l.gone || !time.Now().Before(until) {
		return false
	}
	awaited := l.awaited
	l.awaited = false
	return l.pool.keep(l, awaited)
}

// pipeLocked makes what carries the other end's bytes to the reader.
func (s *dialled) pipeLocked() {
	if s.in != nil {
		return
	}
	s.in, s.fill = net.Pipe()
	if !s.readBy.IsZero() {
		_ = s.in.SetReadDeadline(s.readBy) // a pipe that is open takes any
	}
	switch {
	case s.closed:
		_ = s.in.Close()
	case s.ended || s.line.broken != nil:
		_ = s.fill.Close()
	}
}

// Read reads what the other end has written. It gives EOF when that end has
// closed the stream.
func (s *dialled) Read(b []byte) (int, error) {
	l := s.line
	l.mu.Lock()
	s.pipeLocked()
	in := s.in
	l.mu.Unlock()
	n, err := in.Read(b)
	if err == io.EOF {
		l.mu.Lock()
		if !s.ended {
			err = l.broken
		}
		l.mu.Unlock()
	}
	return n, opError("read", err)
}

// Write writes to the stream. After an error the stream is broken.
func (s *dialled) Write(b []byte) (int, error) {
	l := s.line
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	for n := 0; ; {
		frame := b[n:min(len(b), n+maxFrame)]
		prefaced, k, err := s.beginWrite()
		if err != nil {
			return n, opError("write", err)
		}
		l.out = l.out[:0]
		if !prefaced {
			l.out = append(l.out, preface...)
		}
		l.out = appendFrame(l.out, k, frame)
		_, err = l.conn.Write(l.out)
		if err != nil {
			l.abandon(err) // a frame was cut; before anybody takes the line for whole
		}
		s.endWrite()
		if err != nil {
			return n, err
		}
		if n += len(frame); n == len(b) {
			return n, nil
		}
	}
}

func (s *dialled) beginWrite() (prefaced bool, k kind, err error) {
	l := s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.closed:
		return false, 0, net.ErrClosed
	case s.ended:
		return false, 0, syscall.EPIPE
	case l.broken != nil:
		return false, 0, l.broken
	}
	k = kindOpen
	if s.opened {
		k = kindData
	}
	prefaced, l.prefaced, s.opened, s.writing = l.prefaced, true, true, true
	return prefaced, k, nil
}

func (s *dialled) endWrite() {
	s.line.mu.Lock()
	s.writing = false
	s.line.mu.Unlock()
}

// Close closes the stream. The line carries the next one once the other end has
// closed it, too.
func (s *dialled) Close() error {
	l := s.line
	l.mu.Lock()
	if s.closed {
		l.mu.Unlock()
		return nil
	}
	s.closed = true
	in, cut := s.in, s.writing // a frame that is being written would go on
	switch {
	case cut || l.gone:
	case s.ended || !s.opened:
		cut = !l.vacateLocked()
	default:
		_ = l.conn.SetReadDeadline(time.Now().Add(l.pool.cfg.Bounds.Wait))
		l.awaited = true
		l.pool.await(l)
	}
	l.mu.Unlock()
	if in != nil {
		_ = in.Close()
	}
	if cut {
		l.abandon(net.ErrClosed)
	}
	return nil
}

func (s *dialled) LocalAddr() net.Addr  { return s.line.conn.LocalAddr() }
func (s *dialled) RemoteAddr() net.Addr { return s.line.conn.RemoteAddr() }

func (s *dialled) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *dialled) SetReadDeadline(t time.Time) error {
	l := s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.closed {
		return opError("set", net.ErrClosed)
	}
	s.readBy = t
	if s.in == nil {
		return nil
	}
	return s.in.SetReadDeadline(t)
}

func (s *dialled) SetWriteDeadline(t time.Time) error {
	l := s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.closed {
		return opError("set", net.ErrClosed)
	}
	s.timed = true
	return l.conn.SetWriteDeadline(t)
}

// opError names what was attempted, unless the cause says so, or is to be
// compared as it is.
func opError(op string, err error) error {
	var named *net.OpError
	if err == nil || err == io.EOF || errors.As(err, &named) {
		return err
	}
	return &net.OpError{Op: op, Net: "stream", Err: err}
}
