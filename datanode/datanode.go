package datanode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// ErrClosed is returned by [DataNode.Search] once [DataNode.Close] was called.
var ErrClosed = errors.New("the data node is closed")

// Config is what a data node is made of. Node and States are required.
type Config struct {
	Node    string // the node's name
	Workers int    // tasks served at once; 0: DefaultWorkers
	Queue   int    // tasks that wait at the most; 0: DefaultQueue
	Seed    uint64 // of all service times

	States func() *cluster.State // the node's published state; called once a search

	// Completed is told of each shard task that was served to the end, with
	// the group of its search; nil: nobody is. It is called on the goroutine of
	// the search, under no lock.
	Completed func(group string)

	// Tasks lists each shard of each search while it is served; nil: nobody
	// does. It is the one of the node's coordinator.
	Tasks *task.Registry

	Probe *probe.Probe
	Log   *slog.Logger // told, at level debug, of searches that met a full queue; nil: nobody is
}

// Defaults of a data node, those of OpenSearch's search pool on a large node.
const (
	DefaultWorkers = 64
	DefaultQueue   = 1000
)

func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	if c.Queue == 0 {
		c.Queue = DefaultQueue
	}
	if c.Completed == nil {
		c.Completed = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Check returns all faults of a config, or nil.
func (c Config) Check() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Node == "", "a data node needs a name")
	fault(c.States == nil, "data node %q needs a source of states", c.Node)
	fault(c.Workers < 0, "data node %q cannot have %d workers: 1 or more", c.Node, c.Workers)
	fault(c.Queue < 0, "data node %q cannot have a queue of %d: 1 or more", c.Node, c.Queue)
	return errors.Join(faults...)
}

// DataNode is one simulated data node. Make it with [New].
type DataNode struct {
	config  Config
	stream  uint64        // hash of what all its draws share
	closing chan struct{} // closed by Close

	mu    sync.Mutex
	pool  pool
	names occurrences
	kept  kept
	calls int           // searches that have not returned
	idle  chan struct{} // closed once it is closing and calls is 0
}

