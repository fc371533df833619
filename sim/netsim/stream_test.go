package netsim_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

var background = context.Background()

// connected returns both ends of a connection from host a to port 1 of host b.
func connected(n *netsim.Network) (near, far net.Conn) {
	l := must(n.Host("b").Listen(1))
	defer l.Close()
	near = must(n.Host("a").Dial(background, "b:1"))
	return near, must(l.Accept())
}

func TestADialCostsOneRoundTrip(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		start := time.Now()
		near, far := connected(n)
		require.Equal(t, 6*time.Millisecond, time.Since(start))
		require.Equal(t, "10.0.0.1:1", far.LocalAddr().String(), "b was named first")
		require.Equal(t, "10.0.0.2:49152", near.LocalAddr().String())
		require.Equal(t, near.LocalAddr(), far.RemoteAddr())
		require.Equal(t, far.LocalAddr(), near.RemoteAddr())
	})
}

func TestADialIsRefusedWhereNobodyListens(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		start := time.Now()
		_, err := a.Dial(background, "b:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, 6*time.Millisecond, time.Since(start))

		l := must(b.Listen(1))
		b.Crash()
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.Dial(background, b.Address(1))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		_, err = b.Listen(1)
		require.ErrorIs(t, err, syscall.ENETDOWN)
		_, err = b.Dial(background, "a:1")
		require.ErrorIs(t, err, syscall.ENETDOWN)
		require.True(t, b.Down())

		b.Restart()
		must(b.Listen(1))
		must(a.Dial(background, b.Address(1)))
	})
}

func TestAFullBacklogRefuses(t *testing.T) {
	inBubble(t, netsim.Config{Backlog: 2}, func(n *netsim.Network) {
		l := must(n.Host("b").Listen(1))
		waiting := must(n.Host("a").Dial(background, "b:1"))
		must(n.Host("a").Dial(background, "b:1"))
		_, err := n.Host("a").Dial(background, "b:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.EqualValues(t, 1, n.Stats().Refusals)

		check(l.Close())
		_, err = waiting.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET, "what was not accepted is reset with the listener")
	})
}

func TestAddressesThatNameNothing(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		a := n.Host("a")
		for address, want := range map[string]string{
			"nobody:1":     "no such host",
			"10.9.9.9:1":   "no route to host",
			"192.0.2.1:1":  "no route to host",
			"a:0":          "port is not in 1..65535",
			"a:99999":      "port is not in 1..65535",
			"a":            "missing port in address",
			"[::1]:x":      "port is not in 1..65535",
			"[fe80::1]:80": "no route to host",
		} {
			_, err := a.Dial(background, address)
			require.ErrorContains(t, err, want, address)
		}
		_, err := a.DialContext(background, "udp", "a:1")
		require.ErrorContains(t, err, "unknown network udp")
		_, err = a.Listen(-1)
		require.ErrorContains(t, err, "port -1 is not in 0..65535")
	})
}

func TestLoopbackIsTheHostItselfAndNoCutTouchesIt(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		a := n.Host("a")
		n.Host("b")
		l := must(a.Listen(0))
		require.Equal(t, "10.0.0.1:32768", l.Addr().String())
		must(n.Partition([]string{"a"}, []string{"b"}))
		for _, address := range []string{"localhost:32768", "127.0.0.1:32768", "a:32768", "10.0.0.1:32768"} {
			start := time.Now()
			must(a.Dial(background, address))
			require.Less(t, time.Since(start), time.Millisecond)
		}
	})
}

func TestPortsAreTakenOnceAndFreedByClose(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		a := n.Host("a")
		l := must(a.Listen(7))
		_, err := a.Listen(7)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		must(a.ListenPacket(7))
		_, err = a.ListenPacket(7)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		check(l.Close())
		require.ErrorIs(t, l.Close(), net.ErrClosed)
		must(a.Listen(7))
		require.Equal(t, 32768, must(a.Listen(0)).Addr().(*net.TCPAddr).Port)
		require.Equal(t, 32769, must(a.Listen(0)).Addr().(*net.TCPAddr).Port)
	})
}

