package streams_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/live/streams"
)

func TestOneConnectionCarriesOneStreamAfterAnother(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		for _, word := range []string{"one", "two", "three"} {
			p.message(t, word)
		}
		require.Equal(t, 1, p.dialled())

		here, there := p.open(t, "question")
		say(t, there, "answer")
		require.NoError(t, there.Close())
		hear(t, here, "answer")
		_, err := here.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_, err = here.Write([]byte("too late"))
		require.ErrorIs(t, err, syscall.EPIPE)
		require.NoError(t, here.Close())
		p.message(t, "four")
		require.Equal(t, 1, p.dialled())
	})
}

// Both have a long one under way in both directions, so a stream that waited
// for another would end the bubble in a deadlock.
func TestStreamsAtOneTimeHaveConnectionsOfTheirOwn(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		first, firstThere := p.open(t, "first")
		second, secondThere := p.open(t, "second")
		long := strings.Repeat("0123456789", 30_000)
		var writers sync.WaitGroup
		for _, s := range []net.Conn{first, firstThere, second, secondThere} {
			writers.Go(func() { say(t, s, long) })
		}
		for _, s := range []net.Conn{secondThere, second, first, firstThere} {
			hear(t, s, long)
		}
		writers.Wait()
		require.Equal(t, 2, p.dialled())
		for _, s := range []net.Conn{first, firstThere, second, secondThere} {
			require.NoError(t, s.Close())
		}
		time.Sleep(5 * time.Millisecond)
		p.message(t, "third")
		require.Equal(t, 2, p.dialled())
	})
}

func TestANewStreamWaitsForTheEndOfOneThatIsClosedHere(t *testing.T) {
	inBubble(t, streams.Bounds{Wait: 300 * time.Millisecond, Patience: time.Second}, func(t *testing.T, p *pair) {
		here, there := p.open(t, "one")
		require.NoError(t, here.Close())
		began := time.Now()
		time.AfterFunc(200*time.Millisecond, func() { _ = there.Close() })
		p.message(t, "two")
		require.Equal(t, 1, p.dialled())
		require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)

		here, _ = p.open(t, "never closed there")
		require.NoError(t, here.Close())
		began = time.Now()
		p.message(t, "three")
		require.Equal(t, 2, p.dialled(), "the wait is bounded")
		require.InDelta(t, 300, time.Since(began).Milliseconds(), 20)
	})
}

// Each closes its stream at once and the other end takes its time, so that
// whoever does not get the connection meets the next wait for it.
func TestNoStreamWaitsLongerThanTheBound(t *testing.T) {
	inBubble(t, streams.Bounds{Wait: 300 * time.Millisecond}, func(t *testing.T, p *pair) {
		const lazy = 250 * time.Millisecond
		here, there := p.open(t, "one")
		require.NoError(t, here.Close())
		time.AfterFunc(lazy, func() { _ = there.Close() })
		var senders sync.WaitGroup
		waits := make([]time.Duration, 4)
		for i := range waits {
			senders.Go(func() {
				began := time.Now()
				s := p.dial(t)
				waits[i] = time.Since(began)
				say(t, s, "next")
				require.NoError(t, s.Close())
			})
		}
		for range waits {
			s := <-p.taken
			time.AfterFunc(lazy, func() { _ = s.Close() })
		}
		senders.Wait()
		for _, wait := range waits {
			require.LessOrEqual(t, wait, 310*time.Millisecond, "of %v", waits)
		}
		time.Sleep(time.Second)
	})
}

func TestAWaitForAConnectionEndsWithItsContext(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		here, there := p.open(t, "one")
		require.NoError(t, here.Close())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := p.here.Dial(ctx, p.address)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, there.Close())
	})
}

func TestNoByteOfAStreamReachesTheNext(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		here, there := p.open(t, "begin")
		say(t, here, strings.Repeat("unread here", 1000))
		say(t, there, strings.Repeat("unread there", 1000))
		require.NoError(t, errors.Join(here.Close(), there.Close()))
		time.Sleep(5 * time.Millisecond)

		next, nextThere := p.open(t, "next")
		require.Equal(t, 1, p.dialled(), "the same connection")
		for _, s := range []net.Conn{here, there} { // the ends of a stream that is over
			_, err := s.Write([]byte("late"))
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = s.Read(make([]byte, 1))
			require.Error(t, err)
			require.ErrorIs(t, s.SetDeadline(time.Unix(1, 0)), net.ErrClosed)
			require.NoError(t, s.Close())
		}
		say(t, nextThere, "answer")
		hear(t, next, "answer")
		say(t, next, "more")
		hear(t, nextThere, "more")
		require.NoError(t, errors.Join(next.Close(), nextThere.Close()))
	})
}