// New returns a data node; it panics with what [Config.Check] finds. It starts
// nothing: its only resource is its callers' goroutines, and [DataNode.Close]
// ends their calls.
func New(c Config) *DataNode {
	if err := c.Check(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	return &DataNode{
		config:  c,
		stream:  hashBytes(hashNumber(0, c.Seed), c.Node),
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
		pool:    pool{workers: c.Workers, places: c.Queue},
	}
}

// Search works on a request that a coordinator, from, sends, and returns one
// entry for each shard that it asks for, in the order asked. A shard that is
// not here, that found the queue full, or whose context is missing, has its
// failure in its entry.
//
// The error wraps ctx's when ctx ends before all shards are served or while
// the answer is held at step datanode.answer, or the task is cancelled; or it
// is [ErrClosed].
func (d *DataNode) Search(ctx context.Context, from string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	if !d.enter() {
		return nil, ErrClosed
	}
	defer d.leave()
	switch r.Phase {
	case wire.Query, wire.OpenScroll, wire.OpenPoint:
	default:
		return d.housekeep(r), nil
	}
	ctx, listed := d.begin(ctx, from, r)
	defer listed.End()
	if ctx.Err() != nil {
		return nil, d.cancelled(ctx, r)
	}
	answer := &wire.SearchAnswer{Shards: make([]wire.ShardAnswer, len(r.Shards))}
	j := &job{tasks: make([]shardTask, len(r.Shards)), most: r.Concurrency}
	used := d.plan(from, r, j, answer)
	served := false
	defer func() { d.release(r, used, !served) }()
	if err := d.serve(ctx, r, j); err != nil {
		return nil, err
	}
	d.fill(r, j, used, answer)
	d.config.Probe.At(probe.Event{Step: probe.DataNodeAnswer, Group: r.Group, Search: r.Search})
	if ctx.Err() != nil {
		return nil, d.cancelled(ctx, r)
	}
	served = true
	return answer, nil
}

// Names of the actions that shards are listed under, as OpenSearch's.
const (
	actionQuery  = "indices:data/read/search[phase/query]"
	actionScroll = "indices:data/read/search[phase/query/scroll]"
	actionOpen   = "indices:data/read/search[open_context]"
)

// headerOpaqueID is the header whose value a task shows.
const headerOpaqueID = "X-Opaque-Id"

// begin lists the shards of a request.
func (d *DataNode) begin(ctx context.Context, from string, r *wire.SearchRequest) (context.Context, *task.Task) {
	if d.config.Tasks == nil {
		return ctx, nil
	}
	s := task.Spec{Action: actionQuery, Count: len(r.Shards), Describe: func(i int) string { return "shardId[" + r.Shards[i].String() + "]" }}
	switch {
	case r.Phase == wire.OpenPoint:
		s.Action = actionOpen
	case r.Context != (wire.ContextID{}) && r.Phase == wire.Query:
		s.Action = actionScroll
	}
	if r.Task != 0 {
		s.Parent = task.ID{Node: from, Number: r.Task}
		if n := d.config.States().Node(from); n != nil {
			s.Parent.Node = n.ID
		}
	}
	for _, h := range r.Headers {
		if h.Name == headerOpaqueID {
			s.OpaqueID = h.Value
		}
	}
	return d.config.Tasks.Begin(ctx, s)
}

func (d *DataNode) cancelled(ctx context.Context, r *wire.SearchRequest) error {
	return fmt.Errorf("search %s on data node %s: %w", r.Search, d.config.Node, context.Cause(ctx))
}

// plan makes a task of each shard that is here, with its service time, and
// writes the failure of each that is not. It returns the context of each shard,
// or nil if the request has none.
func (d *DataNode) plan(from string, r *wire.SearchRequest, j *job, answer *wire.SearchAnswer) (used []*keptShard) {
	state := d.config.States()
	s := stream(0)
	if r.ServiceTime < 0 && r.Phase != wire.OpenPoint {
		s = d.streamOf(from, r.Search)
	}
	if r.Context != (wire.ContextID{}) {
		used = make([]*keptShard, len(r.Shards))
	}
	var x *cluster.Index
	for i, shard := range r.Shards {
		if x == nil || x.Name != shard.Index {
			x = state.Index(shard.Index)
		}
		answer.Shards[i] = wire.ShardAnswer{Shard: shard, Failure: d.refusal(x, shard, r)}
		if used != nil && answer.Shards[i].Failure == nil {
			used[i], answer.Shards[i].Failure = d.keep(r, shard, state)
		}
		if answer.Shards[i].Failure != nil || r.Phase == wire.OpenPoint {
			continue
		}
		t := &j.tasks[i]
		t.job, t.progress, t.service = j, planned, r.ServiceTime
		if r.ServiceTime < 0 {
			from := x.ServiceTime
			if r.Service.Distribution != "" {
				from = r.Service
			}
			t.service = draw(from, stream(hashNumber(hashBytes(uint64(s), shard.Index), uint64(shard.Shard))))
		}
	}
	return used
}

// refusal returns why a shard cannot be searched here, or nil.
func (d *DataNode) refusal(x *cluster.Index, shard wire.ShardID, r *wire.SearchRequest) *cluster.Error {
	switch {
	case x == nil:
		return cluster.Errorf(cluster.IndexNotFound, "no such index [%s]", shard.Index)
	case shard.Shard < 0 || shard.Shard >= x.Shards() || x.ShardNodes[shard.Shard] != d.config.Node:
		return cluster.Errorf(wire.ShardNotFound, "no such shard %v on node [%s]", shard, d.config.Node)
	case r.From < 0 || r.Size < 0 || r.From > MaxResultWindow || r.Size > MaxResultWindow-r.From:
		return cluster.Errorf(cluster.IllegalArgument, "Result window is too large, from + size must be less than or equal to: [%d] but was [%d]", MaxResultWindow, r.From+r.Size)
	}
	return nil
}

// streamOf returns where the draws of a search begin.
func (d *DataNode) streamOf(from, search string) stream {
	name := hashBytes(hashBytes(d.stream, from), search)
	d.mu.Lock()
	defer d.mu.Unlock()
	return stream(hashNumber(name, d.names.count(name)))
}

// serve returns once every task of a job is over, having told of those that
// were served.
func (d *DataNode) serve(ctx context.Context, r *wire.SearchRequest, j *job) error {
	now := time.Now()
	d.mu.Lock()
	d.pool.submit(j, now)
	next := d.pool.advance(j, now)
	open := j.open
	d.mu.Unlock()
	if open > 0 {
		if err := d.wait(ctx, r, j, next); err != nil {
			d.tell(r, j)
			return err
		}
	}
	d.tell(r, j)
	return nil
}

// wait waits until no task of a job is open. next is when its first running
// one is over.
func (d *DataNode) wait(ctx context.Context, r *wire.SearchRequest, j *job, next time.Time) error {
	timer := newTimer()
	defer timer.stop()
	for open := true; open; {
		timer.set(next)
		select {
		case <-timer.c:
		case <-j.wake:
		case <-ctx.Done():
			return d.abandon(j, d.cancelled(ctx, r))
		case <-d.closing:
			return d.abandon(j, ErrClosed)
		}
		now := time.Now()
		d.mu.Lock()
		next = d.pool.advance(j, now)
		open = j.open > 0
		d.mu.Unlock()
	}
	return nil
}

// abandon frees what a job holds and returns why.
func (d *DataNode) abandon(j *job, why error) error {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool.abandon(j, now)
	return why
}

func (d *DataNode) tell(r *wire.SearchRequest, j *job) {
	for i := range j.tasks {
		if j.tasks[i].progress == done {
			d.config.Completed(r.Group)
		}
	}
}

// fill writes what each task found, or that it was refused.
func (d *DataNode) fill(r *wire.SearchRequest, j *job, used []*keptShard, answer *wire.SearchAnswer) {
	full := 0
	for i := range j.tasks {
		switch shard := r.Shards[i]; j.tasks[i].progress {
		case done:
			if used != nil && !used[i].point {
				answer.Shards[i] = find(shard, used[i].matches, used[i].taken, r.From+r.Size)
			} else {
				answer.Shards[i] = find(shard, placeOf(shard).matching(r.Query), 0, r.From+r.Size)
			}
		case refused:
			full++
			answer.Shards[i].Failure = cluster.Errorf(cluster.TooMany, "rejected execution of a search task of shard %v on node [%s]: all %d workers are busy and %d tasks wait", shard, d.config.Node, d.config.Workers, d.config.Queue)
		}
	}
	if full > 0 {
		d.config.Log.Debug("the queue was full", "search", r.Search, "group", r.Group, "rejected_tasks", full)
	}
}

func (d *DataNode) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed() {
		return false
	}
	d.calls++
	return true
}