func TestADialAcrossACutWaitsInSilence(t *testing.T) {
	cfg := netsim.Config{Link: exactly(3 * time.Millisecond), DialTimeout: 10 * time.Second}
	inBubble(t, cfg, func(n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := must(b.Listen(1))
		cut := must(n.Partition([]string{"a"}, []string{"b"}))

		start := time.Now()
		_, err := a.Dial(background, "b:1")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, 10*time.Second, time.Since(start))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())

		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err = a.Dial(ctx, "b:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)

		time.AfterFunc(time.Second, cut.Heal)
		start = time.Now()
		must(a.Dial(background, "b:1"))
		require.Equal(t, time.Second+6*time.Millisecond, time.Since(start))

		check(l.Close())
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed, "the dials given up never arrived")
	})
}

func TestADialGivenUpUnderWayIsAcceptedAndReset(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		l := must(n.Host("b").Listen(1))
		ctx, cancel := context.WithTimeout(background, 4*time.Millisecond)
		defer cancel()
		_, err := n.Host("a").Dial(ctx, "b:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		far := must(l.Accept())
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)

		_, err = n.Host("a").Dial(ctx, "b:1")
		require.ErrorIs(t, err, context.DeadlineExceeded, "a context that is over")
	})
}

func TestBytesTakeTheLatencyAndTheEndFollowsThem(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		near, far := connected(n)
		start := time.Now()
		must(near.Write([]byte("hello, ")))
		must(near.Write([]byte("world")))
		check(near.Close())
		require.Zero(t, time.Since(start), "writing takes no time")
		got := must(io.ReadAll(far))
		require.Equal(t, "hello, world", string(got))
		require.Equal(t, 3*time.Millisecond+time.Nanosecond, time.Since(start))
		require.ErrorIs(t, near.Close(), net.ErrClosed)
		_, err := near.Read(got)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = near.Write(got)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, near.SetDeadline(start), net.ErrClosed)
	})
}

func TestHalfCloseLeavesTheOtherDirectionOpen(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, far := connected(n)
		must(near.Write([]byte("ask")))
		check(near.(interface{ CloseWrite() error }).CloseWrite())
		_, err := near.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, "ask", string(must(io.ReadAll(far))))
		must(far.Write([]byte("answer")))
		check(far.Close())
		require.Equal(t, "answer", string(must(io.ReadAll(near))))
	})
}

func TestWritingToAPeerThatClosedIsReset(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, far := connected(n)
		must(far.Write([]byte("last words")))
		check(far.Close())
		must(near.Write([]byte("too late")))
		time.Sleep(time.Second)
		_, err := near.Write([]byte("again"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, "last words", string(must(io.ReadAll(near))), "what had arrived is still there")
	})
}

func TestClosingWithUnreadBytesResetsAWriterThatWaitsForRoom(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10}, func(n *netsim.Network) {
		near, far := connected(n)
		time.AfterFunc(time.Second, func() { check(far.Close()) })
		sent, err := near.Write(make([]byte, 25))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, 10, sent)
	})
}

func TestAWriterWaitsForRoomInTheWindow(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10}, func(n *netsim.Network) {
		near, far := connected(n)
		check(near.SetWriteDeadline(time.Now().Add(time.Second)))
		sent, err := near.Write([]byte("0123456789abc"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 10, sent)

		check(near.SetWriteDeadline(time.Time{}))
		done := make(chan error)
		go func() {
			_, err := near.Write([]byte("abcdefghijkl"))
			done <- errors.Join(err, near.Close())
		}()
		require.Equal(t, "0123456789abcdefghijkl", string(must(io.ReadAll(far))))
		require.NoError(t, <-done)
	})
}

func TestConcurrentWritesAreNotMixed(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10}, func(n *netsim.Network) {
		near, far := connected(n)
		const writers, size = 4, 95
		for i := range writers {
			go func() { must(near.Write(bytes.Repeat([]byte{byte('a' + i)}, size))) }()
		}
		got := make([]byte, writers*size)
		must(io.ReadFull(far, got))
		for i := range writers {
			part := got[i*size : (i+1)*size]
			require.Equal(t, bytes.Repeat(part[:1], size), part)
		}
	})
}

