package gossip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/gossip"
)

// soak is by how much the long counts grow when they are run in full.
func soak() int {
	if os.Getenv("WLMSIM_SOAK") == "1" {
		return 50
	}
	return 1
}

// On real sockets: every answer belongs to its request, whoever asks whom, self included.
func TestAnswersBelongToTheirRequests(t *testing.T) {
	names := []string{"m1", "m2", "m3"}
	var nodes []*liveNode
	var addresses []string
	for _, name := range names {
		g, address := startLive(t, name, func(c *gossip.Config) {
			c.Handler = func(_ context.Context, from string, body []byte) ([]byte, error) {
				if binary.BigEndian.Uint64(body)%7 == 0 {
					return nil, fmt.Errorf("%s refuses %x of %s", name, body[:8], from)
				}
				return fmt.Appendf(nil, "%s for %s: %x %d", name, from, body[:8], len(body)), nil
			}
		})
		defer func() { require.NoError(t, g.Close()) }()
		if len(addresses) > 0 {
			_, err := g.Join(t.Context(), addresses)
			require.NoError(t, err)
		}
		nodes, addresses = append(nodes, g), append(addresses, address)
	}
	for _, g := range nodes {
		g.awaitMembers(len(nodes))
	}

	var wait sync.WaitGroup
	for i, from := range nodes {
		for w := range 8 {
			wait.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(w)))
				for range 200 * soak() {
					to := names[r.IntN(len(names))]
					body := make([]byte, 8+r.IntN(3000))
					binary.BigEndian.PutUint64(body, r.Uint64())
					got, err := from.Request(context.Background(), to, body)
					if binary.BigEndian.Uint64(body)%7 == 0 {
						var remote *gossip.RemoteError
						if !errors.As(err, &remote) || remote.Member != to || remote.Text != fmt.Sprintf("%s refuses %x of %s", to, body[:8], names[i]) {
							t.Errorf("want the error of %s for %x, got %v", to, body[:8], err)
						}
						continue
					}
					want := fmt.Sprintf("%s for %s: %x %d", to, names[i], body[:8], len(body))
					if err != nil || string(got) != want {
						t.Errorf("want %q, got %q, %v", want, got, err)
					}
				}
			})
		}
	}
	wait.Wait()
}

// On real sockets: a killed process is noticed by the requests that wait for it.
func TestLiveNodeThatIsKilledFailsWaitingRequests(t *testing.T) {
	started := make(chan struct{})
	m1, a1 := startLive(t, "m1", nil)
	m2, _ := startLive(t, "m2", func(c *gossip.Config) {
		c.Handler = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		// Only the check of the silent can notice in time.
		c.Timings.ProbeInterval = time.Hour
	})
	_, err := m2.Join(t.Context(), []string{a1})
	require.NoError(t, err)
	m1.awaitMembers(2)
	outcome := make(chan error)
	go func() {
		_, err := m1.Request(context.Background(), "m2", nil)
		outcome <- err
	}()
	<-started
	require.NoError(t, m2.Close())
	require.ErrorIs(t, <-outcome, gossip.ErrGone)
	require.False(t, m1.Alive("m2"))
	require.NoError(t, m1.Close())
}

