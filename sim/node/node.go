package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/applier"
	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/wlm"
)

// Node is one running node. [Start] makes it, [Node.Close] ends it.
type Node struct {
	config Config
	log    *slog.Logger
	probe  *probe.Probe
	holds  *probe.Holds
	ids    *ids

	applier     *applier.Applier
	throttle    *wlm.Throttle
	data        *datanode.DataNode
	coordinator *coordinator.Coordinator
	tasks       *task.Registry
	replica     *replica.Replica
	gossip      *gossip.Gossip
	server      *http.Server

	raftChanged    *signal // leader, term or raft membership
	membersChanged *signal // gossip's view
	heard          heard
	pending        atomic.Int64  // commands proposed here that have no answer yet
	started        chan struct{} // closed when all parts are there
	caughtUp       chan struct{} // closed when the node is ready
	ready          atomic.Bool   // whether caughtUp is closed

	ctx   context.Context // ends when the node closes
	stop  context.CancelFunc
	work  sync.WaitGroup // every goroutine that the node itself starts
	conns sync.WaitGroup // HTTP connections; only the goroutine of serve adds to it
}

// Start starts a node. It returns once the parts run, which is before the node
// is part of a cluster; see [Node.Ready]. On an error nothing is left running,
// and the listeners are closed.
func Start(config Config) (*Node, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, errors.Join(err, config.closeListeners())
	}
	n := &Node{
		config: config, log: config.Log.With("node", config.Name), ids: newIDs(config.Seed, "made by a node"),
		raftChanged: newSignal(), membersChanged: newSignal(),
		started: make(chan struct{}), caughtUp: make(chan struct{}),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	hooks := config.Hooks
	if config.Holds {
		n.holds = &probe.Holds{}
		hooks = append([]probe.Hook{n.holds}, hooks...)
	}
	n.probe = probe.New(config.Name, hooks...)
	if err := n.assemble(); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", config.Name, err), n.Close())
	}
	close(n.started)
	n.run(n.manageMembers)
	n.run(n.catchUp)
	n.run(n.join)
	n.run(n.refreshRules)
	if n.server != nil {
		n.run(n.serve)
	}
	return n, nil
}

// assemble makes the parts, the ones that others call first.
func (n *Node) assemble() (err error) {
	c := n.config
	publication := applier.Config{Probe: n.probe, Log: n.log}
	if n.managerLast() {
		publication.Gate = n.holdBack
	}
	n.applier = applier.New(publication)
	if n.throttle, err = wlm.New(wlm.Config{Switches: c.Switches, Probe: n.probe, Log: n.log, CountFault: c.CountFault}); err != nil {
		return err
	}
	n.applier.Before("wlm.settings", n.throttle.ApplySettings)
	n.applier.Listen("wlm", n.throttle.ClusterChanged)

	data := c.DataNode
	data.Node, data.Probe, data.Log, data.States, data.Completed = c.Name, n.probe, n.log, n.applier.State, n.throttle.Completed
	n.tasks = task.New(c.ID)
	data.Tasks = n.tasks
	n.data = datanode.New(data)
	n.coordinator = coordinator.New(coordinator.Config{
		Node: c.Name, States: n.applier, Peers: peers{n}, Throttle: n.throttle, Started: c.Started, Tasks: n.tasks, Probe: n.probe, Log: n.log,
	})
	n.applier.Start(cluster.Empty())

	n.replica, err = replica.Open(replica.Config{
		Name: c.Name, Address: c.Raft.Address, Listener: c.Raft.Listener, Dial: c.Raft.Dial, Store: c.Store,
		Bootstrap: c.Bootstrap, Timings: c.Timings, Resolve: n.resolve, Deliver: n.deliver, OnChange: n.raftChanged.fire, OnStop: n.stopped,
		Log: n.log, Probe: n.probe,
	})
	if err != nil {
		return err
	}
	n.gossip, err = gossip.Start(gossip.Config{
		Self: gossip.Member{
			Name: c.Name, ID: c.ID, Roles: roleNames(c.Roles), Address: c.Gossip.Address, Raft: c.Raft.Address, HTTP: c.HTTP.Address,
		},
		Network: c.Gossip.Network, Key: c.Gossip.Key, Timings: c.Gossip.Timings,
		Handler: n.handle, OnChange: n.membersChanged.fire, Log: n.log,
	})
	if err != nil {
		return err
	}
	if c.HTTP.Listener != nil {
		api := c.REST
		api.Cluster, api.Searcher, api.Permits, api.Outcomes = n, n, n.throttle.Permits, n.coordinator.Outcomes
		if c.Front != nil {
			api.Cluster, api.Searcher = c.Front(n, n)
		}
		api.Contexts, api.Tasks = n.coordinator, n.tasks
		api.ClusterName, api.Probe, api.Log, api.Holds, api.Pool = c.ClusterName, n.probe, n.log, n.holds, n.pool
		handler, err := rest.New(api)
		if err != nil {
			return err
		}
		n.server = rest.NewServer(handler)
		n.server.ConnState = n.countConnection
	}
	return nil
}

