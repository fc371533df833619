package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/wlm"
)

// world is node n1 with its throttle and coordinator, and data nodes d1, d2 ...
// that it reaches by a call. Changes of the state are applied at once, in the
// applier's order.
type world struct {
	t        testing.TB
	holds    probe.Holds
	throttle *wlm.Throttle
	nodes    map[string]*datanode.DataNode
	asked    atomic.Int64 // requests that reached a data node
	c        *coordinator.Coordinator
	log      *journal

	mu    sync.Mutex
	state *cluster.State
	onces map[string]int // releases of each search
}

// options say how a world differs from one with three data nodes and an index
// logs of six shards without service time.
type options struct {
	dataNodes int
	shards    int
	service   cluster.ServiceTime
	wlm       wlm.Config
	pool      datanode.Config // Workers and Queue
	config    coordinator.Config
	hook      func(probe.Event)                         // sees every step of n1
	peers     func(coordinator.Peers) coordinator.Peers // stands before the data nodes
	quiet     bool                                      // no probe at all
}

func newWorld(t testing.TB, o options) *world {
	w := build(t, o)
	t.Cleanup(w.close)
	return w
}

// build returns a world that its caller closes.
func build(t testing.TB, o options) *world {
	w := &world{t: t, nodes: map[string]*datanode.DataNode{}, state: cluster.Empty(), onces: map[string]int{}, log: &journal{}}
	if o.dataNodes == 0 {
		o.dataNodes = 3
	}
	if o.shards == 0 {
		o.shards = 6
	}
	hooks := []probe.Hook{probe.HookFunc(w.note), &w.holds}
	if o.hook != nil {
		hooks = append(hooks, probe.HookFunc(o.hook))
	}
	if o.quiet {
		hooks = nil
	}
	o.wlm.Probe = probe.New("n1", hooks...)
	o.wlm.Log = slog.New(slog.NewTextHandler(w.log, nil))
	var err error
	w.throttle, err = wlm.New(o.wlm)
	require.NoError(t, err)
	enabled := string(cluster.Enabled)
	w.apply(&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled}}})
	for i := range o.dataNodes {
		name := fmt.Sprintf("d%d", i+1)
		w.apply(&cluster.PutNode{Node: cluster.Node{Name: name, ID: name, Roles: []cluster.Role{cluster.Data}}})
		config := o.pool
		config.Node, config.Seed, config.States, config.Completed = name, 7, w.State, w.throttle.Completed
		if !o.quiet {
			config.Probe = probe.New(name, &w.holds)
		}
		w.nodes[name] = datanode.New(config)
	}
	w.apply(&cluster.CreateIndex{Name: "logs", Shards: o.shards, ServiceTime: o.service})
	o.config.Node, o.config.States, o.config.Throttle = "n1", w, w.throttle
	o.config.Probe, o.config.Log = o.wlm.Probe, o.wlm.Log
	o.config.Peers = peers(w.ask)
	if o.peers != nil {
		o.config.Peers = o.peers(o.config.Peers)
	}
	w.c = coordinator.New(o.config)
	return w
}

func (w *world) close() {
	w.holds.Close()
	w.c.Close()
	for _, d := range w.nodes {
		d.Close()
	}
}

// State implements coordinator.States.
func (w *world) State() *cluster.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *world) apply(commands ...cluster.Command) {
	for _, c := range commands {
		prev := w.State()
		next, err := cluster.Apply(prev, c)
		require.NoError(w.t, err)
		require.NoError(w.t, w.throttle.ApplySettings(prev, next))
		w.mu.Lock()
		w.state = next
		w.mu.Unlock()
		require.NoError(w.t, w.throttle.ClusterChanged(prev, next))
	}
}

// group makes a group whose id is "id-" and its name.
func (w *world) group(name string, by cluster.Attribute, limit int64) {
	w.apply(&cluster.CreateGroup{Group: cluster.Group{
		ID: "id-" + name, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.01},
		Throttling: &cluster.Throttling{Attribute: by, NodeLimit: &limit},
	}})
}