func TestAPeerThatIsGoneRefusesAsIfNothingWereKept(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		p.message(t, "one")
		open, _ := p.open(t, "two")
		require.NoError(t, p.there.Close())
		time.Sleep(5 * time.Millisecond)
		_, err := open.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "an open stream breaks")
		_, err = p.here.Dial(t.Context(), p.address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, open.Close())
		_, err = p.here.Dial(t.Context(), p.address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// A waiting stream must not sit out its wait when the connection it waits for
// breaks.
func TestAPeerThatGoesAwayRefusesWhoWaitsForAConnection(t *testing.T) {
	inBubble(t, streams.Bounds{Wait: time.Hour, Patience: time.Hour}, func(t *testing.T, p *pair) {
		here, _ := p.open(t, "one")
		require.NoError(t, here.Close())
		began := time.Now()
		time.AfterFunc(time.Second, func() { p.net.Host("there").Crash() })
		_, err := p.here.Dial(t.Context(), p.address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// Over a cut nothing kept is of use: once one stream was not answered, the
// next is dialled and finds out.
func TestACutIsFoundByADial(t *testing.T) {
	inBubble(t, streams.Bounds{Wait: 300 * time.Millisecond, Patience: time.Second}, func(t *testing.T, p *pair) {
		one, oneThere := p.open(t, "one")
		two, twoThere := p.open(t, "two")
		for _, s := range []net.Conn{one, oneThere, two, twoThere} {
			require.NoError(t, s.Close())
		}
		time.Sleep(5 * time.Millisecond)
		cut, err := p.net.Partition([]string{"here"}, []string{"there"})
		require.NoError(t, err)

		lost := p.dial(t)
		say(t, lost, "into the cut")
		require.NoError(t, lost.Close())
		time.Sleep(1400 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.here.Dial(ctx, p.address)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3, p.dialled())

		cut.Heal()
		late := <-p.taken
		hear(t, late, "into the cut") // what was written still travels
		_, err = late.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.NoError(t, late.Close())
		p.message(t, "three")
	})
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	bounds := streams.Bounds{Kept: 2, KeepFor: 30 * time.Second}
	inBubble(t, bounds, func(t *testing.T, p *pair) {
		var open []net.Conn
		for range 5 {
			here, there := p.open(t, "at one time")
			open = append(open, here, there)
		}
		for _, s := range open {
			require.NoError(t, s.Close())
		}
		time.Sleep(5 * time.Millisecond)
		require.Equal(t, 5, p.dialled())
		for range 3 {
			p.open(t, "again") // stays open
		}
		require.Equal(t, 6, p.dialled(), "two were kept")
	})
	inBubble(t, bounds, func(t *testing.T, p *pair) {
		p.message(t, "one")
		time.Sleep(29 * time.Second)
		p.message(t, "two")
		require.Equal(t, 1, p.dialled())
		time.Sleep(31 * time.Second)
		p.message(t, "three")
		require.Equal(t, 2, p.dialled())
	})
	inBubble(t, bounds, func(t *testing.T, p *pair) {
		raw, err := p.net.Host("here").Dial(t.Context(), p.address)
		require.NoError(t, err)
		say(t, raw, "wlmstream1\n\x01\x00\x05hello")
		there := <-p.taken
		require.NoError(t, there.Close())
		hear(t, raw, "\x03\x00\x00")
		began := time.Now()
		_, err = raw.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.InDelta(t, 60, time.Since(began).Seconds(), 1, "it waits twice as long as the end that dials")
		require.NoError(t, raw.Close())
	})
	inBubble(t, streams.Bounds{Accepted: 2}, func(t *testing.T, p *pair) {
		p.open(t, "one")
		p.open(t, "two")
		third := p.dial(t)
		time.Sleep(5 * time.Millisecond)
		_, err := third.Read(make([]byte, 1))
		require.Error(t, err)
		require.Contains(t, p.logged(), "too many connections")
	})
}

// The end that accepted waits from when it closed its stream on, however long
// this end does not.
func TestAConnectionIsNotUsedWhenTheOtherEndIsAboutToCloseIt(t *testing.T) {
	for name, write := range map[string]bool{"a stream that was open for long": true, "one that was never written to": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, streams.Bounds{KeepFor: 30 * time.Second}, func(t *testing.T, p *pair) {
				here, there := p.open(t, "one")
				began := time.Now()
				require.NoError(t, there.Close())
				if !write {
					time.Sleep(5 * time.Millisecond)
					require.NoError(t, here.Close())
					here = p.dial(t)
				}
				time.Sleep(45 * time.Second)
				require.NoError(t, here.Close())
				time.Sleep(time.Minute - time.Since(began) - 500*time.Microsecond)
				late := p.dial(t)
				say(t, late, "in time")
				select {
				case s := <-p.taken:
					hear(t, s, "in time")
				case <-time.After(time.Second):
					require.Fail(t, "the stream was lost")
				}
			})
		})
	}
}

func TestDeadlinesEndReadsAndWrites(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		here, there := p.open(t, "hello")
		for _, s := range []net.Conn{here, there} {
			require.NoError(t, s.SetReadDeadline(time.Now().Add(time.Second)))
			began := time.Now()
			_, err := s.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, time.Second, time.Since(began))
			require.NoError(t, s.SetReadDeadline(time.Time{}))
		}
		say(t, there, "a deadline that passed loses nothing")
		hear(t, here, "a deadline that passed loses nothing")
		say(t, here, "there neither")
		hear(t, there, "there neither")

		_, there2 := p.open(t, "the other direction")
		for _, s := range []net.Conn{here, there2} {
			require.NoError(t, s.SetDeadline(time.Now().Add(time.Second)))
			_, err := s.Write(make([]byte, 1<<20)) // nobody reads
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			_, err = s.Write([]byte("again"))
			require.Error(t, err, "it is broken")
			require.NoError(t, s.Close())
		}
		p.message(t, "the next")
		require.Equal(t, 3, p.dialled())
	})
}

