package replica_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
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

	mu    sync.Mutex
	event chan struct{} // closed and replaced at each delivery, change and stop of any node
}

type testNode struct {
	*replica.Replica
	c        *testCluster
	name     string
	address  string
	store    *replica.Store
	listener net.Listener

	delivered []*cluster.State // under c.mu
	indices   []uint64
	refuse    func(*cluster.State) error
	cause     error // of the stop
}

type option func(*testCluster)

func withTimings(t replica.Timings) option { return func(c *testCluster) { c.timings = t } }

// newCluster prepares voters m1 to mn; store makes each one's store. Nothing
// runs yet.
func newCluster(t testing.TB, network *memnet, voters int, store func(name string) *replica.Store, options ...option) *testCluster {
	c := &testCluster{t: t, network: network, nodes: map[string]*testNode{}, event: make(chan struct{})}
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
	n := &testNode{c: c, name: name, store: store}
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
		Timings: n.c.timings, Deliver: n.deliver, OnChange: n.onChange, OnStop: n.onStop, Log: log,
	}
}

func (n *testNode) deliver(s *cluster.State, index uint64) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if n.refuse != nil {
		if err := n.refuse(s); err != nil {
			return err
		}
	}
	n.delivered, n.indices = append(n.delivered, s), append(n.indices, index)
	n.c.happenedLocked()
	return nil
}

func (n *testNode) onChange() {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.happenedLocked()
}

func (n *testNode) onStop(err error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.cause = err
	n.c.happenedLocked()
}

func (c *testCluster) happenedLocked() {
	close(c.event)
	c.event = make(chan struct{})
}

// stopped waits until the node has stopped by itself, and returns why.
func (n *testNode) stopped() (cause error) {
	n.c.await(n.name+" stops", func() bool {
		n.c.mu.Lock()
		defer n.c.mu.Unlock()
		cause = n.cause
		return cause != nil
	})
	return cause
}

// states returns what was delivered since the node was opened.
func (n *testNode) states() []*cluster.State {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return slices.Clone(n.delivered)
}

// open starts the node.
func (n *testNode) open(bootstrap []replica.Server) {
	r, err := replica.Open(n.config(bootstrap))
	require.NoError(n.c.t, err)
	n.Replica = r
}

// restart opens the node again, on its address, as a process that begins anew.
func (n *testNode) restart() {
	n.c.mu.Lock()
	n.delivered, n.indices, n.cause = nil, nil, nil
	n.c.mu.Unlock()
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
		if c.nodes[name].Replica != nil {
			c.nodes[name].shut()
		}
	}
}

// shut closes the node.
func (n *testNode) shut() {
	n.c.t.Helper()
	require.NoError(n.c.t, n.Close())
	n.Replica = nil
}

// others returns the running nodes but one.
func (c *testCluster) others(than *testNode) (others []*testNode) {
	for _, name := range c.names {
		if n := c.nodes[name]; n != than && n.Replica != nil {
			others = append(others, n)
		}
	}
	return others
}

// text is a state as it is written, to compare by.
func text(t testing.TB, s *cluster.State) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, cluster.EncodeState(&b, s))
	return b.String()
}

// await blocks until a condition holds, looking after each event of any node: a
// minute of virtual time at the most, or, on loopback, however busy the machine
// is.
func (c *testCluster) await(what string, is func() bool) {
	c.t.Helper()
	limit := time.Minute
	if c.network == nil {
		limit = time.Hour // go test ends sooner what hangs
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		event := c.event
		c.mu.Unlock()
		if is() {
			return
		}
		select {
		case <-event:
		case <-deadline.C:
			require.FailNow(c.t, "waited too long", what)
		}
	}
}

// version waits until the node has delivered a version, or a later one, and
// returns the first such.
func (n *testNode) version(v uint64) (found *cluster.State) {
	n.c.t.Helper()
	n.c.await(fmt.Sprintf("%s delivers version %d", n.name, v), func() bool {
		states := n.states()
		i := slices.IndexFunc(states, func(s *cluster.State) bool { return s.Version() >= v })
		if i >= 0 {
			found = states[i]
		}
		return i >= 0
	})
	return found
}

// leader waits until the nodes named, or all that run, agree on one of them
// that leads.
func (c *testCluster) leader(names ...string) (led *testNode) {
	c.t.Helper()
	if len(names) == 0 {
		for _, name := range c.names {
			if c.nodes[name].Replica != nil {
				names = append(names, name)
			}
		}
	}
	c.await(fmt.Sprint("one leader of ", names), func() bool {
		first, _, _ := c.nodes[names[0]].Leader()
		led = c.nodes[first]
		return slices.Contains(names, first) && led.IsLeader() && !slices.ContainsFunc(names, func(name string) bool {
			other, _, _ := c.nodes[name].Leader()
			return other != first
		})
	})
	return led
}

// create makes a group of a name; its id is the name's.
func create(name string) *cluster.CreateGroup {
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: "id-" + name, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"memory": 0.001},
	}}
}

// update stamps a group, which makes a new version.
func update(name string, stamp int64) *cluster.UpdateGroup {
	return &cluster.UpdateGroup{Name: name, UpdatedAt: stamp}
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
