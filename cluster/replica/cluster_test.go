package replica_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak says whether to run the full counts.
func soak() bool { return os.Getenv("WLMSIM_SOAK") == "1" }

// count returns the full count under soak, else the reduced one.
func count(full, reduced int) int {
	if soak() {
		return full
	}
	return reduced
}

// testCluster runs replicas m1, m2... over loopback or over memnet.
type testCluster struct {
	t       testing.TB
	network *memnet // nil: loopback
	timings replica.Timings
	nodes   map[string]*testNode
	names   []string
	servers []replica.Server
	log     *slog.Logger
}

type testNode struct {
	*replica.Replica
	c        *testCluster
	name     string
	address  string
	store    *replica.Store
	listener net.Listener

	mu        sync.Mutex
	delivered []*cluster.State
	indices   []uint64
	refuse    func(*cluster.State) error
	more      chan struct{} // closed and replaced at each delivery
	changed   chan struct{} // closed and replaced at each OnChange
	stopped   chan error
}

type option func(*testCluster)

func withTimings(t replica.Timings) option { return func(c *testCluster) { c.timings = t } }

// newCluster prepares voters m1 to mn; store makes each one's store. Nothing
// runs yet.
func newCluster(t testing.TB, network *memnet, voters int, store func(name string) *replica.Store, options ...option) *testCluster {
	c := &testCluster{t: t, network: network, nodes: map[string]*testNode{}}
	if os.Getenv("REPLICA_LOG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, o := range options {
		o(c)
	}
	for i := range voters {
		name := fmt.Sprintf("m%d", i+1)
		n := c.add(name, store(name))
		c.servers = append(c.servers, replica.Server{Name: name, Address: n.address, Voter: true})
	}
	return c
}

// add prepares one more node.
func (c *testCluster) add(name string, store *replica.Store) *testNode {
	n := &testNode{c: c, name: name, store: store, more: make(chan struct{}), changed: make(chan struct{}), stopped: make(chan error, 1)}
	n.address = name
	c.nodes[name] = n
	c.names = append(c.names, name)
	n.listen(n.address)
	return n
}

// listen takes the node's address, or a new one on loopback.
func (n *testNode) listen(address string) {
	if n.c.network != nil {
		n.listener, n.address = n.c.network.listen(address), address
		return
	}
	if address == n.name {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	require.NoError(n.c.t, err)
	n.listener, n.address = l, l.Addr().String()
}

func (n *testNode) config(bootstrap []replica.Server) replica.Config {
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	if n.c.network != nil {
		dial = n.c.network.dialer(n.name)
	}
	log := n.c.log
	if log != nil {
		log = log.With("node", n.name)
	}
	return replica.Config{
		Name: n.name, Address: n.address, Listener: n.listener, Dial: dial, Store: n.store, Bootstrap: bootstrap,
		Timings: n.c.timings, Deliver: n.deliver, OnChange: n.onChange, OnStop: func(err error) { n.stopped <- err }, Log: log,
	}
}

func (n *testNode) deliver(s *cluster.State, index uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuse != nil {
		if err := n.refuse(s); err != nil {
			return err
		}
	}
	n.delivered, n.indices = append(n.delivered, s), append(n.indices, index)
	close(n.more)
	n.more = make(chan struct{})
	return nil
}

func (n *testNode) onChange() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// open starts the node.
func (n *testNode) open(bootstrap []replica.Server) {
	r, err := replica.Open(n.config(bootstrap))
	require.NoError(n.c.t, err)
	n.Replica = r
}

// restart opens the node again, on its address, as a process that begins anew.
func (n *testNode) restart() {
	n.mu.Lock()
	n.delivered, n.indices = nil, nil
	n.mu.Unlock()
	n.listen(n.address)
	n.open(nil)
}

// open starts every node with the voters as bootstrap configuration.
func (c *testCluster) open() {
	for _, name := range c.names {
		c.nodes[name].open(c.servers)
	}
}

func (c *testCluster) close() {
	for _, name := range c.names {
		if n := c.nodes[name]; n.Replica != nil {
			require.NoError(c.t, n.Close())
		}
	}
}

// await blocks until is holds of the node, looking after each delivery or
// change.
func (n *testNode) await(what string, is func() bool) {
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		n.mu.Lock()
		more, changed := n.more, n.changed
		n.mu.Unlock()
		if is() {
			return
		}
		select {
		case <-more:
		case <-changed:
		case <-deadline.C:
			require.FailNow(n.c.t, "waited too long", "%s: %s", n.name, what)
		}
	}
}

// version waits until the node has delivered a version.
func (n *testNode) version(v uint64) *cluster.State {
	var found *cluster.State
	n.await(fmt.Sprintf("version %d", v), func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, s := range n.delivered {
			if s.Version() >= v {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// leader waits until one of the nodes leads and the others named know it.
func (c *testCluster) leader(names ...string) *testNode {
	if len(names) == 0 {
		names = c.names
	}
	for {
		n := c.nodes[names[0]]
		n.await("a leader", func() bool { name, _, _ := n.Leader(); return name != "" })
		name, _, _ := n.Leader()
		led := c.nodes[name]
		if led == nil || name == "" {
			continue
		}
		for _, other := range names {
			o := c.nodes[other]
			o.await("the leader "+name, func() bool { got, _, _ := o.Leader(); return got != "" })
		}
		if led.IsLeader() {
			return led
		}
	}
}

func group(id, name string, limit int) *cluster.CreateGroup {
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: id, Name: name, ResiliencyMode: "enforced", ResourceLimits: map[string]float64{"memory": 0.001},
	}}
}

// propose writes through whoever leads, as a client that tries again only
// after a sure refusal.
func (c *testCluster) propose(command cluster.Command) (*testNode, *cluster.State) {
	for {
		led := c.leader()
		s, err := led.Propose(c.t.Context(), command)
		if _, moved := errors.AsType[*replica.NotLeaderError](err); moved {
			continue
		}
		require.NoError(c.t, err)
		return led, s
	}
}

func memory(string) *replica.Store { return replica.Memory() }
