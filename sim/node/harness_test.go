package node_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

// soak says whether full counts are asked for.
func soak() bool { return os.Getenv("WLMSIM_SOAK") != "" }

// counts returns the count for an ordinary or for a soak run.
func counts(ordinary, full int) int {
	if soak() {
		return full
	}
	return ordinary
}

const (
	raftPort   = 9300
	gossipPort = 9400
	httpPort   = 9200
)

// lab is a cluster in virtual time, for one test.
type lab struct {
	t      testing.TB
	net    *netsim.Network
	nodes  map[string]*node.Node
	stores map[string]*replica.Store
	ids    map[string]string
	names  []string // in order of the first start
	tune   func(*node.Config)
	log    *slog.Logger
}

// inLab runs a test in a bubble with a lab of the given nodes, all settled. Names
// that begin with d are data nodes, all others managers; a manager of a lab
// without data nodes holds shards too.
func inLab(t *testing.T, names string, tune func(*node.Config), test func(*lab)) {
	t.Helper()
	inLabOn(t, netsim.Config{Seed: 1}, names, tune, test)
}

// inLabOn is inLab on a network of its own.
func inLabOn(t *testing.T, network netsim.Config, names string, tune func(*node.Config), test func(*lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { runLab(t, network, names, tune, test) })
}

// runLab is what happens in a lab's bubble.
func runLab(t testing.TB, network netsim.Config, names string, tune func(*node.Config), test func(*lab)) {
	net, err := netsim.New(network)
	require.NoError(t, err)
	l := &lab{t: t, net: net, nodes: map[string]*node.Node{}, stores: map[string]*replica.Store{}, ids: map[string]string{}, tune: tune, log: slog.New(slog.DiscardHandler)}
	defer func() {
		for _, name := range l.names {
			l.stop(name)
		}
		require.NoError(t, net.Close())
		time.Sleep(time.Minute) // memberlist waits out its timers after it was shut down
	}()
	l.names = strings.Fields(names)
	for _, name := range l.names {
		l.start(name)
	}
	l.awaitReady(l.names...)
	l.awaitSettled()
	test(l)
}

func (l *lab) roles(name string) []cluster.Role {
	onlyManagers := !slices.ContainsFunc(l.names, func(n string) bool { return n[0] == 'd' })
	switch {
	case name[0] == 'd':
		return []cluster.Role{cluster.Data}
	case onlyManagers:
		return []cluster.Role{cluster.Manager, cluster.Data}
	}
	return []cluster.Role{cluster.Manager}
}

func seedOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// start starts a node, or starts it again on what its store holds.
func (l *lab) start(name string) {
	n, err := node.Start(l.config(name))
	require.NoError(l.t, err)
	l.nodes[name] = n
}

// config brings a node's host up and returns what to start the node with.
func (l *lab) config(name string) node.Config {
	host := l.net.Host(name)
	if host.Down() {
		host.Restart()
	}
	if l.stores[name] == nil {
		l.stores[name] = replica.Memory()
		l.ids[name] = node.NewID(seedOf(name))
	}
	listen := func(port int) gossip.Network {
		listener, err := host.Listen(port)
		require.NoError(l.t, err)
		return gossip.Network{Listener: listener, Dial: host.Dial}
	}
	raft, meet, web := listen(raftPort), listen(gossipPort), listen(httpPort)
	packets, err := host.ListenPacket(gossipPort)
	require.NoError(l.t, err)
	meet.Packets = packets
	enabled := string(cluster.Enabled)
	switches, err := wlm.Profile(wlm.ProfileReviewed)
	require.NoError(l.t, err)
	c := node.Config{
		Name: name, ID: l.ids[name], Roles: l.roles(name), Switches: switches,
		Raft:   node.RaftNetwork{Address: host.Address(raftPort), Listener: raft.Listener, Dial: raft.Dial},
		Gossip: node.GossipNetwork{Address: host.Address(gossipPort), Network: meet},
		HTTP:   node.HTTPNetwork{Address: host.Address(httpPort), Listener: web.Listener},
		Store:  l.stores[name], Settings: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled}},
		Seed: seedOf(name), Holds: true, Log: l.log,
	}
	for _, other := range l.names {
		if other[0] == 'm' {
			c.Bootstrap = append(c.Bootstrap, replica.Server{Name: other, Address: l.net.Host(other).Address(raftPort), Voter: true})
		}
		if other != name && l.nodes[other] != nil {
			c.Seeds = append(c.Seeds, l.net.Host(other).Address(gossipPort))
		}
	}
	if name[0] != 'm' {
		c.Bootstrap = nil
	}
	if l.tune != nil {
		l.tune(&c)
	}
	return c
}

// stop ends a node at once; its store stays.
func (l *lab) stop(name string) {
	if n := l.nodes[name]; n != nil {
		delete(l.nodes, name)
		_ = n.Close() // what a crash breaks is no matter
	}
}

// crash cuts a node off, freezes its store, and ends it.
func (l *lab) crash(name string) {
	l.net.Host(name).Crash()
	l.stores[name].Freeze()
	l.stop(name)
}

// patience bounds every wait, in virtual time.
const patience = 2 * time.Minute

func (l *lab) awaitReady(names ...string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	for _, name := range names {
		require.NoError(l.t, l.nodes[name].Ready(ctx), "node %s", name)
	}
}

