package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/wlmsim/wlmsim/cluster"
)

// Replica is one node's copy of the state. It is made by [Open] and must be
// closed.
type Replica struct {
	cfg       Config
	raft      *raft.Raft
	transport *raft.NetworkTransport
	streams   *streams
	session   *session
	machine   *machine

	change  signal       // leader, term or configuration
	barrier signal       // something was committed that followers should hear of
	compact signal       // the log may be long enough for a snapshot
	ask     signal       // look whether a leader is missing
	rival   atomic.Int64 // when another server last asked for votes, in Unix nanoseconds

	inHand     chan struct{} // one for each proposal under way
	compacting chan struct{} // held by whoever takes a snapshot
	retry      uint64        // no snapshot before this index; guarded by compacting
	compacted  atomic.Uint64 // index of the newest snapshot whose compaction is done

	ready   atomic.Uint64 // term in which this leader has applied all earlier entries
	settled atomic.Uint64 // see AppliedIndex
	failure chan error    // why the replica must stop; one fits

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls that wait for raft
	workers sync.WaitGroup // goroutines that end with done
	done    chan struct{}  // closed when the shutdown begins
	down    chan struct{}  // closed when it is over
	watched chan struct{}  // closed when watch has ended
	ended   error          // of the shutdown; set before down is closed
}

// signal wakes one goroutine; signals that come before it wakes are one.
type signal chan struct{}

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Open starts a replica on what its store holds. It returns without waiting
// for a leader. Its errors are all faults of the config at once, [ErrInUse],
// the store's, and those of promise 3 for a snapshot.
func Open(c Config) (*Replica, error) {
	c = c.filled()
	if err := c.check(); err != nil {
		if c.Listener != nil {
			err = firstError(err, c.Listener.Close())
		}
		return nil, err
	}
	session, err := c.Store.open(c)
	if err != nil {
		return nil, firstError(err, c.Listener.Close())
	}
	r := &Replica{
		cfg: c, session: session, streams: newStreams(c), machine: newMachine(c.Deliver),
		change: make(signal, 1), barrier: make(signal, 1), compact: make(signal, 1), ask: make(signal, 1),
		inHand:     make(chan struct{}, max(1, c.Timings.SnapshotThreshold/4)),
		compacting: make(chan struct{}, 1),
		failure:    make(chan error, 1), done: make(chan struct{}), down: make(chan struct{}), watched: make(chan struct{}),
	}
	r.connect()
	if err := r.start(); err != nil {
		r.streams.cut()
		err = firstError(session.chained(err), r.transport.Close())
		r.streams.handlers.Wait()
		return nil, firstError(err, session.release())
	}
	return r, nil
}

// connect ties the parts together, before raft runs.
func (r *Replica) connect() {
	r.session.fatal, r.session.moved = r.stop, r.noticed
	r.machine.stop, r.machine.changed, r.machine.ending = r.stop, r.noticed, r.session.ended
	r.machine.applied = r.grown
	conf := &raft.NetworkTransportConfig{
		Logger:  r.raftLog(),
		Stream:  r.streams,
		MaxPool: 3, // raft's own advice
		Timeout: r.cfg.Timings.Request,
		// One message at a time to a follower. raft's pipeline, which has two,
		// can block for good when a follower refuses the first while the second
		// is being sent; then neither replication nor a shutdown goes on.
		MaxRPCsInFlight: 1,
	}
	if r.cfg.Resolve != nil {
		conf.ServerAddressProvider = resolver{r.cfg}
	}
	r.transport = raft.NewNetworkTransportWithConfig(conf)
}

// raftLog is where raft writes. What it says of the connections and writes
// that a shutdown takes away is of no interest.
func (r *Replica) raftLog() *bridge { return &bridge{to: r.cfg.Log, quiet: r.closing} }

// resolver tells raft's transport where a server is.
type resolver struct{ cfg Config }

// ServerAddr implements [raft.ServerAddressProvider]; an error makes raft use
// the configuration's address.
func (v resolver) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if string(id) == v.cfg.Name {
		return raft.ServerAddress(v.cfg.Address), nil
	}
	if address, known := v.cfg.Resolve(string(id)); known {
		return raft.ServerAddress(address), nil
	}
	return "", fmt.Errorf("no newer address of %s is known", id)
}

func (r *Replica) start() (err error) {
	conf := r.raftConfig()
	if err := r.bootstrap(conf); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := r.newRaft(conf); err != nil {
		return err
	}
	r.compacted.Store(r.session.snapped.Load())
	r.session.serving.Store(true)
	r.raft.RegisterObserver(raft.NewObserver(nil, false, r.observe))
	r.noticed() // of what happened before
	for _, work := range []func(){r.notify, r.tellFollowers, r.compactLog, r.seekLeader} {
		r.workers.Go(work)
	}
	go r.watch()
	return nil
}

func (r *Replica) raftConfig() *raft.Config {
	conf, t := raft.DefaultConfig(), r.cfg.Timings
	conf.LocalID = raft.ServerID(r.cfg.Name)
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = t.Heartbeat, t.Election, t.Lease
	conf.CommitTimeout = t.Commit
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs
	conf.Logger = r.raftLog()
	conf.NoLegacyTelemetry = true
	// A removed server goes on as a follower that nobody calls: who runs the
	// node decides when it ends, and raft's own end would leave calls waiting.
	conf.ShutdownOnRemove = false
	return conf
}

func (r *Replica) bootstrap(conf *raft.Config) error {
	if len(r.cfg.Bootstrap) == 0 {
		return nil
	}
	var servers []raft.Server
	for _, s := range r.cfg.Bootstrap {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		servers = append(servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s.Name), Address: raft.ServerAddress(s.Address)})
	}
	err := raft.BootstrapCluster(conf, r.session, r.session, faultySnapshots{r.session}, r.transport, raft.Configuration{Servers: servers})
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil
	}
	return err
}

