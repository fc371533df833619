package netsim_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// arrivals sends numbered datagrams from a to b, spaced by the pause, and
// returns the numbers in order of arrival.
func arrivals(n *netsim.Network, count int, pause time.Duration) (numbers []int) {
	from, to := must(n.Host("a").ListenPacket(0)), must(n.Host("b").ListenPacket(0))
	defer from.Close()
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 8); ; {
			if _, _, err := to.ReadFrom(b); err != nil {
				return
			}
			numbers = append(numbers, int(binary.BigEndian.Uint64(b)))
		}
	}()
	for i := range count {
		must(from.WriteTo(binary.BigEndian.AppendUint64(nil, uint64(i)), to.LocalAddr()))
		time.Sleep(pause)
	}
	time.Sleep(time.Second)
	check(to.Close())
	<-done
	return numbers
}

func TestDatagramsArriveOnceAndInOrderUnlessToldOtherwise(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		got := arrivals(n, 1000, time.Microsecond)
		require.Len(t, got, 1000)
		require.IsIncreasing(t, got)
	})
}

func TestFaultsHitTheirShareOfDatagrams(t *testing.T) {
	cfg := netsim.Config{Queue: 20000, UnderWay: 20000}
	cfg.Link = netsim.Faults{Loss: 0.2, Duplicate: 0.1, Reorder: 0.05}
	inBubble(t, cfg, func(n *netsim.Network) {
		const count = 10000
		got := arrivals(n, count, 10*time.Microsecond)
		s := n.Stats()
		require.EqualValues(t, count, s.Sent)
		require.InDelta(t, 0.2*count, s.Lost, 200)
		require.InDelta(t, 0.8*0.1*count, s.Duplicated, 150)
		require.InDelta(t, 0.8*0.05*count, s.Reordered, 120)
		require.EqualValues(t, len(got), s.Delivered)
		require.EqualValues(t, count-s.Lost+s.Duplicated, s.Delivered)

		seen, late := map[int]int{}, 0
		for i, number := range got {
			seen[number]++
			if i > 0 && number < got[i-1] {
				late++
			}
		}
		require.Len(t, seen, count-int(s.Lost))
		require.Greater(t, late, int(s.Reordered)/2)
	})
}

func TestACutDropsDatagramsInOneDirectionAlsoUnderWay(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(time.Millisecond)}, func(n *netsim.Network) {
		a, b := must(n.Host("a").ListenPacket(1)), must(n.Host("b").ListenPacket(1))
		must(a.WriteTo([]byte("under way"), b.LocalAddr()))
		cut := must(n.PartitionOneWay([]string{"a"}, []string{"b"}))
		must(a.WriteTo([]byte("lost"), b.LocalAddr()))
		must(b.WriteTo([]byte("back"), a.LocalAddr()))
		buf := make([]byte, 10)
		k, from, err := a.ReadFrom(buf)
		require.NoError(t, err)
		require.Equal(t, "back", string(buf[:k]))
		require.Equal(t, b.LocalAddr(), from)
		time.Sleep(time.Second)
		cut.Heal()
		require.EqualValues(t, 2, n.Stats().Cut)
		must(a.WriteTo([]byte("new"), b.LocalAddr()))
		k, _, err = b.ReadFrom(buf)
		require.NoError(t, err)
		require.Equal(t, "new", string(buf[:k]))
	})
}

func TestQueuesAreBounded(t *testing.T) {
	inBubble(t, netsim.Config{Queue: 10, UnderWay: 100}, func(n *netsim.Network) {
		a, b := must(n.Host("a").ListenPacket(1)), must(n.Host("b").ListenPacket(1))
		for range 150 {
			must(a.WriteTo([]byte("x"), b.LocalAddr()))
		}
		require.EqualValues(t, 50, n.Stats().Full, "the link is full")
		time.Sleep(time.Second)
		require.EqualValues(t, 50+90, n.Stats().Full, "the socket's queue is full")
		require.EqualValues(t, 10, n.Stats().Delivered)
	})
}

func TestDatagramsToNobodyVanish(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		p := must(a.ListenPacket(0))
		must(p.WriteToUDPAddrPort(nil, netip.MustParseAddrPort("10.1.1.1:1")))
		must(p.WriteToUDPAddrPort(nil, netip.AddrPortFrom(b.IP(), 1)))
		q := must(b.ListenPacket(2))
		must(p.WriteTo([]byte("x"), q.LocalAddr()))
		b.Crash()
		time.Sleep(time.Second)
		require.EqualValues(t, 3, n.Stats().Unheard)
		_, _, err := q.ReadFrom(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

type textAddr string

func (textAddr) Network() string  { return "text" }
func (a textAddr) String() string { return string(a) }

func TestPacketConnKeepsTheTermsOfPackageNet(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		p := must(n.Host("a").ListenPacket(5))
		_, err := p.WriteTo(make([]byte, 65508), p.LocalAddr())
		require.ErrorIs(t, err, syscall.EMSGSIZE)
		_, err = p.WriteTo(nil, textAddr("a:5"))
		require.ErrorContains(t, err, "datagrams go to an IP address and port")
		must(p.WriteTo([]byte("truncated"), textAddr("127.0.0.1:5")))
		buf := make([]byte, 5)
		k, from, err := p.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		require.Equal(t, "trunc", string(buf[:k]))
		require.Equal(t, "10.0.0.1:5", from.String())

		start := time.Now()
		check(p.SetReadDeadline(start.Add(time.Minute)))
		_, _, err = p.ReadFrom(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		check(p.SetDeadline(start))
		_, err = p.WriteTo(nil, p.LocalAddr())
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		check(p.SetWriteDeadline(time.Time{}))
		check(p.SetReadDeadline(time.Time{}))

		errs := make(chan error)
		go func() { _, _, err := p.ReadFrom(buf); errs <- err }()
		bubble.Wait()
		check(p.Close())
		require.ErrorIs(t, <-errs, net.ErrClosed)
		require.ErrorIs(t, p.Close(), net.ErrClosed)
		require.ErrorIs(t, p.SetDeadline(start), net.ErrClosed)
	})
}