func (d *DataNode) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	if d.calls == 0 && d.closed() {
		close(d.idle)
	}
}

func (d *DataNode) closed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// Close ends every search with [ErrClosed] and returns when the last one has
// returned; whoever holds step datanode.answer lets it go first. It may be
// called more than once.
func (d *DataNode) Close() {
	d.mu.Lock()
	if !d.closed() {
		close(d.closing)
		if d.calls == 0 {
			close(d.idle)
		}
	}
	d.mu.Unlock()
	<-d.idle
}

// Stats are counts of shard tasks: Active and Queued now, the others since the
// start. Each task ends in one of the latter three.
type Stats struct {
	Active    int
	Queued    int
	Completed uint64
	Rejected  uint64 // found the queue full
	Cancelled uint64 // the search ended before the task did
}

// Stats returns the counts of one moment.
func (d *DataNode) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.pool
	return Stats{Active: p.active, Queued: p.queued, Completed: p.completed, Rejected: p.rejected, Cancelled: p.cancelled}
}

// timer is a time.Timer that is made when it is first needed.
type timer struct {
	t *time.Timer
	c <-chan time.Time // nil while not set
}

func newTimer() *timer { return &timer{} }

// set lets the timer go off at an instant; never for the zero time.
func (t *timer) set(at time.Time) {
	switch {
	case at.IsZero():
		t.stop()
		t.c = nil
	case t.t == nil:
		t.t = time.NewTimer(time.Until(at))
		t.c = t.t.C
	default:
		t.t.Reset(time.Until(at))
		t.c = t.t.C
	}
}

func (t *timer) stop() {
	if t.t != nil {
		t.t.Stop()
	}
}