// newRaft starts raft, which panics on a log that it cannot read.
func (r *Replica) newRaft(conf *raft.Config) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("start raft: %v", p)
		}
		if cause := r.machine.failure.Load(); cause != nil {
			err = *cause // raft tries an older snapshot and then says less
		}
	}()
	r.raft, err = raft.NewRaft(conf, r.machine, r.session, r.session, faultySnapshots{r.session}, r.transport)
	return err
}

// observe sees what raft does, on raft's own goroutines: it only raises
// signals. It lets no observation through to a channel, which could drop it.
func (r *Replica) observe(o *raft.Observation) bool {
	switch o.Data.(type) {
	case raft.RequestVoteRequest:
		r.rival.Store(time.Now().UnixNano())
	case raft.RaftState: // of which becoming the leader calls for a barrier
		r.barrier.raise()
		r.noticed()
	case raft.LeaderObservation, raft.PeerObservation:
		r.noticed()
	}
	return false
}

func (r *Replica) noticed() {
	r.change.raise()
	r.ask.raise()
}

// notify calls OnChange.
func (r *Replica) notify() {
	for r.next(r.change) {
		r.cfg.OnChange()
	}
}

// next waits for a signal; false when the replica closes.
func (r *Replica) next(s signal) bool {
	select {
	case <-r.done:
		return false
	case <-s:
	}
	return !r.session.ended()
}

// tellFollowers follows changes with a barrier: the message that carries it
// tells the followers what is committed, which they would otherwise hear of
// after Timings.Commit. One barrier serves all changes that came before it.
// A new leader begins with two: one to commit what earlier leaders left, one
// to tell.
func (r *Replica) tellFollowers() {
	for r.next(r.barrier) {
		// A leader that is one no longer has nothing to tell.
		if r.prepare(r.session.term.Load()) == nil {
			_ = r.raft.Barrier(0).Error()
		}
	}
}

// prepare makes sure that the leader of a term has applied what earlier
// leaders acknowledged.
func (r *Replica) prepare(term uint64) error {
	if r.ready.Load() == term {
		return nil
	}
	if !r.leads(term) {
		return raft.ErrNotLeader
	}
	if err := r.raft.Barrier(0).Error(); err != nil {
		return err
	}
	r.ready.Store(term)
	return nil
}

// stop asks watch to end the replica. It never blocks: raft calls it.
func (r *Replica) stop(err error) {
	select {
	case r.failure <- err:
	default: // one reason is enough
	}
}

// watch shuts the replica down when it cannot go on.
func (r *Replica) watch() {
	defer close(r.watched)
	select {
	case err := <-r.failure:
		r.cfg.Log.Error("the replica stops", "node", r.cfg.Name, "error", err)
		r.shutdown()
		r.cfg.OnStop(err)
	case <-r.done:
	}
}

// Close shuts the replica down and waits for all its goroutines. The state
// stays readable. Further calls return the same.
func (r *Replica) Close() error {
	r.shutdown()
	<-r.watched
	return r.ended
}

// shutdown ends everything, in an order that leaves nobody waiting:
// connections first, so that nothing leaves the node any more; then the store
// takes no writes, so that a leader steps down and answers what it has in
// hand; only then raft, which would forget who waits; last the store.
func (r *Replica) shutdown() {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if !first {
		<-r.down
		return
	}
	close(r.done)
	r.streams.cut()
	r.session.end()
	r.stepDown()
	r.calls.Wait()
	r.workers.Wait()
	err := r.raft.Shutdown().Error() // closes the transport and the listener too
	r.streams.handlers.Wait()
	r.ended = firstError(err, r.session.release())
	close(r.down)
}

// stepDown makes raft write an entry, which the ended session refuses. A
// leader that is handing its leadership over refuses the entry first; then it
// takes until that is done or its lease is over.
func (r *Replica) stepDown() {
	for r.raft.State() == raft.Leader {
		if r.raft.Barrier(0).Error() == nil {
			panic("replica: a barrier was stored by a closed session")
		}
		if r.raft.State() == raft.Leader {
			time.Sleep(time.Millisecond)
		}
	}
}

func (r *Replica) closing() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// begin counts a call that waits for raft, unless the replica is closed.
func (r *Replica) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.calls.Add(1)
	}
	return !r.closed
}

// await runs f, which waits for raft, until it is done or ctx is. raft's
// futures know no context; f goes on without us and the shutdown waits for it.
func (r *Replica) await(ctx context.Context, f func() error) error {
	if !r.begin() {
		return ErrClosed
	}
	answer := make(chan error, 1)
	go func() {
		defer r.calls.Done()
		answer <- f()
	}()
	select {
	case err := <-answer:
		return r.explain(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain turns raft's errors into ours.
func (r *Replica) explain(err error) error {
	err = r.session.chained(err)
	failed, isStore := errors.AsType[*StoreError](err)
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return r.notLeader()
	case errors.Is(err, raft.ErrLeadershipLost):
		return fmt.Errorf("%w: the leadership was lost meanwhile", ErrOutcomeUnknown)
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	case isStore && failed.Begun && failed.Op.Kind == OpStoreLogs:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

func (r *Replica) notLeader() error {
	name, address, _ := r.Leader()
	if name == r.cfg.Name { // handing over, or not told yet
		name, address = "", ""
	}
	return &NotLeaderError{Name: name, Address: address}
}

// State returns the newest state that the log has made on this node. It is
// ahead of what the node has published.
func (r *Replica) State() *cluster.State { return r.machine.current.Load().state }