func TestRequesterThatGivesUpEndsTheHandler(t *testing.T) {
	end := map[string]func(t *testing.T, m1 *node, cancel func()){
		"cancel": func(_ *testing.T, _ *node, cancel func()) { cancel() },
		"death":  func(t *testing.T, m1 *node, _ func()) { closeAll(t, m1) },
		"leave": func(t *testing.T, m1 *node, _ func()) {
			require.NoError(t, m1.Leave(t.Context()))
		},
		"silence": func(_ *testing.T, m1 *node, _ func()) { m1.host.f.partition(isolate(m1.address)) },
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fabric) {
				ended := make(chan error, 1)
				m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
					c.Handler = func(ctx context.Context, from string, _ []byte) ([]byte, error) {
						<-ctx.Done()
						ended <- ctx.Err()
						return nil, ctx.Err()
					}
				})
				defer closeAll(t, m1, m2, m3)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				outcome := make(chan error, 1)
				go func() {
					_, err := m1.Request(ctx, "m3", nil)
					outcome <- err
				}()
				time.Sleep(time.Second)
				require.Empty(t, ended)
				began, dialled := time.Now(), f.dialled(m1.address)
				end(t, m1, cancel)
				require.ErrorIs(t, <-ended, context.Canceled)
				require.Less(t, time.Since(began), 20*time.Second)
				if name == "cancel" {
					require.ErrorIs(t, <-outcome, context.Canceled)
					require.Less(t, time.Since(began), 10*time.Millisecond)
					time.Sleep(50 * time.Millisecond)
					require.Equal(t, dialled, f.dialled(m1.address), "nobody waits for an answer")
				}
			})
		})
	}
}

// Packs travel in streams of their own, so a whole pack of cancels may come before the requests that they are for.
func TestCancelsThatOvertakeTheirRequests(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		var begun, running atomic.Int32
		post := &slowPost{}
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Handler = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				begun.Add(1)
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if c.Self.Name == "m1" {
				post.dial, c.Network.Dial = c.Network.Dial, post.keep
			}
		})
		defer closeAll(t, m1, m2, m3)
		var calls []*gossip.Call
		ask := func(n int) {
			for range n {
				c, err := m1.Ask("m2", []byte("wait"), func([]byte, error) {})
				require.NoError(t, err)
				calls = append(calls, c)
			}
		}
		post.slow.Store(true)
		ask(1000) // about two packs
		synctest.Wait()
		post.slow.Store(false)
		for _, c := range calls {
			c.Cancel()
		}
		time.Sleep(time.Second)
		require.Zero(t, begun.Load())
		post.deliver(t, m2.address)
		time.Sleep(time.Second)
		require.Zero(t, begun.Load())

		ask(1) // the next one is served
		time.Sleep(time.Second)
		require.EqualValues(t, 1, begun.Load())
		require.EqualValues(t, 1, running.Load())
	})
}

// slowPost takes streams in that arrive much later, while it is slow.
type slowPost struct {
	dial func(ctx context.Context, address string) (net.Conn, error)
	slow atomic.Bool

	mu   sync.Mutex
	kept []*slowStream
}

// slowStream keeps what is written.
type slowStream struct {
	net.Conn
	written bytes.Buffer
}

func (s *slowStream) Write(b []byte) (int, error) { return s.written.Write(b) }

func (p *slowPost) keep(ctx context.Context, address string) (net.Conn, error) {
	if !p.slow.Load() {
		return p.dial(ctx, address)
	}
	unused, _ := net.Pipe()
	s := &slowStream{Conn: unused}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, s)
	return s, nil
}

// deliver sends what was kept, which was for one address.
func (p *slowPost) deliver(t *testing.T, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotEmpty(t, p.kept)
	for _, s := range p.kept {
		c, err := p.dial(t.Context(), address)
		require.NoError(t, err)
		_, err = c.Write(s.written.Bytes())
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestAnswerThatDidNotGetThroughIsSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		release := make(chan struct{})
		var handled atomic.Int32
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Handler = func(_ context.Context, _ string, body []byte) ([]byte, error) {
				handled.Add(1)
				<-release
				return body, nil
			}
		})
		defer closeAll(t, m1, m2, m3)
		outcome := m1.ask("m2")
		time.Sleep(100 * time.Millisecond)
		f.partition(isolate(m1.address))
		close(release)
		time.Sleep(1500 * time.Millisecond)
		f.partition(nil)
		require.NoError(t, <-outcome)
		require.EqualValues(t, 1, handled.Load())
	})
}

