package gossip_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/cluster/gossip"
)

// On sockets a probe of memberlist's that waits for a member which was closed first
// ends up to [gossip.Timings.Linger] after Close, longer than goleak looks.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// echo answers with what it got.
func echo(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil }

// node is a member under test, with its host when it lives in a fabric.
type node struct {
	*gossip.Gossip
	t       *testing.T
	name    string
	address string
	host    *host
	changes chan struct{} // gets one for each OnChange, if there is room
}

// start starts a node in the fabric; adjust may change its config.
func (f *fabric) start(t *testing.T, name, address string, adjust func(*gossip.Config)) *node {
	t.Helper()
	h := f.host(address)
	n := &node{t: t, name: name, address: address, host: h, changes: make(chan struct{}, 1000)}
	cfg := gossip.Config{
		Self:    gossip.Member{Name: name, Address: address, ID: name + "-id", Roles: []string{"manager", "data"}, Raft: "r:" + name, HTTP: "h:" + name},
		Network: gossip.Network{Listener: listener{h}, Packets: datagrams{h}, Dial: h.dial},
		Handler: echo,
		OnChange: func() {
			select {
			case n.changes <- struct{}{}:
			default:
			}
		},
	}
	if adjust != nil {
		adjust(&cfg)
	}
	g, err := gossip.Start(cfg)
	require.NoError(t, err)
	n.Gossip = g
	return n
}

// join makes each node join all nodes before it.
func join(t *testing.T, nodes ...*node) {
	t.Helper()
	var earlier []string
	for _, n := range nodes {
		if len(earlier) > 0 {
			met, err := n.Join(t.Context(), earlier)
			require.NoError(t, err)
			require.Equal(t, len(earlier), met)
		}
		earlier = append(earlier, n.address)
	}
}

func closeAll(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		require.NoError(t, n.Close())
	}
}

// trio is three joined nodes m1, m2, m3 at 10.0.0.1 to 3.
func (f *fabric) trio(t *testing.T, adjust func(*gossip.Config)) (m1, m2, m3 *node) {
	t.Helper()
	m1 = f.start(t, "m1", "10.0.0.1:7946", adjust)
	m2 = f.start(t, "m2", "10.0.0.2:7946", adjust)
	m3 = f.start(t, "m3", "10.0.0.3:7946", adjust)
	join(t, m1, m2, m3)
	time.Sleep(time.Second)
	for _, n := range []*node{m1, m2, m3} {
		require.Equal(t, []string{"m1", "m2", "m3"}, n.living())
	}
	return m1, m2, m3
}

func (n *node) living() []string {
	var names []string
	for _, m := range n.Members() {
		if m.Alive {
			names = append(names, m.Name)
		}
	}
	return names
}

// addressOf is where a node holds a member to be.
func (n *node) addressOf(name string) string {
	for _, m := range n.Members() {
		if m.Name == name {
			return m.Address
		}
	}
	return ""
}

// awaitChange returns how long it took until ok held, looking after each change of the view.
func (n *node) awaitChange(ok func() bool) time.Duration {
	n.t.Helper()
	began := time.Now()
	limit := time.After(time.Hour)
	for !ok() {
		select {
		case <-n.changes:
		case <-limit:
			require.FailNow(n.t, "nothing changed for an hour", n.name)
		}
	}
	return time.Since(began)
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, net *fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(gossip.Timings{}.Linger())
		f(t, newFabric())
	})
}

// liveNode is a node on loopback sockets.
type liveNode struct {
	*gossip.Gossip
	changes chan struct{} // holds one
}

// awaitMembers waits until a node knows so many, however busy the machine is.
func (n *liveNode) awaitMembers(count int) {
	for len(n.Members()) < count {
		<-n.changes
	}
}

func startLive(t testing.TB, name string, adjust func(*gossip.Config)) (*liveNode, string) {
	t.Helper()
	n := &liveNode{changes: make(chan struct{}, 1)}
	l, p := listenLoopback(t)
	var d net.Dialer
	cfg := gossip.Config{
		Self: gossip.Member{Name: name, Address: l.Addr().String()},
		Network: gossip.Network{Listener: l, Packets: p, Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address)
		}},
		Handler: echo,
		OnChange: func() {
			select {
			case n.changes <- struct{}{}:
			default:
			}
		},
		// Short, so that news travels fast; suspicion and the bounds of a stream long, so that a busy machine makes nobody
		// dead and loses no message.
		Timings: gossip.Timings{
			ProbeInterval: 100 * time.Millisecond, ProbeTimeout: 50 * time.Millisecond, GossipInterval: 20 * time.Millisecond, SuspicionMult: 3000,
			Dial: 5 * time.Minute, Stream: 5 * time.Minute,
		},
	}
	if adjust != nil {
		adjust(&cfg)
	}
	g, err := gossip.Start(cfg)
	require.NoError(t, err)
	n.Gossip = g
	return n, cfg.Self.Address
}

// listenLoopback finds a port that is free for streams and datagrams.
func listenLoopback(t testing.TB) (net.Listener, net.PacketConn) {
	t.Helper()
	var last error
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, p
		}
		last = err
		require.NoError(t, l.Close())
	}
	require.NoError(t, last)
	return nil, nil
}
