package coordinator

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/wlm"
)

// States is where the coordinator reads the node's published state.
type States interface {
	State() *cluster.State
}

// Peers asks data nodes, the coordinator's own node among them.
type Peers interface {
	// Search asks a node and returns its answer. An error is the failure of
	// every shard that was asked for; a *cluster.Error in its chain is kept as
	// it is. It is called on a goroutine of the coordinator's, and should return
	// soon after ctx ends, having told the node to stop: no search waits for
	// that, but [Coordinator.Close] does. The request is not changed afterwards
	// and must not be.
	Search(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error)
}

// Sender is what Peers are that can ask a node without a goroutine that waits
// for its answer.
type Sender interface {
	// Send asks a node like Search, but returns at once. Without an error k is
	// told the outcome exactly once, on any goroutine, at times before Send
	// returns; without Sent either, the node has to be asked by Search.
	Send(node string, r *wire.SearchRequest, k Answered) (Sent, error)
}

// Answered is told the outcome of a request. It does not block.
type Answered interface {
	Answered(*wire.SearchAnswer, error)
}

// Sent is a request under way.
type Sent interface {
	// Cancel tells the node to stop. It must not block, and does nothing once
	// the outcome was told.
	Cancel()
}

// Names of the headers that a message to a data node carries, beside those of
// [wlm.Throttle.CarrierHeaders]. There are no others.
const (
	HeaderOpaqueID = "X-Opaque-Id"
	HeaderGroup    = "workloadGroupId"
)

// DefaultCalls is how many requests to data nodes are under way at the most,
// unless a Config says otherwise.
const DefaultCalls = 65536

// Config is what a coordinator is made of. Node, States, Peers and Throttle are
// required.
type Config struct {
	Node     string // the node's name
	States   States
	Peers    Peers
	Throttle *wlm.Throttle

	// Calls bounds the requests to data nodes that are under way at once, over
	// all searches; shards beyond it fail with a rejection. 0: DefaultCalls.
	Calls int

	// Started listeners hear of each admitted search, in order, before
	// anything is done for it. An error or a panic of one is logged and changes
	// nothing else.
	Started []func(ctx context.Context, r Request) error
	// Ended listeners hear of each admitted search, in order, once its end is
	// decided and before its permit is released, and get its answer or its
	// error. They must not change the answer. An error or a panic of one is
	// logged and changes nothing else, and neither does the end of ctx by then.
	Ended []func(ctx context.Context, r Request, response *Response, err error) error

	// Tasks lists the searches while they run, and those of its data node; nil:
	// nobody does.
	Tasks *task.Registry

	Probe *probe.Probe
	Log   *slog.Logger // nil: nothing is logged
}

