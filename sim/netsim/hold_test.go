package netsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// arrived reads what has arrived at this moment.
func arrived(c interface {
	SetReadDeadline(time.Time) error
	Read([]byte) (int, error)
}) string {
	bubble.Wait()
	b := make([]byte, 64)
	check(c.SetReadDeadline(time.Now().Add(1)))
	n, _ := c.Read(b)
	check(c.SetReadDeadline(time.Time{}))
	return string(b[:n])
}

// Promise 10.
func TestWhatIsHeldBackArrivesOneMessageAtATime(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		n.HoldBack(func(from, to string, port int) bool { return from == "a" && to == "b" && port == 1 })
		for _, text := range []string{"one", "two"} {
			must(near.Write([]byte(text)))
			must(near.Write([]byte("!"))) // of the same instant: the same message
			time.Sleep(time.Second)
		}
		must(far.Write([]byte("back")))
		require.Equal(t, "", arrived(far))
		time.Sleep(time.Nanosecond)
		require.Equal(t, "back", arrived(near), "another direction")
		check(near.Close())

		require.Len(t, n.Held(), 1, "one a stream")
		require.Equal(t, "a -> b :1 data #1 4", n.Held()[0].String()[len(n.Held()[0].At.String())+1:])
		require.False(t, n.Deliver("b", "a", 1))
		require.False(t, n.Deliver("a", "b", 2))
		require.True(t, n.Deliver("a", "b", 1))
		require.Equal(t, "one!", arrived(far))
		require.Equal(t, "", arrived(far))
		require.True(t, n.Deliver("a", "b", 1))
		require.False(t, n.Deliver("a", "b", 1))
		require.Equal(t, "two!", arrived(far))
		time.Sleep(time.Second)
		_, err := far.Read(make([]byte, 1))
		require.ErrorContains(t, err, "EOF", "the end was not held back")
	})
}

func TestWhatIsHeldBackIsLetGoOrForgotten(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		other, _ := connected(n)
		n.HoldBack(func(string, string, int) bool { return true })
		must(near.Write([]byte("one")))
		must(other.Write([]byte("lost")))
		_, due := n.Due()
		require.False(t, due, "nothing comes by itself")
		require.Len(t, n.Held(), 2)
		n.HoldBack(nil)
		require.Empty(t, n.Held())
		at, due := n.Due()
		require.True(t, due)
		require.Equal(t, time.Duration(1), at)
		time.Sleep(time.Nanosecond)
		require.Equal(t, "one", arrived(far))

		n.HoldBack(func(string, string, int) bool { return true })
		must(near.Write([]byte("two")))
		n.Host("b").Crash()
		n.Host("a").Crash()
		require.Empty(t, n.Held(), "nobody is left to see it")
	})
}

func TestACutKeepsWhatIsHeldBack(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		n.HoldBack(func(string, string, int) bool { return true })
		must(near.Write([]byte("one")))
		cut := must(n.Partition([]string{"a"}, []string{"b"}))
		require.False(t, n.Deliver("a", "b", 1))
		require.Empty(t, n.Held())
		cut.Heal()
		require.Len(t, n.Held(), 1)
		require.True(t, n.Deliver("a", "b", 1))
		require.Equal(t, "one", arrived(far))
	})
}