func TestReadDeadlines(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, far := connected(n)
		start := time.Now()
		check(near.SetReadDeadline(start.Add(time.Minute)))
		_, err := near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())

		must(far.Write([]byte("x")))
		time.Sleep(time.Second)
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a deadline that is over counts before what has arrived")
		check(near.SetReadDeadline(time.Time{}))
		must(near.Read(make([]byte, 1)))

		// A deadline moved while a read waits takes effect at once.
		time.AfterFunc(time.Second, func() { check(near.SetDeadline(time.Unix(1, 0))) })
		start = time.Now()
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestClosingWakesTheOwnReaderAndWriter(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10}, func(n *netsim.Network) {
		near, _ := connected(n)
		errs := make(chan error, 2)
		go func() { _, err := near.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := near.Write(make([]byte, 20)); errs <- err }()
		bubble.Wait()
		check(near.Close())
		require.ErrorIs(t, <-errs, net.ErrClosed)
		require.ErrorIs(t, <-errs, net.ErrClosed)
	})
}

func TestACutHoldsStreamsBackAndLosesNothing(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		near, far := connected(n)
		must(near.Write([]byte("under way, "))) // the cut takes it on the way
		cut := must(n.Partition([]string{"a"}, []string{"b"}))
		must(near.Write([]byte("held back, ")))
		time.Sleep(time.Hour)
		must(near.Write([]byte("and later")))
		check(near.Close())
		check(far.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := far.Read(make([]byte, 100))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		cut.Heal()
		check(far.SetReadDeadline(time.Time{}))
		start := time.Now()
		require.Equal(t, "under way, held back, and later", string(must(io.ReadAll(far))))
		require.Less(t, time.Since(start), 4*time.Millisecond)
	})
}

func TestAOneWayCutLetsBytesThroughButNotTheirCredit(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10, Link: exactly(time.Millisecond)}, func(n *netsim.Network) {
		near, far := connected(n)
		cut := must(n.PartitionOneWay([]string{"b"}, []string{"a"}))
		require.Equal(t, "b -> a", cut.String())
		must(near.Write([]byte("0123456789")))
		must(io.ReadFull(far, make([]byte, 10)))
		check(near.SetWriteDeadline(time.Now().Add(time.Hour)))
		_, err := near.Write([]byte("a"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		check(near.SetWriteDeadline(time.Time{}))
		time.AfterFunc(time.Hour, cut.Heal)
		must(near.Write([]byte("a")))
		must(io.ReadFull(far, make([]byte, 1)))
	})
}

func TestCutsOverlapAndHealTogether(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, far := connected(n)
		n.Host("c")
		first := must(n.Partition([]string{"a"}, []string{"b", "c"}))
		require.Equal(t, "a | b, c", first.String())
		must(n.PartitionOneWay([]string{"a"}, []string{"b"}))
		must(near.Write([]byte("x")))
		first.Heal()
		first.Heal()
		check(far.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := far.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the second cut is still there")
		n.Heal()
		check(far.SetReadDeadline(time.Now().Add(time.Minute)))
		must(far.Read(make([]byte, 1)))

		_, err = n.Partition([]string{"a", "x"}, []string{"y", "a"})
		require.ErrorContains(t, err, `no host "x"`)
		require.ErrorContains(t, err, `no host "y"`)
		require.ErrorContains(t, err, `host "a" is on both sides of the cut`)
	})
}

func TestLossOfAStreamIsDelay(t *testing.T) {
	cfg := netsim.Config{Link: exactly(time.Millisecond), Retransmit: 200 * time.Millisecond}
	cfg.Link.Loss = 0.5
	inBubble(t, cfg, func(n *netsim.Network) {
		near, far := connected(n)
		tries := map[time.Duration]int{}
		for range 400 {
			start := time.Now()
			must(near.Write([]byte("x")))
			must(io.ReadFull(far, make([]byte, 1)))
			tries[time.Since(start)-time.Millisecond]++
		}
		require.InDelta(t, 200, tries[0], 40, "half arrive at the first try")
		require.InDelta(t, 100, tries[200*time.Millisecond], 40)
		require.InDelta(t, 50, tries[600*time.Millisecond], 30, "the wait doubles")
		require.InDelta(t, 200, n.Stats().Retransmissions, 45)
	})
}