func (n *Node) run(f func()) {
	n.work.Add(1)
	go func() {
		defer n.work.Done()
		f()
	}()
}

// deliver hands a version from the replica to the applier.
func (n *Node) deliver(s *cluster.State, _ uint64) error { return n.applier.Enqueue(s) }

// stopped hears that the replica cannot go on. The node keeps serving searches
// from the state that it has, and says so.
func (n *Node) stopped(err error) {
	n.log.Error("the replica stopped: this node applies no further changes", "error", err)
	if n.config.OnStop != nil {
		n.config.OnStop(err)
	}
}

// serve runs the HTTP server until the node closes.
func (n *Node) serve() {
	err := n.server.Serve(n.config.HTTP.Listener)
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		n.log.Error("the HTTP server stopped", "error", err)
	}
}

func (n *Node) countConnection(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		n.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		n.conns.Done()
	}
}

// resolve returns the raft address that gossip knows for a member.
func (n *Node) resolve(name string) (address string, known bool) {
	select {
	case <-n.started:
	default:
		return "", false
	}
	m, known := n.gossip.Member(name)
	return m.Raft, known && m.Alive
}

// seedPatience is how many tries at the seeds, over more than a second, go by
// before the log says that none answers.
const seedPatience = 8

// join keeps trying the seeds until one answers. gossip tries again by itself
// from then on.
func (n *Node) join() {
	if len(n.config.Seeds) == 0 {
		return
	}
	tries := 0
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		joined, err := n.gossip.Join(n.ctx, n.config.Seeds)
		if joined > 0 || n.ctx.Err() != nil {
			return
		}
		if errors.Is(err, gossip.ErrNameTaken) {
			n.stopped(err)
			return
		}
		level := slog.LevelDebug
		if tries++; tries == seedPatience {
			level = slog.LevelWarn
		}
		n.log.Log(n.ctx, level, "no member answers yet at the addresses to join; trying on", "addresses", n.config.Seeds, "error", err)
		if !n.sleep(wait) {
			return
		}
	}
}

// sleep waits, and says whether the node is still open.
func (n *Node) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// refreshRules takes a fresh view of the rules now and then, from when the node
// is ready: before, it knows neither the rules nor how often.
func (n *Node) refreshRules() {
	select {
	case <-n.caughtUp:
	case <-n.ctx.Done():
		return
	}
	for n.sleep(n.State().RuleRefresh()) {
		n.coordinator.RefreshRules()
	}
}

// Name returns the node's name.
func (n *Node) Name() string { return n.config.Name }

// Leader returns the name of the leader as this node knows it, or "".
func (n *Node) Leader() string {
	name, _, _ := n.replica.Leader()
	return name
}

// Holds returns the node's holds, or nil if it was started without.
func (n *Node) Holds() *probe.Holds { return n.holds }