func (c Config) withDefaults() Config {
	if c.Calls == 0 {
		c.Calls = DefaultCalls
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Check returns all faults of a config, or nil.
func (c Config) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Node == "" {
		fault("a coordinator needs its node's name")
	}
	if c.States == nil {
		fault("the coordinator of %q needs a source of states", c.Node)
	}
	if c.Peers == nil {
		fault("the coordinator of %q needs peers", c.Node)
	}
	if c.Throttle == nil {
		fault("the coordinator of %q needs a throttle", c.Node)
	}
	if c.Calls < 0 {
		fault("the coordinator of %q cannot have %d calls under way: 1 or more", c.Node, c.Calls)
	}
	return errors.Join(faults...)
}

// Coordinator leads the searches of one node. Make it with [New].
type Coordinator struct {
	config   Config
	sender   Sender // config.Peers, if they are one
	rules    atomic.Pointer[rules]
	plan     atomic.Pointer[plan] // the last one made
	number   atomic.Uint64        // of searches without an id
	session  uint64               // tells its contexts from those of others, and of its former life
	contexts atomic.Uint64        // opened
	outcomes ledger
	couriers couriers
	closing  chan struct{} // closed by Close

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed once it is closing and running is 0
}

// New returns a coordinator; it panics with what [Config.Check] finds. Without
// a call of [Coordinator.RefreshRules] the first search takes the view of the
// rules.
func New(c Config) *Coordinator {
	if err := c.Check(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	co := &Coordinator{config: c, session: session(c.Node), closing: make(chan struct{}), idle: make(chan struct{})}
	co.sender, _ = c.Peers.(Sender)
	co.couriers.limit, co.couriers.post, co.couriers.run = c.Calls, co.post, co.deliver
	return co
}

// session returns a number that no other coordinator has, nor this node's next
// one.
func session(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt([]byte(node+" "), time.Now().UnixNano(), 10)) // a hash takes everything
	return h.Sum64()
}

func (c *Coordinator) newContext() wire.ContextID {
	return wire.ContextID{Session: c.session, Number: c.contexts.Add(1)}
}

// Search leads one search from its admission to its answer. The error is a
// [*wlm.Rejection] (429), a [*cluster.Error], a [*SearchError], or wraps the
// cause of ctx's end when that came before the search's end was decided, which
// is a [*cluster.Error] of kind [task.Cancelled] if the search's task was
// cancelled or it took longer than it may.
func (c *Coordinator) Search(ctx context.Context, r Request) (*Response, error) {
	return c.lead(ctx, r, nil)
}

// lead is Search for a search that another one may have started.
func (c *Coordinator) lead(ctx context.Context, r Request, parent *search) (response *Response, err error) {
	s := newSearch(c, r)
	s.parent = parent
	if !c.enter() {
		c.outcomes.count(cluster.DefaultGroupID, failed, false)
		return nil, errClosing(c.config.Node)
	}
	defer c.leave()
	defer func() { s.task.End() }()
	defer s.settle(&response, &err)
	defer s.giveBack(&response, &err)
	defer s.conclude(ctx, &response, &err)
	return s.run(ctx)
}

// RefreshRules takes a new view of the rules from the published state. The node
// calls it once before its first search and then at the refresh interval.
func (c *Coordinator) RefreshRules() { c.rules.Store(c.rules.Load().refresh(c.config.States.State())) }

// RulesVersion returns the version of the state that the view of the rules was
// taken from; 0 before there is one.
func (c *Coordinator) RulesVersion() uint64 {
	if v := c.rules.Load(); v != nil {
		return v.version
	}
	return 0
}

// Outcomes returns how the searches of each group ended, sorted by id; a search
// that belongs to a group that its state did not have is the default group's.
func (c *Coordinator) Outcomes() []GroupOutcomes { return c.outcomes.list() }

// Running returns how many searches have not returned.
func (c *Coordinator) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// Close ends every search (503) and every request to a data node, and returns
// when the last of them, and every courier, has ended; whoever holds a step of
// a search lets it go first. It may be called more than once.
func (c *Coordinator) Close() {
	c.mu.Lock()
	if !c.closed() {
		close(c.closing)
		if c.running == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	<-c.idle
	c.couriers.close()
}

func (c *Coordinator) closed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

func (c *Coordinator) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return false
	}
	c.running++
	return true
}

func (c *Coordinator) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.closed() {
		close(c.idle)
	}
}

// tag returns the id of the group that the view of the rules gives a request,
// or "".
func (c *Coordinator) tag(ctx context.Context, state *cluster.State, index string) string {
	if state.Mode() == cluster.Disabled {
		return ""
	}
	view := c.rules.Load()
	if view == nil {
		c.RefreshRules()
		view = c.rules.Load()
	}
	principal, _ := wlm.PrincipalFrom(ctx)
	return view.tag(principal, index)
}

// guard calls f and says whether it returned; a panic is logged.
func (c *Coordinator) guard(what, search string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			c.logPanic(what, search, v)
			ok = false
		}
	}()
	f()
	return true
}

func (c *Coordinator) logPanic(what, search string, v any) {
	c.config.Log.Error("a panic was caught", "in", what, "search", search, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}
