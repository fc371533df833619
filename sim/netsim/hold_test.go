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
		n.HoldBack(func(from, to string, port int, what netsim.Kind) bool {
			return from == "a" && to == "b" && port == 1 && what == netsim.Data
		})
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
		message := n.Held()[0]
		require.False(t, n.Deliver(netsim.Delivery{From: "b", To: "a", Stream: message.Stream}))
		require.False(t, n.Deliver(netsim.Delivery{From: "a", To: "b", Stream: message.Stream + 1}))
		require.True(t, n.Deliver(message))
		require.Equal(t, "one!", arrived(far))
		require.Equal(t, "", arrived(far))
		require.True(t, n.Deliver(message))
		require.False(t, n.Deliver(message))
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
		n.HoldBack(everything)
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

		n.HoldBack(everything)
		must(near.Write([]byte("two")))
		n.Host("b").Crash()
		n.Host("a").Crash()
		require.Empty(t, n.Held(), "nobody is left to see it")
	})
}

func TestACutKeepsWhatIsHeldBack(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		n.HoldBack(everything)
		must(near.Write([]byte("one")))
		cut := must(n.Partition([]string{"a"}, []string{"b"}))
		require.Empty(t, n.Held())
		must(near.Write([]byte(" and two")))
		require.Empty(t, n.Held())
		cut.Heal()
		require.Len(t, n.Held(), 1)
		require.True(t, n.Deliver(n.Held()[0]))
		require.Equal(t, "one and two", arrived(far), "in one burst")
	})
}

// everything is held back.
func everything(string, string, int, netsim.Kind) bool { return true }

// Promise 10: streams overtake one another.
func TestWhatIsHeldBackMayOvertakeOtherStreams(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		other, beyond := connected(n)
		n.HoldBack(everything)
		must(near.Write([]byte("first")))
		must(other.Write([]byte("second")))
		require.True(t, n.Deliver(n.Held()[1]))
		require.Equal(t, "second", arrived(beyond))
		require.Equal(t, "", arrived(far))
		require.True(t, n.Deliver(n.Held()[0]))
		require.Equal(t, "first", arrived(far))
	})
}

// Promise 10: a connection is made and ended message by message, and its host
// may crash in between.
func TestConnectionsAreHeldBack(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		listener := must(n.Host("b").Listen(1))
		n.HoldBack(everything)
		results := make(chan error, 2)
		dial := func() {
			_, err := n.Host("a").Dial(background, n.Host("b").Address(1))
			results <- err
		}
		go dial()
		bubble.Wait()
		require.Equal(t, netsim.Dialled, n.Held()[0].Kind)
		require.True(t, n.Deliver(n.Held()[0]))
		accepted := must(listener.Accept())
		require.Equal(t, netsim.Connected, n.Held()[0].Kind)
		require.True(t, n.Deliver(n.Held()[0]))
		require.NoError(t, <-results)

		go dial()
		bubble.Wait()
		n.Host("b").Crash()
		held := n.Held() // the oldest first
		require.Equal(t, []netsim.Kind{netsim.Dialled, netsim.Reset}, []netsim.Kind{held[0].Kind, held[1].Kind})
		require.True(t, n.Deliver(held[0]))
		require.Equal(t, netsim.Refused, n.Held()[1].Kind)
		require.True(t, n.Deliver(n.Held()[1]))
		require.ErrorContains(t, <-results, "refused")
		_, err := accepted.Read(make([]byte, 1))
		require.ErrorContains(t, err, "reset", "its own calls fail at once")
	})
}

// Promise 10: what nobody is left to read is not in the way.
func TestWhatNobodyReadsIsNotHeldBack(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, far := connected(n)
		n.HoldBack(everything)
		must(near.Write([]byte("unread")))
		n.Host("b").Crash()
		require.Len(t, n.Held(), 1, "the reset")
		require.Equal(t, netsim.Reset, n.Held()[0].Kind)
		time.Sleep(time.Second)
		must(near.Write([]byte("unread too")))
		time.Sleep(time.Second)
		require.Len(t, n.Held(), 1)
		require.True(t, n.Deliver(n.Held()[0]))
		_, err := near.Write([]byte("!"))
		require.ErrorContains(t, err, "reset")
		_ = far
	})
}

// What comes to be the first of its stream waits behind what was that before.
func TestWhatIsHeldBackIsInTheOrderOfWaiting(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(1)}, func(n *netsim.Network) {
		near, _ := connected(n)
		other, _ := connected(n)
		n.HoldBack(everything)
		for _, bytes := range []string{"a", "bb"} {
			must(near.Write([]byte(bytes)))
			time.Sleep(time.Nanosecond)
		}
		must(other.Write([]byte("ccc")))
		waiting := func() (bytes []int) {
			for _, d := range n.Held() {
				bytes = append(bytes, d.Bytes)
			}
			return bytes
		}
		require.Equal(t, []int{1, 3}, waiting())
		require.True(t, n.Deliver(n.Held()[0]))
		require.Equal(t, []int{3, 2}, waiting())
	})
}