// A requester that seems dead to the one it asked, but holds it to be alive, must not wait for ever.
func TestRequesterThatOnlySeemsDeadIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1 := f.start(t, "m1", "10.0.0.1:7946", func(c *gossip.Config) { c.Timings.ProbeInterval = 24 * time.Hour })
		m2 := f.start(t, "m2", "10.0.0.2:7946", blocking)
		join(t, m1, m2)
		time.Sleep(time.Second)
		outcome := m1.ask("m2")
		time.Sleep(time.Second)
		resume := m1.host.stall()
		m2.awaitChange(func() bool { return !m2.Alive("m1") })
		time.Sleep(5 * time.Second)
		resume()
		var remote *gossip.RemoteError
		require.ErrorAs(t, <-outcome, &remote)
		closeAll(t, m1, m2)
		time.Sleep(gossip.Timings{ProbeInterval: 24 * time.Hour}.Linger())
	})
}

func TestDeadlineOfARequest(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2, m3)
		for _, to := range []string{"m1", "m2"} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			began := time.Now()
			_, err := m1.Request(ctx, to, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 3*time.Second, time.Since(began))
			_, err = m1.Request(ctx, to, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

func TestWhatWaitsForOneMemberTravelsTogether(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		defer closeAll(t, m1, m2, m3)
		// Between two probes, so that no ping falls back to a stream.
		before, back := f.dialled(m2.address), f.dialled(m1.address)
		var wait sync.WaitGroup
		for range 300 {
			wait.Go(func() {
				_, err := m1.Request(context.Background(), "m2", []byte("x"))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		require.LessOrEqual(t, f.dialled(m2.address)-before, 3)
		require.LessOrEqual(t, f.dialled(m1.address)-back, 3)
	})
}

func TestPacksAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Bounds.PackMessages = 10
			c.Bounds.PackBytes = 1000
		})
		defer closeAll(t, m1, m2, m3)
		for _, size := range []int{1, 400, 2000} {
			perPack := map[int]int{1: 10, 400: 2, 2000: 1}[size]
			before := f.dialled(m2.address)
			var wait sync.WaitGroup
			for range 100 {
				wait.Go(func() {
					got, err := m1.Request(context.Background(), "m2", make([]byte, size))
					if err != nil || len(got) != size {
						t.Errorf("%d bytes back, %v", len(got), err)
					}
				})
			}
			wait.Wait()
			require.GreaterOrEqual(t, f.dialled(m2.address)-before, 100/perPack)
		}
	})
}

func TestQueuesAndBodiesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Bounds.OutboxMessages = 10
			c.Bounds.OutboxBytes = 1000
			c.Bounds.MessageBytes = 500
		})
		defer closeAll(t, m1, m2, m3)

		_, err := m1.Request(t.Context(), "m2", make([]byte, 501))
		require.ErrorIs(t, err, gossip.ErrTooLarge)
		require.ErrorContains(t, err, "501 bytes, at most 500")
		require.ErrorIs(t, m1.Send("m1", make([]byte, 501)), gossip.ErrTooLarge)

		// One is being dialled, the rest must fit.
		require.NoError(t, m1.Send("m2", nil))
		synctest.Wait()
		for range 10 {
			require.NoError(t, m1.Send("m2", nil))
		}
		require.ErrorIs(t, m1.Send("m2", nil), gossip.ErrFull)
		require.NoError(t, m1.Send("m3", nil), "each member has its own")
		time.Sleep(time.Second)
		require.NoError(t, m1.Send("m2", nil))
		synctest.Wait()
		require.NoError(t, m1.Send("m2", make([]byte, 500)))
		require.NoError(t, m1.Send("m2", make([]byte, 500)))
		_, err = m1.Request(t.Context(), "m2", make([]byte, 1))
		require.ErrorIs(t, err, gossip.ErrFull)
	})
}

func TestHandlersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			blocking(c)
			c.Bounds.Handled = 4
		})
		defer closeAll(t, m1, m2, m3)
		for range 4 {
			m1.ask("m2")
		}
		time.Sleep(time.Second)
		require.ErrorIs(t, <-m3.ask("m2"), gossip.ErrBusy)
		require.ErrorIs(t, <-m2.ask("m2"), gossip.ErrBusy)
	})
}

func TestOversizeAnswerIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Bounds.MessageBytes = 100
			c.Handler = func(context.Context, string, []byte) ([]byte, error) { return make([]byte, 101), nil }
		})
		defer closeAll(t, m1, m2, m3)
		for _, to := range []string{"m1", "m2"} {
			_, err := m1.Request(t.Context(), to, nil)
			var remote *gossip.RemoteError
			require.ErrorAs(t, err, &remote)
			require.Equal(t, to, remote.Member)
			require.Contains(t, remote.Text, "101 bytes, at most 100")
		}
	})
}

func TestOneWayMessages(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		got := make(chan string, 10)
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			self := c.Self.Name
			c.Handler = func(_ context.Context, from string, body []byte) ([]byte, error) {
				got <- from + " to " + self + ": " + string(body)
				return nil, errors.New("nobody hears this")
			}
		})
		defer closeAll(t, m1, m2, m3)
		require.NoError(t, m1.Send("m2", []byte("a")))
		require.Equal(t, "m1 to m2: a", <-got)
		require.NoError(t, m1.Send("m1", []byte("b")))
		require.Equal(t, "m1 to m1: b", <-got)
		require.ErrorIs(t, m1.Send("nobody", nil), gossip.ErrUnknownMember)
	})
}

func TestRequestToOneselfBehavesLikeAnyOther(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1 := f.start(t, "m1", "10.0.0.1:7946", func(c *gossip.Config) {
			c.Handler = func(ctx context.Context, from string, body []byte) ([]byte, error) {
				if len(body) == 0 {
					return nil, errors.New("empty")
				}
				body[0] = 'x' // its own copy
				return append(body, from...), nil
			}
		})
		body := []byte("hello ")
		got, err := m1.Request(t.Context(), "m1", body)
		require.NoError(t, err)
		require.Equal(t, "xello m1", string(got))
		require.Equal(t, "hello ", string(body))
		_, err = m1.Request(t.Context(), "m1", nil)
		require.Equal(t, &gossip.RemoteError{Member: "m1", Text: "empty"}, err)
		closeAll(t, m1)
	})
}

func TestCloseEndsEverythingUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		there, here := m1.ask("m2"), m1.ask("m1")
		time.Sleep(time.Second)
		closeAll(t, m1)
		require.ErrorIs(t, <-there, gossip.ErrClosed)
		require.ErrorIs(t, <-here, gossip.ErrClosed)
		require.NoError(t, m1.Close())
		_, err := m1.Request(t.Context(), "m2", nil)
		require.ErrorIs(t, err, gossip.ErrClosed)
		require.ErrorIs(t, m1.Send("m2", nil), gossip.ErrClosed)
		_, err = m1.Join(t.Context(), []string{m2.address})
		require.ErrorIs(t, err, gossip.ErrClosed)
		require.ErrorIs(t, m1.Leave(t.Context()), gossip.ErrClosed)
		require.ErrorIs(t, m1.UpdateSelf(gossip.Member{}), gossip.ErrClosed)
		closeAll(t, m2, m3)
	})
}

