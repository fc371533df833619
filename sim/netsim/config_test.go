package netsim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/netsim"
)

func TestAConfigOutOfBoundsIsRefusedWithAllThatIsWrong(t *testing.T) {
	_, err := netsim.New(netsim.Config{
		Link:        netsim.Faults{Latency: netsim.Range{Min: 5, Max: 1}, Loss: 1.5, Duplicate: math.NaN()},
		Loopback:    netsim.Faults{Latency: netsim.Range{Max: 25 * time.Hour}, Reorder: -0.1},
		Window:      -1,
		Queue:       -2,
		UnderWay:    -3,
		Backlog:     -4,
		DialTimeout: -5,
		Retransmit:  -6,
	})
	for _, text := range []string{
		"link: latency 5ns..1ns must not be negative, nor end before it starts",
		"loss 1.5 is not in 0..1", "duplicate NaN is not in 0..1", "loopback: latency 0s..25h0m0s is longer than 24h0m0s", "reorder -0.1 is not in 0..1",
		"window -1 must be positive", "queue -2", "under way -3", "backlog -4", "dial timeout -5", "retransmit -6",
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestALinkCanBeChangedAndChangedBack(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(time.Millisecond)}, func(n *netsim.Network) {
		a, b := must(n.Host("a").ListenPacket(1)), must(n.Host("b").ListenPacket(1))
		took := func() time.Duration {
			start := time.Now()
			must(a.WriteTo(nil, b.LocalAddr()))
			_, _, err := b.ReadFrom(nil)
			check(err)
			return time.Since(start)
		}
		require.Equal(t, time.Millisecond, took())
		check(n.SetLink("a", "b", exactly(time.Second)))
		require.Equal(t, time.Second, took())
		check(n.SetLink("a", "b", netsim.Faults{Duplicate: 0.5}))
		require.Equal(t, time.Millisecond, took(), "latency that is not set is the network's")
		check(n.SetLink("a", "b", exactly(time.Second)))
		check(n.ClearLink("a", "b"))
		require.Equal(t, time.Millisecond, took())
		check(n.SetLink("a", "b", exactly(time.Second)))
		n.Heal()
		require.Equal(t, time.Millisecond, took())

		require.ErrorContains(t, n.SetLink("a", "x", netsim.Faults{}), `no host "x"`)
		require.ErrorContains(t, n.ClearLink("x", "a"), `no host "x"`)
		require.ErrorContains(t, n.SetLink("a", "b", netsim.Faults{Loss: 2}), "link a -> b: loss 2 is not in 0..1")
	})
}

func TestHostsKeepTheirAddresses(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		for range 300 {
			n.Host("h" + time.Duration(n.Host("x").IP().As4()[3]).String() + n.Host("x").Name())
		}
		require.Same(t, n.Host("x"), n.Host("x"))
		require.Equal(t, "10.0.0.1:80", n.Host("x").Address(80))
		for i := range 300 {
			n.Host(string(rune('A' + i)))
		}
		last := n.Host(string(rune('A' + 299)))
		must(last.Listen(80))
		must(n.Host("x").Dial(background, last.Address(80)))
		require.EqualValues(t, 1, last.IP().As4()[2], "the 302nd host is beyond 10.0.0.255")
	})
}

func TestFaultsAndRangesPrintAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"1ms..5ms", "3ms", "0s", "1ns..1h0m0s"} {
		require.Equal(t, text, must(netsim.ParseRange(text)).String())
	}
	for _, text := range []string{"", "1ms..", "5ms..1ms", "-1ms", "1..2", "1ms...2ms"} {
		_, err := netsim.ParseRange(text)
		require.Error(t, err, text)
	}
	f := netsim.Faults{Latency: must(netsim.ParseRange("1ms..5ms")), Loss: 0.1, Duplicate: 0.25, Reorder: 1}
	require.Equal(t, "latency 1ms..5ms, loss 0.1, duplicate 0.25, reorder 1", f.String())
	require.Equal(t, "none", netsim.Faults{}.String())
	require.Equal(t, "1.5ms m1 -> m2 :7946 dropped queue full 120", netsim.Delivery{
		At: 1500 * time.Microsecond, Kind: netsim.Dropped, Why: netsim.QueueFull, From: "m1", To: "m2", Port: 7946, Bytes: 120,
	}.String())
	require.Equal(t, "kind 0 why 9", netsim.Kind(0).String()+" "+netsim.Why(9).String())
}

func FuzzParseRange(f *testing.F) {
	for _, text := range []string{"1ms..5ms", "3ms", "..", "1ms..2ms..3ms", "-1ns", "9223372036854775807ns"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := netsim.ParseRange(text)
		if err != nil {
			return
		}
		again, err := netsim.ParseRange(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