func TestEvenTotalLossEndsInArrival(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, far := connected(n)
		check(n.SetLink("a", "b", netsim.Faults{Loss: 1}))
		must(near.Write([]byte("x")))
		start := time.Now()
		must(far.Read(make([]byte, 1)))
		require.InDelta(t, 15*time.Minute, time.Since(start), float64(5*time.Minute))
	})
}

func TestACrashResetsThePeerAfterTheLatency(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(3 * time.Millisecond)}, func(n *netsim.Network) {
		near, far := connected(n)
		must(far.Write([]byte("sent before")))
		n.Host("b").Crash()
		n.Host("b").Crash()
		_, err := far.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = far.Write(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorIs(t, far.Close(), net.ErrClosed)

		start := time.Now()
		got, err := io.ReadAll(near)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, "sent before", string(got))
		require.Equal(t, 3*time.Millisecond+time.Nanosecond, time.Since(start))
		_, err = near.Write(got)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		check(near.Close())
	})
}

func TestACrashBehindACutIsSeenWhenItHeals(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		near, _ := connected(n)
		cut := must(n.Partition([]string{"a"}, []string{"b"}))
		n.Host("b").Crash()
		check(near.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		cut.Heal()
		check(near.SetReadDeadline(time.Time{}))
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestCloseEndsEveryCall(t *testing.T) {
	inBubble(t, netsim.Config{Window: 10}, func(n *netsim.Network) {
		near, far := connected(n)
		a, b := n.Host("a"), n.Host("b")
		l, p := must(a.Listen(2)), must(a.ListenPacket(2))
		n.Host("c")
		must(n.Partition([]string{"c"}, []string{"a", "b"}))
		calls := []func() error{
			func() error { _, err := near.Read(make([]byte, 1)); return err },
			func() error { _, err := far.Write(make([]byte, 20)); return err },
			func() error { _, err := l.Accept(); return err },
			func() error { _, _, err := p.ReadFrom(nil); return err },
			func() error { _, err := n.Host("c").Dial(background, "b:1"); return err },
		}
		errs := make(chan error)
		for _, call := range calls {
			go func() { errs <- call() }()
		}
		bubble.Wait()
		check(n.Close())
		check(n.Close())
		for range calls {
			require.ErrorIs(t, <-errs, net.ErrClosed)
		}
		n.Heal()
		b.Crash()
		_, err := b.Listen(1)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = p.WriteTo(nil, p.LocalAddr())
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestItWorksInRealTimeToo(t *testing.T) {
	n := must(netsim.New(netsim.Config{Link: exactly(time.Microsecond)}))
	near, far := connected(n)
	must(near.Write([]byte("x")))
	must(io.ReadFull(far, make([]byte, 1)))
	check(n.Close())
}

// heapGrowth returns by how many bytes f grows what is in use.
func heapGrowth(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func TestConnectionsThatAreOverLeaveNoMemory(t *testing.T) {
	const rounds, most = 20_000, 4 << 20 // 20,000 of them would be 28 MB
	cfg := netsim.Config{DialTimeout: time.Second}
	inBubble(t, cfg, func(n *netsim.Network) {
		near, far := connected(n)
		l := must(n.Host("b").Listen(2))
		dial := func() (net.Conn, error) { return n.Host("a").Dial(background, "b:2") }
		require.Less(t, heapGrowth(func() {
			for range rounds {
				conn := must(dial())
				must(conn.Write([]byte("x")))
				check(must(l.Accept()).Close())
				check(conn.Close())
			}
		}), int64(most), "closed on both ends")

		must(n.Partition([]string{"a"}, []string{"b"}))
		require.Less(t, heapGrowth(func() {
			for range rounds {
				_, err := dial()
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
			}
		}), int64(most), "given up across a cut")

		n.Heal()
		must(n.PartitionOneWay([]string{"b"}, []string{"a"}))
		require.Less(t, heapGrowth(func() {
			for range rounds {
				_, err := dial()
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
				check(must(l.Accept()).Close())
			}
		}), int64(most), "given up while the answer is held back")
		must(near.Write([]byte("x")))
		must(far.Read(make([]byte, 1)))
	})
}
