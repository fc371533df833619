package streams_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/live/streams"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is two pools on a network in memory, 1 ms apart. "here" dials "there".
type pair struct {
	net         *netsim.Network
	here, there *streams.Pool
	address     string // of there
	taken       chan net.Conn

	mu    sync.Mutex
	dials int
	log   strings.Builder
}

// inBubble runs f with a pair, and closes it.
func inBubble(t *testing.T, bounds streams.Bounds, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, err := netsim.New(netsim.Config{Link: netsim.Faults{Latency: netsim.Range{Min: time.Millisecond, Max: time.Millisecond}}})
		require.NoError(t, err)
		p := &pair{net: n}
		p.here = p.pool(t, "here", bounds)
		p.there = p.pool(t, "there", bounds)
		p.address = p.there.Addr().String()
		p.taken = make(chan net.Conn, 16)
		accepting := make(chan struct{})
		go func() {
			defer close(accepting)
			for {
				s, err := p.there.Accept()
				if err != nil {
					return
				}
				p.taken <- s
			}
		}()
		f(t, p)
		require.NoError(t, p.here.Close())
		_ = p.there.Close() // an error says that a crash has closed its listener before
		<-accepting
		require.NoError(t, n.Close())
	})
}

func (p *pair) pool(t *testing.T, host string, bounds streams.Bounds) *streams.Pool {
	t.Helper()
	h := p.net.Host(host)
	l, err := h.Listen(7000)
	require.NoError(t, err)
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		p.mu.Lock()
		p.dials++
		p.mu.Unlock()
		return h.Dial(ctx, address)
	}
	made, err := streams.New(streams.Config{Listener: l, Dial: dial, Bounds: bounds, Log: slog.New(slog.NewTextHandler(p, nil))})
	require.NoError(t, err)
	return made
}

// Write takes the log.
func (p *pair) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *pair) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *pair) dialled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

// dial opens a stream from here.
func (p *pair) dial(t *testing.T) net.Conn {
	t.Helper()
	s, err := p.here.Dial(t.Context(), p.address)
	require.NoError(t, err)
	return s
}

// open opens a stream with a first word, and takes it there.
func (p *pair) open(t *testing.T, word string) (here, there net.Conn) {
	t.Helper()
	here = p.dial(t)
	say(t, here, word)
	there = <-p.taken
	hear(t, there, word)
	return here, there
}

// message sends a word as a stream of its own, and waits until both ends are
// closed.
func (p *pair) message(t *testing.T, word string) {
	t.Helper()
	here, there := p.open(t, word)
	require.NoError(t, errors.Join(here.Close(), there.Close()))
	time.Sleep(5 * time.Millisecond) // the end arrives
}

func say(t *testing.T, s net.Conn, word string) {
	t.Helper()
	n, err := io.WriteString(s, word)
	require.NoError(t, err)
	require.Len(t, word, n)
}

func hear(t *testing.T, s net.Conn, word string) {
	t.Helper()
	got := make([]byte, len(word))
	_, err := io.ReadFull(s, got)
	require.NoError(t, err)
	require.Equal(t, word, string(got))
}
