package netsim_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/netsim"
)

func searched(t *testing.T, pattern string, between func(from, to string) bool, f func(*netsim.Network)) ([]netsim.Sighting, uint64) {
	t.Helper()
	search := must(netsim.NewSearch([]byte(pattern), between))
	inBubble(t, netsim.Config{Taps: []netsim.Tap{search}}, f)
	return search.Found()
}

func TestASearchFindsAPatternSplitOverWritesAndTime(t *testing.T) {
	found, count := searched(t, "canary-7f3a", nil, func(n *netsim.Network) {
		near, far := connected(n)
		must(near.Write([]byte("header ca")))
		time.Sleep(time.Second)
		must(near.Write([]byte("n")))
		time.Sleep(time.Second)
		must(near.Write([]byte("ary-7f3a rest")))
		must(far.Write([]byte("canary-7f3"))) // the other direction is another stream
		must(near.Write([]byte("a")))
		must(io.ReadFull(far, make([]byte, 24)))
	})
	require.EqualValues(t, 1, count)
	require.Equal(t, netsim.Flow{From: "a", To: "b", FromPort: 49152, ToPort: 1, Stream: 1}, found[0].Flow)
	require.EqualValues(t, 7, found[0].Offset)
	require.Regexp(t, `^a :49152 -> b :1, byte 7 of stream 1, at 00:00:02\.\d{9}$`, found[0].String())
}

func TestASearchFindsAPatternThatTheWindowSplits(t *testing.T) {
	search := must(netsim.NewSearch([]byte("canary"), nil))
	inBubble(t, netsim.Config{Window: 4, Taps: []netsim.Tap{search}}, func(n *netsim.Network) {
		near, far := connected(n)
		go func() { must(near.Write([]byte("a canary in a coal mine"))) }()
		must(io.ReadFull(far, make([]byte, 23)))
	})
	_, count := search.Found()
	require.EqualValues(t, 1, count)
}

func TestASearchSeesDatagramsEvenThoseThatAreLost(t *testing.T) {
	found, count := searched(t, "canary", nil, func(n *netsim.Network) {
		a, b := must(n.Host("a").ListenPacket(1)), must(n.Host("b").ListenPacket(2))
		must(a.WriteTo([]byte("can"), b.LocalAddr()))
		must(a.WriteTo([]byte("ary"), b.LocalAddr())) // two datagrams are not one stream
		must(n.Partition([]string{"a"}, []string{"b"}))
		must(a.WriteTo([]byte("a canary"), b.LocalAddr()))
	})
	require.EqualValues(t, 1, count)
	require.Equal(t, netsim.Flow{From: "a", To: "b", FromPort: 1, ToPort: 2}, found[0].Flow)
	require.Equal(t, "a :1 -> b :2, byte 2 of a datagram, at 00:00:00.000000000", found[0].String())
}

func TestASearchLooksOnlyWhereItIsTold(t *testing.T) {
	nodes := func(from, to string) bool { return from != "client" && to != "client" }
	found, count := searched(t, "canary", nodes, func(n *netsim.Network) {
		a, b := must(n.Host("a").ListenPacket(1)), must(n.Host("client").ListenPacket(1))
		must(a.WriteTo([]byte("canary"), b.LocalAddr()))
		must(b.WriteTo([]byte("canary"), a.LocalAddr()))
		must(n.Host("client").Listen(2))
		must(must(n.Host("a").Dial(background, "client:2")).Write([]byte("canary")))
	})
	require.Zero(t, count)
	require.Empty(t, found)
	_, err := netsim.NewSearch(nil, nil)
	require.ErrorContains(t, err, "empty")
}

func TestASearchCountsOnPastWhatItKeeps(t *testing.T) {
	found, count := searched(t, "aa", nil, func(n *netsim.Network) {
		near, _ := connected(n)
		must(near.Write([]byte(strings.Repeat("a", 301))))
	})
	require.EqualValues(t, 300, count, "overlapping ones too")
	require.Len(t, found, 100)
}

func TestASearchAgreesWithStringsWhateverTheCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 5, -1).Draw(t, "pattern")
		pieces := rapid.SliceOf(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 9, -1)).Draw(t, "pieces")
		search := must(netsim.NewSearch([]byte(pattern), nil))
		see := search.Stream(netsim.Flow{Stream: 1})
		for _, piece := range pieces {
			see([]byte(piece))
		}
		text := strings.Join(pieces, "")
		want := []int64{}
		for i := range text {
			if strings.HasPrefix(text[i:], pattern) {
				want = append(want, int64(i))
			}
		}
		found, count := search.Found()
		require.Len(t, want, int(count))
		got := []int64{}
		for _, s := range found {
			got = append(got, s.Offset)
		}
		require.ElementsMatch(t, want[:len(got)], got)
	})
}
