package datanode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

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
	config Config
	stream uint64      // hash of what all its draws share
	closed atomic.Bool // set under the lock

	mu     sync.Mutex
	pool   pool
	names  occurrences
	kept   kept
	asleep []*job        // whose calls wait; Close rouses them, since one channel for all would be dear to wait for
	spare  []sleeper     // of calls that wait no more
	calls  int           // searches that have not returned
	idle   chan struct{} // closed once it is closing and calls is 0
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
		config: c,
		stream: hashBytes(hashNumber(0, c.Seed), c.Node),
		idle:   make(chan struct{}),
		pool:   pool{workers: c.Workers, places: c.Queue},
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
	c := newCall(ctx, d, from, r)
	c.list()
	defer c.unlist()
	if err := c.ended(); err != nil {
		return nil, err
	}
	c.plan()
	served := false
	defer func() { d.release(r, c.used, !served) }()
	if err := c.serve(); err != nil {
		return nil, err
	}
	c.fill()
	d.config.Probe.At(probe.Event{Step: probe.DataNodeAnswer, Group: r.Group, Search: r.Search})
	if err := c.ended(); err != nil {
		return nil, err
	}
	served = true
	return &c.answer, nil
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

func (d *DataNode) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return false
	}
	d.calls++
	return true
}

func (d *DataNode) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	if d.calls == 0 && d.closed.Load() {
		close(d.idle)
	}
}

// Close ends every search with [ErrClosed] and returns when the last one has
// returned; whoever holds step datanode.answer lets it go first. It may be
// called more than once.
func (d *DataNode) Close() {
	d.mu.Lock()
	if !d.closed.Load() {
		d.closed.Store(true)
		for _, j := range d.asleep {
			j.rouse()
		}
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
	return Stats{Active: p.active, Queued: p.queue.Len(), Completed: p.completed, Rejected: p.rejected, Cancelled: p.cancelled}
}