// The deadlines of a stream are its own: the next one has none.
func TestDeadlinesEndWithTheirStream(t *testing.T) {
	inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
		here, there := p.open(t, "one")
		require.NoError(t, here.SetDeadline(time.Now().Add(time.Second)))
		require.NoError(t, there.SetDeadline(time.Now().Add(time.Second)))
		require.NoError(t, errors.Join(here.Close(), there.Close()))
		time.Sleep(5 * time.Millisecond)
		here, there = p.open(t, "two")
		time.Sleep(time.Minute)
		say(t, here, "still there")
		hear(t, there, "still there")
		say(t, there, "here too")
		hear(t, here, "here too")
		require.Equal(t, 1, p.dialled())
	})
}

func TestCloseOfAStreamEndsItsReadsAndWrites(t *testing.T) {
	for name, do := range map[string]func(net.Conn) error{
		"read":  func(s net.Conn) error { _, err := s.Read(make([]byte, 1)); return err },
		"write": func(s net.Conn) error { _, err := s.Write(make([]byte, 1<<20)); return err },
	} {
		for end := range 2 {
			t.Run(name+" "+[]string{"here", "there"}[end], func(t *testing.T) {
				inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
					here, there := p.open(t, "hello")
					s := []net.Conn{here, there}[end]
					ended := make(chan error, 1)
					go func() { ended <- do(s) }()
					synctest.Wait()
					closed := time.Now()
					require.NoError(t, s.Close())
					require.Error(t, <-ended)
					require.Equal(t, closed, time.Now(), "at once")
					require.NoError(t, errors.Join(here.Close(), there.Close()))
					p.message(t, "the next")
				})
			})
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipes()
		p, err := streams.New(streams.Config{Listener: inner, Dial: inner.dial, Bounds: streams.Bounds{Wait: time.Hour}})
		require.NoError(t, err)
		var taken []net.Conn
		ended := make(chan error, 16)
		accept := func() net.Conn {
			s, err := p.Accept()
			require.NoError(t, err)
			taken = append(taken, s)
			return s
		}
		reads, err := p.Dial(t.Context(), "itself")
		require.NoError(t, err)
		say(t, reads, "hello")
		reader := accept()
		hear(t, reader, "hello")
		writes, err := p.Dial(t.Context(), "itself")
		require.NoError(t, err)
		say(t, writes, "hello")
		accept()
		awaited, err := p.Dial(t.Context(), "itself")
		require.NoError(t, err)
		say(t, awaited, "hello")
		accept()
		require.NoError(t, awaited.Close())
		for _, wait := range []func() error{
			func() error { _, err := reads.Read(make([]byte, 1)); return err },
			func() error { _, err := reader.Read(make([]byte, 1)); return err }, // io.EOF, if the end that dialled is closed first
			func() error { _, err := writes.Write(make([]byte, 1<<20)); return err },
			func() error { _, err := p.Accept(); return err },
			func() error { _, err := p.Dial(t.Context(), "itself"); return err },
		} {
			go func() { ended <- wait() }()
		}
		synctest.Wait()
		require.NoError(t, p.Close())
		for range 5 {
			require.Error(t, <-ended)
		}
		_, err = p.Dial(t.Context(), "itself")
		require.Error(t, err)
		_, err = p.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		for _, s := range append(taken, reads, writes) {
			_ = s.Close() // an error says that the other end is gone
		}
		require.NoError(t, p.Close(), "again")
	})
}

func TestAnErrorOfTheListenerReachesAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipes()
		p, err := streams.New(streams.Config{Listener: inner, Dial: inner.dial})
		require.NoError(t, err)
		inner.fail <- syscall.EMFILE
		_, err = p.Accept()
		require.ErrorIs(t, err, syscall.EMFILE)
		s, err := p.Dial(t.Context(), "itself")
		require.NoError(t, err)
		say(t, s, "goes on")
		there, err := p.Accept()
		require.NoError(t, err)
		hear(t, there, "goes on")
		require.NoError(t, p.Close())
	})
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, err := streams.New(streams.Config{Bounds: streams.Bounds{Kept: -1}})
	require.ErrorContains(t, err, "a listener and a dial function are required")
	require.ErrorContains(t, err, "a bound is negative")

	inner := newPipes()
	_, err = streams.New(streams.Config{Listener: inner})
	require.Error(t, err)
	_, err = inner.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "the listener is the pool's, also in vain")
}

// pipes is a listener that is dialled in memory.
type pipes struct {
	conns  chan net.Conn
	fail   chan error
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), fail: make(chan error), closed: make(chan struct{})}
}

func (l *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case err := <-l.fail:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7000} }