// Who asks without waiting learns each outcome once, and what came first counts.
func TestAskTellsTheOutcomeOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		ended := make(chan string, 10) // whose requests' contexts have ended
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			c.Handler = func(ctx context.Context, from string, body []byte) ([]byte, error) {
				if string(body) == "answer" {
					return []byte("from " + c.Self.Name), nil
				}
				<-ctx.Done()
				ended <- c.Self.Name
				return nil, ctx.Err()
			}
		})
		outcomes := make(chan error, 10)
		ask := func(to, body string) *gossip.Call {
			c, err := m1.Ask(to, []byte(body), func(answer []byte, err error) {
				if err == nil && string(answer) != "from "+to {
					err = errors.New(string(answer))
				}
				outcomes <- err
			})
			require.NoError(t, err)
			return c
		}
		only := func() error {
			time.Sleep(time.Second)
			require.Len(t, outcomes, 1)
			return <-outcomes
		}
		for _, to := range []string{"m1", "m2"} {
			c := ask(to, "answer")
			require.NoError(t, only())
			c.Cancel()
			c = ask(to, "wait")
			time.Sleep(time.Second)
			require.Empty(t, outcomes)
			c.Cancel()
			c.Cancel()
			require.ErrorIs(t, only(), context.Canceled)
			require.Equal(t, to, <-ended)
			c = ask(to, "wait")
			c.Cancel() // at once: its handler may have begun or not
			require.ErrorIs(t, only(), context.Canceled)
			for len(ended) > 0 {
				<-ended
			}
		}
		_, err := m1.Ask("m4", nil, func([]byte, error) { t.Error("an error is the outcome") })
		require.ErrorIs(t, err, gossip.ErrUnknownMember)

		c := ask("m2", "wait")
		time.Sleep(time.Second)
		closeAll(t, m2)
		require.ErrorIs(t, <-outcomes, gossip.ErrGone)
		c.Cancel()
		ask("m3", "wait")
		ask("m1", "wait")
		time.Sleep(time.Second)
		closeAll(t, m1)
		require.ErrorIs(t, <-outcomes, gossip.ErrClosed)
		require.ErrorIs(t, only(), gossip.ErrClosed)
		_, err = m1.Ask("m3", nil, func([]byte, error) { t.Error("an error is the outcome") })
		require.ErrorIs(t, err, gossip.ErrClosed)
		closeAll(t, m3)
	})
}