func (w *world) note(e probe.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Step == probe.Released {
		w.onces[e.Search]++
	}
}

// releases returns how often a search gave its permit back.
func (w *world) releases(search string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.onces[search]
}

func (w *world) ask(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	w.asked.Add(1)
	d := w.nodes[node]
	if d == nil {
		return nil, errors.New("no such node")
	}
	return d.Search(ctx, "n1", r)
}

// peers makes a function Peers.
type peers func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error)

func (f peers) Search(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	return f(ctx, node, r)
}

// answer is what came of a search.
type answer struct {
	response *coordinator.Response
	err      error
}

func (w *world) search(ctx context.Context, r coordinator.Request) answer {
	response, err := w.c.Search(ctx, r)
	return answer{response, err}
}

// start begins a search on a goroutine of its own.
func (w *world) start(ctx context.Context, r coordinator.Request) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- w.search(ctx, r) }()
	return done
}

// as returns a context that carries a user.
func as(ctx context.Context, user string, roles ...string) context.Context {
	return wlm.WithPrincipal(ctx, wlm.Principal{User: user, Roles: roles})
}

// in returns a search of index logs in a group.
func in(id, group string) coordinator.Request {
	return coordinator.Request{ID: id, Index: "logs", GroupHeader: "id-" + group, Query: []byte("q"), Size: 10}
}

// held returns the permits of a group.
func (w *world) held(group string) int {
	for _, p := range w.throttle.Permits() {
		if p.Group == "id-"+group {
			return int(p.Held)
		}
	}
	return 0
}

// outcomes returns the outcomes of a group.
func (w *world) outcomes(group string) coordinator.GroupOutcomes {
	return w.outcomesOf("id-" + group)
}

func (w *world) outcomesOf(id string) coordinator.GroupOutcomes {
	for _, o := range w.c.Outcomes() {
		if o.Group == id {
			return o
		}
	}
	return coordinator.GroupOutcomes{Group: id}
}

func (w *world) stats(id string) wlm.GroupStats {
	all, err := w.throttle.Stats([]string{id})
	require.NoError(w.t, err)
	return all[0]
}

// idle checks that nothing is left of any search.
func (w *world) idle() {
	require.Empty(w.t, w.throttle.Permits(), "permits are left")
	require.Zero(w.t, w.c.Running(), "searches are left")
}

func throttled(t testing.TB, a answer) {
	var rejection *wlm.Rejection
	require.ErrorAs(t, a.err, &rejection)
	require.Equal(t, cluster.TooMany, cluster.KindOf(a.err))
	require.Nil(t, a.response)
}

func completed(t testing.TB, a answer) *coordinator.Response {
	require.NoError(t, a.err)
	require.NotNil(t, a.response)
	return a.response
}

// journal keeps a log.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// newPool returns a data node of a world with a small pool.
func newPool(t testing.TB, w *world, name string, workers, queue int) *datanode.DataNode {
	d := datanode.New(datanode.Config{Node: name, Workers: workers, Queue: queue, States: w.State, Completed: w.throttle.Completed})
	t.Cleanup(d.Close)
	return d
}

// carrier returns the throttle's config with principal_carrier: header.
func carrier(t testing.TB) wlm.Config { return switched(t, "principal_carrier", "header") }

// switched returns the throttle's config of profile reviewed with one switch
// set.
func switched(t testing.TB, name, value string) wlm.Config {
	s, err := wlm.Profile(wlm.ProfileReviewed)
	require.NoError(t, err)
	s, err = s.With(name, value)
	require.NoError(t, err)
	return wlm.Config{Switches: s}
}

// profile returns the throttle's config of a profile.
func profile(t testing.TB, name string) wlm.Config {
	s, err := wlm.Profile(name)
	require.NoError(t, err)
	return wlm.Config{Switches: s}
}
