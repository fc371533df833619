package streams_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/sim/live/streams"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// members is gossiping nodes m1, m2, ... with a pool each, encrypted.
type members struct {
	*testing.T
	net   *netsim.Network
	nodes []*gossip.Gossip
	dials atomic.Int64
}

func withMembers(t *testing.T, count int, f func(m *members)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, err := netsim.New(netsim.Config{})
		require.NoError(t, err)
		m := &members{T: t, net: n}
		for i := range count {
			m.start(i)
		}
		f(m)
		for _, node := range m.nodes {
			require.NoError(t, node.Close())
		}
		time.Sleep(gossip.Timings{}.Linger())
		require.NoError(t, n.Close())
	})
}

// start starts a node, or starts it again, and joins the others.
func (m *members) start(i int) {
	name := fmt.Sprint("m", i+1)
	h := m.net.Host(name)
	l, err := h.Listen(7946)
	require.NoError(m, err)
	packets, err := h.ListenPacket(7946)
	require.NoError(m, err)
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		m.dials.Add(1)
		return h.Dial(ctx, address)
	}
	p, err := streams.New(streams.Config{Listener: l, Dial: dial})
	require.NoError(m, err)
	node, err := gossip.Start(gossip.Config{
		Self:    gossip.Member{Name: name, Address: p.Addr().String()},
		Network: gossip.Network{Listener: p, Packets: packets, Dial: p.Dial},
		Key:     []byte("sixteen bytes ok"),
		Handler: func(ctx context.Context, _ string, body []byte) ([]byte, error) {
			if string(body) == "wait" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return body, nil
		},
	})
	require.NoError(m, err)
	var seeds []string
	for j, other := range m.nodes {
		if j != i {
			self, _ := other.Member(fmt.Sprint("m", j+1))
			seeds = append(seeds, self.Address)
		}
	}
	if len(seeds) > 0 {
		_, err = node.Join(m.Context(), seeds)
		require.NoError(m, err)
	}
	if i < len(m.nodes) {
		m.nodes[i] = node
	} else {
		m.nodes = append(m.nodes, node)
	}
}

func (m *members) request(to, body string) error {
	answer, err := m.nodes[0].Request(m.Context(), to, []byte(body))
	if err == nil {
		require.Equal(m, body, string(answer))
	}
	return err
}

func TestRequestsTravelOnFewConnections(t *testing.T) {
	withMembers(t, 3, func(m *members) {
		time.Sleep(time.Second)
		before := m.dials.Load()
		for range 500 {
			require.NoError(t, m.request("m2", "hello"))
			require.NoError(t, m.request("m3", "hello"))
		}
		require.LessOrEqual(t, m.dials.Load()-before, int64(8), "for 2,000 messages")
	})
}

func TestAMemberThatCrashesIsDeadAtOnce(t *testing.T) {
	withMembers(t, 3, func(m *members) {
		require.NoError(t, m.request("m3", "hello"))
		outcome := make(chan error)
		go func() { outcome <- m.request("m3", "wait") }()
		time.Sleep(10 * time.Second)
		crashed := time.Now()
		m.net.Host("m3").Crash()
		err := <-outcome
		require.ErrorIs(t, err, gossip.ErrGone)
		require.NotErrorIs(t, err, gossip.ErrNotSent, "m3 had the request")
		require.LessOrEqual(t, time.Since(crashed), time.Second)
		require.False(t, m.nodes[0].Alive("m3"))

		require.NoError(t, m.nodes[2].Close())
		m.net.Host("m3").Restart()
		m.start(2)
		require.NoError(t, m.request("m3", "back at the same address"))
	})
}

func TestACutEndsRequestsAndTheyGoOnAfterIt(t *testing.T) {
	withMembers(t, 3, func(m *members) {
		require.NoError(t, m.request("m3", "hello"))
		for _, oneWay := range []bool{false, true} {
			others := []string{"m1", "m2"}
			var err error
			if oneWay {
				_, err = m.net.PartitionOneWay(others, []string{"m3"})
			} else {
				_, err = m.net.Partition(others, []string{"m3"})
			}
			require.NoError(t, err)
			require.ErrorIs(t, m.request("m3", "into the cut"), gossip.ErrGone)
			m.net.Heal()
			time.Sleep(time.Minute)
			require.NoError(t, m.request("m3", "after it"))
		}
	})
}