// A stranger who speaks memberlist's protocol can say anything.
func TestWhatIsNoMessageIsLoggedAndDropped(t *testing.T) {
	var buf lockedBuffer
	m1, address := startLive(t, "m1", func(c *gossip.Config) {
		c.Log = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	defer func() { require.NoError(t, m1.Close()) }()
	stranger := memberlist.DefaultLocalConfig()
	stranger.Name, stranger.BindAddr, stranger.BindPort = "stranger", "127.0.0.1", 0
	stranger.LogOutput, stranger.TCPTimeout = io.Discard, 5*time.Minute
	list, err := memberlist.Create(stranger)
	require.NoError(t, err)
	defer func() { require.NoError(t, list.Shutdown()) }()

	host, port := splitAddress(t, address)
	to := &memberlist.Node{Addr: host, Port: port}
	for _, junk := range []string{"junk", "\x01\x00\x00", "\x02\x01a\x01b\x06\x00\x00"} {
		require.NoError(t, list.SendReliable(to, []byte(junk)))
		require.NoError(t, list.SendBestEffort(to, []byte(junk)))
	}
	_, err = list.Join([]string{address})
	require.NoError(t, err)
	awaitLog(&buf, "message dropped", 6)
	awaitLog(&buf, "names no life", 1)
	require.Len(t, m1.Members(), 1, "the stranger is no member")
	_, err = m1.Request(t.Context(), "m1", nil)
	require.NoError(t, err)
}

func splitAddress(t *testing.T, address string) (net.IP, uint16) {
	a, err := net.ResolveTCPAddr("tcp", address)
	require.NoError(t, err)
	return a.IP, uint16(a.Port)
}

// lockedBuffer is a log that can be waited for.
type lockedBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{}
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote != nil {
		close(l.wrote)
		l.wrote = nil
	}
	return l.b.Write(p)
}

// count also returns a channel that closes with the next line.
func (l *lockedBuffer) count(text string) (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote == nil {
		l.wrote = make(chan struct{})
	}
	return strings.Count(l.b.String(), text), l.wrote
}

// awaitLog waits until a text was logged so often, however busy the machine is.
func awaitLog(l *lockedBuffer, text string, times int) {
	for n, next := l.count(text); n < times; n, next = l.count(text) {
		<-next
	}
}

// BenchmarkRequest64 is request and answer with 64 in flight on loopback sockets: through the packed outbox, and as peer with
// one SendReliable a message for the request and one for the answer.
func BenchmarkRequest64(b *testing.B) {
	b.Run("packed", func(b *testing.B) {
		m1, a1 := startLive(b, "m1", nil)
		m2, _ := startLive(b, "m2", nil)
		defer func() { require.NoError(b, errors.Join(m1.Close(), m2.Close())) }()
		_, err := m2.Join(context.Background(), []string{a1})
		require.NoError(b, err)
		m1.awaitMembers(2)
		inFlight64(b, func(body []byte) error {
			_, err := m1.Request(context.Background(), "m2", body)
			return err
		})
	})
	b.Run("one-SendReliable-a-message", func(b *testing.B) {
		m1, m2 := newPlain(b, "m1"), newPlain(b, "m2")
		defer func() { require.NoError(b, errors.Join(m1.list.Shutdown(), m2.list.Shutdown())) }()
		_, err := m2.list.Join([]string{m1.list.LocalNode().Address()})
		require.NoError(b, err)
		m1.to, m2.to = m2.list.LocalNode(), m1.list.LocalNode()
		inFlight64(b, m1.request)
	})
}

func inFlight64(b *testing.B, request func(body []byte) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var wait sync.WaitGroup
	tickets := make(chan struct{}, 64)
	for range 64 {
		wait.Go(func() {
			body := make([]byte, 100)
			for range tickets {
				if err := request(body); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for range b.N {
		tickets <- struct{}{}
	}
	close(tickets)
	wait.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// plain asks over memberlist with one message each way.
type plain struct {
	list *memberlist.Memberlist
	to   *memberlist.Node

	mu   sync.Mutex
	next uint64
	open map[uint64]chan []byte
}

func newPlain(b *testing.B, name string) *plain {
	p := &plain{open: make(map[uint64]chan []byte)}
	c := memberlist.DefaultLocalConfig()
	c.Name, c.BindAddr, c.BindPort, c.EnableCompression = name, "127.0.0.1", 0, false
	c.TCPTimeout = time.Minute // a busy machine is no fault here
	c.Logger = log.New(io.Discard, "", 0)
	c.Delegate = p
	list, err := memberlist.Create(c)
	require.NoError(b, err)
	p.list = list
	return p
}

func (p *plain) request(body []byte) error {
	answer := make(chan []byte, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.open[id] = answer
	p.mu.Unlock()
	if err := p.send('q', id, body); err != nil {
		return err
	}
	<-answer
	return nil
}

func (p *plain) send(kind byte, id uint64, body []byte) error {
	m := binary.BigEndian.AppendUint64([]byte{kind}, id)
	return p.list.SendReliable(p.to, append(m, body...))
}

func (p *plain) NotifyMsg(m []byte) {
	m = bytes.Clone(m)
	id := binary.BigEndian.Uint64(m[1:])
	if m[0] == 'q' {
		go func() {
			if err := p.send('a', id, m[9:]); err != nil {
				panic(err)
			}
		}()
		return
	}
	p.mu.Lock()
	answer := p.open[id]
	delete(p.open, id)
	p.mu.Unlock()
	answer <- m[9:]
}
func (p *plain) NodeMeta(int) []byte             { return nil }
func (p *plain) GetBroadcasts(int, int) [][]byte { return nil }
func (p *plain) LocalState(bool) []byte          { return nil }
func (p *plain) MergeRemoteState([]byte, bool)   {}