// awaitSettled waits until every running node sees all of them alive, and has
// applied that all of them are in the state: from then on no version comes that
// the test did not make. A node is ready as soon as it is in the state itself,
// while the entries of others are still on their way.
func (l *lab) awaitSettled() {
	l.t.Helper()
	l.await("settled nodes", func() bool {
		applied := map[uint64]bool{}
		for _, n := range l.nodes {
			applied[n.Applied()] = true
			alive := 0
			for _, m := range n.Members() {
				if known := n.State().Node(m.Name); m.Alive && known != nil && known.ID == l.ids[m.Name] {
					alive++
				}
			}
			if alive < len(l.nodes) {
				return false
			}
		}
		return len(applied) == 1
	})
}

// await waits until a condition holds, looking every 10 ms.
func (l *lab) await(what string, is func() bool) {
	l.t.Helper()
	for range int(patience / (10 * time.Millisecond)) {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(l.t, "waited too long", what)
}

// leader returns the name of the leader that all running nodes agree on.
func (l *lab) leader() string {
	l.t.Helper()
	leader := ""
	l.await("a leader that all agree on", func() bool {
		seen := map[string]bool{}
		for _, n := range l.nodes {
			leader = n.Leader()
			seen[leader] = true
		}
		return len(seen) == 1 && l.nodes[leader] != nil
	})
	return leader
}

// follower returns a running manager that does not lead.
func (l *lab) follower() string {
	leader := l.leader()
	for _, name := range l.names {
		if name != leader && name[0] == 'm' && l.nodes[name] != nil {
			return name
		}
	}
	require.Fail(l.t, "there is no follower")
	return ""
}

// propose has a command carried out through a node.
func (l *lab) propose(name string, c cluster.Command) (*rest.Result, error) {
	return l.nodes[name].Propose(l.t.Context(), c)
}

func (l *lab) mustPropose(name string, c cluster.Command) *rest.Result {
	l.t.Helper()
	r, err := l.propose(name, c)
	require.NoError(l.t, err)
	return r
}

// group makes a group through a node and returns its id.
func (l *lab) group(name, group string, attribute cluster.Attribute, limit int64) string {
	l.t.Helper()
	return l.mustPropose(name, newGroup(l.nodes[name].NewID(), group, attribute, limit)).Group.ID
}

func newGroup(id, name string, attribute cluster.Attribute, limit int64) *cluster.CreateGroup {
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: id, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.01},
		Throttling: &cluster.Throttling{Attribute: attribute, NodeLimit: &limit},
	}}
}

// index makes the index logs.
func (l *lab) index(shards int) {
	l.t.Helper()
	l.mustPropose(l.names[0], &cluster.CreateIndex{Name: "logs", UUID: node.NewID(7), Shards: shards})
}

// answer is what came of a search.
type answer struct {
	response *coordinator.Response
	err      error
}

// search runs a search of a user in a group through a node until it is
// answered.
func (l *lab) search(ctx context.Context, name, user, group string, service time.Duration) answer {
	ctx = wlm.WithPrincipal(ctx, wlm.Principal{User: user})
	r, err := l.nodes[name].Search(ctx, coordinator.Request{Index: "logs", GroupHeader: group, Size: 10, ServiceTime: service, Query: []byte("{}")})
	return answer{r, err}
}

// hold starts a search that takes long and returns how to end it and hear of
// its answer. It has its permit, or is over, when hold returns.
func (l *lab) hold(name, user, group string) (cancel context.CancelFunc, done <-chan answer) {
	ctx, cancel := context.WithCancel(l.t.Context())
	answers := make(chan answer, 1)
	n := l.nodes[name]
	go func() {
		ctx := wlm.WithPrincipal(ctx, wlm.Principal{User: user})
		r, err := n.Search(ctx, coordinator.Request{Index: "logs", GroupHeader: group, Size: 10, ServiceTime: time.Hour, Query: []byte("{}")})
		answers <- answer{r, err}
	}()
	synctest.Wait()
	return cancel, answers
}

func throttled(err error) bool { return cluster.KindOf(err) == cluster.TooMany }

// held returns how many permits of a group a node holds.
func (l *lab) held(name, group string) int {
	for _, p := range l.nodes[name].Throttle().Permits() {
		if p.Group == group {
			return p.Held
		}
	}
	return 0
}

// requireNoPermit requires that no node holds a permit.
func (l *lab) requireNoPermit() {
	l.t.Helper()
	for name, n := range l.nodes {
		require.Empty(l.t, n.Throttle().Permits(), "node %s", name)
	}
}

// throttledCount returns a group's total_throttled on a node.
func (l *lab) throttledCount(name, group string) uint64 {
	l.t.Helper()
	stats, err := l.nodes[name].Throttle().Stats([]string{group})
	require.NoError(l.t, err)
	return stats[0].Throttled
}

// awaitSame waits until nodes have published the same version.
func (l *lab) awaitSame(names ...string) {
	l.t.Helper()
	l.await(fmt.Sprint("one version on ", names), func() bool {
		versions := map[uint64]bool{}
		for _, name := range names {
			versions[l.nodes[name].State().Version()] = true
		}
		return len(versions) == 1
	})
}

func (l *lab) holdStep(name string, step probe.Step, filter probe.Filter) {
	l.t.Helper()
	require.NoError(l.t, l.nodes[name].Holds().Hold(step, filter))
}

func (l *lab) String() string { return fmt.Sprint(l.names) }