// State returns the state that this node has published. It never blocks.
func (n *Node) State() *cluster.State { return n.applier.State() }

// Throttle, Coordinator and Data return the node's parts, for those who look
// into a node: checks, reports and tests.
func (n *Node) Throttle() *wlm.Throttle { return n.throttle }

// Coordinator returns the node's coordinator; see [Node.Throttle].
func (n *Node) Coordinator() *coordinator.Coordinator { return n.coordinator }

// Data returns the node's data node; see [Node.Throttle].
func (n *Node) Data() *datanode.DataNode { return n.data }

// NewID returns a new random id of the node.
func (n *Node) NewID() string { return n.ids.next() }

// Now returns the time for a stamp.
func (n *Node) Now() time.Time { return n.config.Now() }

// Search runs a search with this node as its coordinator, as its HTTP API
// does. It refuses while the node is not ready.
func (n *Node) Search(ctx context.Context, r coordinator.Request) (*coordinator.Response, error) {
	if err := n.notReady(); err != nil {
		return nil, err
	}
	return n.coordinator.Search(ctx, r)
}

// notReady returns the refusal of a node that has not caught up, or nil.
func (n *Node) notReady() error {
	if n.ready.Load() {
		return nil
	}
	return cluster.Errorf(cluster.ClusterBlock, "node [%s] has not caught up with the cluster since its start", n.config.Name)
}

// Close stops the node at once, as a process that ends: it does not leave the
// cluster. It may be called again.
func (n *Node) Close() error {
	n.stop()
	if n.holds != nil {
		n.holds.Close()
	}
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Close())
	} else if n.config.HTTP.Listener != nil {
		errs = append(errs, n.config.HTTP.Listener.Close())
	}
	if n.coordinator != nil {
		n.coordinator.Close()
	}
	if n.replica != nil {
		errs = append(errs, n.replica.Close())
	} else {
		errs = append(errs, closeOnce(n.config.Raft.Listener))
	}
	if n.gossip != nil {
		errs = append(errs, n.gossip.Close())
	} else {
		errs = append(errs, closeOnce(n.config.Gossip.Network.Listener), closeOnce(n.config.Gossip.Network.Packets))
	}
	if n.applier != nil {
		n.applier.Close()
	}
	if n.data != nil {
		n.data.Close()
	}
	n.work.Wait()
	n.conns.Wait()
	return errors.Join(errs...)
}

// closeOnce closes what a part was handed that did not start, and that the part
// may have closed already.
func closeOnce(c io.Closer) error {
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Leave takes the node out of the cluster: out of raft, out of the state, and
// out of gossip. Shards that live on it are lost. The node still has to be
// closed. It ends with ctx and with Close; another Leave after it is refused, and
// so is that of a node whose name another one bears.
func (n *Node) Leave(ctx context.Context) error {
	if err := n.sayLeaving(); err != nil {
		return err
	}
	left := make(chan struct{})
	var repeating sync.WaitGroup
	repeating.Go(func() { n.repeatLeaving(left) })
	_, err := n.askLeader(ctx, kindLeave, []byte(n.config.Name), func(ctx context.Context) ([]byte, error) {
		return nil, n.takeOut(ctx, n.config.Name)
	})
	close(left)
	repeating.Wait()
	return errors.Join(err, n.gossip.Leave(ctx))
}

// sayLeaving tells gossip that this node is about to leave: it has no role.
func (n *Node) sayLeaving() error {
	return n.gossip.UpdateSelf(gossip.Member{ID: n.config.ID, Raft: n.config.Raft.Address, HTTP: n.config.HTTP.Address})
}

// repeatLeaving says again and again, until left is closed, that this node
// leaves. The leader waits to hear it, and of six members gossip passes one over
// in three of a thousand cases, until the next exchange of everything.
func (n *Node) repeatLeaving(left <-chan struct{}) {
	for n.await(time.Second, left, nil) {
		select {
		case <-left:
			return
		default:
		}
		if n.sayLeaving() != nil { // gossip is closed
			return
		}
	}
}
