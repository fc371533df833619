package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// The strategies.
const (
	DFS    = "dfs"    // every order, or every one within the bounds
	PCT    = "pct"    // random priorities that change now and then
	Random = "random" // every lane that can go, alike
	Replay = "replay" // one given schedule
)

// Strategies returns the names of the strategies that can be chosen, the
// default of one node first.
func Strategies() []string { return []string{DFS, PCT, Random} }

const (
	// DefaultTurns is how many turns an order may have unless Options say
	// otherwise: far more than a small program has.
	DefaultTurns = 2_000
	// DefaultDraws is how many schedules the strategies that draw execute
	// unless Options say otherwise.
	DefaultDraws = 10_000
	// DefaultClusterDraws is DefaultDraws for a whole cluster, which is built
	// anew for each.
	DefaultClusterDraws = 100
	// DefaultChanges is how often pct changes priorities in an execution of one
	// node unless Options say otherwise. In one of a whole cluster, where each
	// turn has a priority of its own, it does not.
	DefaultChanges = 2
	// MaxWorkers bounds the schedules that are executed at the same time.
	MaxWorkers = 16
	// MaxOutcomes bounds the outcomes that are told apart. A program with more
	// observes too much to be read.
	MaxOutcomes = 10_000
)

// ErrUsage is in the chain of an error that says that a file or a schedule does
// not fit what can be explored.
var ErrUsage = errors.New("cannot be explored")

func misfit(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}

// Options say how to explore. The zero value executes every order of one node,
// but for those that cannot differ, and random ones of a whole cluster.
type Options struct {
	Strategy string // "": DFS for one node, Random for a whole cluster, which has no DFS
	// Schedules is how many are executed at the most. 0: with DFS no bound,
	// else DefaultDraws, or DefaultClusterDraws.
	Schedules int
	// Preemptions bounds, with DFS, those of a schedule; with PCT it is how
	// often priorities change. Nil: no bound, and DefaultChanges, or none of a
	// whole cluster.
	Preemptions *int
	// Schedule is executed alone, whatever the strategy; nil: none is given.
	Schedule Schedule
	// Loose passes over turns of Schedule that cannot be taken, as those of a
	// similar file cannot.
	Loose bool
	// Until ends the exploration as soon as it says so. It is asked whenever
	// there is something new: an outcome, or a promise that does not hold. What
	// was found is not executed again then, so that nobody knows whether it
	// repeats. Nil: there is more to see.
	Until func(*Result) bool
	// NoReduction executes orders that cannot differ as well.
	NoReduction bool
	// Turns bounds an order; 0: DefaultTurns.
	Turns int
	// Workers is how many schedules are executed at the same time, each by nodes
	// of its own; the result does not depend on it. 0: as many as the process has
	// processors, at most MaxWorkers. In the exact lane, and of a whole cluster,
	// it is one: raft draws from a source that the process shares, so that
	// clusters side by side would move one another.
	Workers int
	// Profile to run under; "": the file's.
	Profile string
	// Path and Set are what the repeat command names: the file, and the
	// assignments that were made to it.
	Path string
	Set  []string
	// Context ends the exploration early when it is done; nil: none.
	Context context.Context
	// Box gives memory that outlives the process, of BoxSize bytes, in which
	// the turns of the executions under way are noted; see [Flight.Result]. It
	// begins with zeros. Nil: they are not.
	Box func(Flight) []byte
}

func (o Options) withDefaults(whole bool) Options {
	draws := DefaultDraws
	if whole {
		draws = DefaultClusterDraws
	}
	if o.Strategy == "" {
		o.Strategy = DFS
		if whole {
			o.Strategy = Random
		}
	}
	if o.Schedule != nil {
		o.Strategy = Replay
	}
	if o.Schedules == 0 && (o.Strategy == PCT || o.Strategy == Random) {
		o.Schedules = draws
	}
	if o.Turns == 0 {
		o.Turns = DefaultTurns
	}
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MaxWorkers)
	}
	if exact.Enabled || whole {
		o.Workers = 1
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	return o
}

// Check returns all faults of the options, or nil.
func (o Options) Check() error {
	var faults []error
	if o.Strategy != "" && !slices.Contains(Strategies(), o.Strategy) {
		faults = append(faults, fmt.Errorf("strategy %q is unknown: one of %v", o.Strategy, Strategies()))
	}
	if o.Schedules < 0 {
		faults = append(faults, fmt.Errorf("%d schedules: 1 or more, or 0 for no bound", o.Schedules))
	}
	if o.Preemptions != nil && *o.Preemptions < 0 {
		faults = append(faults, fmt.Errorf("%d preemptions: 0 or more", *o.Preemptions))
	}
	if o.Preemptions != nil && o.Strategy == Random {
		faults = append(faults, errors.New("a random walk has no bound on preemptions: use dfs or pct"))
	}
	if o.Turns < 0 || o.Turns > MaxTurns {
		faults = append(faults, fmt.Errorf("%d turns: between 1 and %d, or 0 for %d", o.Turns, MaxTurns, DefaultTurns))
	}
	if o.Workers < 0 || o.Workers > MaxWorkers {
		faults = append(faults, fmt.Errorf("%d workers: between 1 and %d, or 0 for one a processor", o.Workers, MaxWorkers))
	}
	return errors.Join(faults...)
}

// Run explores the explore: block of a checked file and returns what can
// happen. An error means that the exploration itself was not possible; what
// broke is in the result. At the end of [Options.Context] what was seen until
// then is returned with its error, undecided unless it broke. Runs of one node
// may stand side by side.
func Run(f *scenario.File, o Options) (*Result, error) {
	start := time.Now()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Profile == "" {
		o.Profile = f.Filled().Profile
	}
	f = f.For(o.Profile).Filled()
	if f.Explore == nil {
		return nil, misfit("the file has no explore: block")
	}
	o = o.withDefaults(Whole(f))
	t, err := explored(f, o)
	switch {
	case err == nil:
	case t == nil || o.Context.Err() == nil:
		return nil, err
	default:
		t.trouble = cmp.Or(t.trouble, "it was ended early")
	}
	r := t.result(o)
	r.WallSeconds = time.Since(start).Seconds()
	return r, err
}

// Whole says whether the explore: block of a file is about the whole cluster
// and not about one node.
func Whole(f *scenario.File) bool { return f.Explore != nil && f.Explore.Node == "" }

// explored explores a filled file and returns what was seen.
func explored(f *scenario.File, o Options) (*table, error) {
	t, err := newStage(f, o)
	if err != nil {
		return nil, err
	}
	note := func(*table, int) {}
	if o.Box != nil {
		box := o.Box(t.flight(&o))
		note = func(t *table, worker int) { t.noted(pageOf(box, worker)) }
	}
	note(t, 0)
	t.hire = func(number int) (*table, error) {
		one, err := newStage(f, o)
		if err == nil {
			note(one, number)
		}
		return one, err
	}
	return t, t.explore(o)
}

// newStage returns a table with what it takes to execute schedules of a file.
func newStage(f *scenario.File, o Options) (*table, error) {
	if !Whole(f) {
		w, err := prepare(f)
		if err != nil {
			return nil, err
		}
		return tableOf(w, o.Turns), nil
	}
	if o.Strategy == DFS {
		return nil, misfit("explore: strategy %s is for one node: a whole cluster has too many orders to try each; use %s or %s", DFS, Random, PCT)
	}
	x, err := newFleet(f, o.Turns)
	if err != nil {
		return nil, err
	}
	return x.table, nil
}

// prepare makes ready all that outlives executions of one node.
func prepare(f *scenario.File) (*world, error) {
	e := f.Explore
	w := &world{
		file: f, names: &names{seed: f.Seed, ids: map[creation]string{}}, lanes: map[string]int{}, deleted: map[string]bool{},
		log: slog.New(slog.DiscardHandler),
	}
	var err error
	if w.switches, err = switches(f); err != nil {
		return nil, err
	}
	if w.programs, err = compile(f); err != nil {
		return nil, err
	}
	if w.switches.PrincipalCarrier != wlm.CarrierContext {
		w.canary = "canary-" + w.names.id("canary", "", 1)
	}
	w.probe = probe.New(e.Node, w)
	if err := w.furnish(); err != nil {
		return nil, err
	}
	w.cast()
	return w, nil
}

// switches are the profile's, with those that the file sets one by one.
func switches(f *scenario.File) (wlm.Switches, error) {
	s, err := wlm.Profile(f.Profile)
	for _, name := range slices.Sorted(maps.Keys(f.Switches)) {
		if err == nil {
			s, err = s.With(name, f.Switches[name])
		}
	}
	return s, err
}

// furnish makes the state that every execution begins with.
func (w *world) furnish() error {
	w.based = execution{head: cluster.Empty(), made: map[string]int{}, rules: map[string]string{}, answers: map[string]any{}}
	w.execution = w.based
	e := w.file.Explore
	w.dataName = "d1"
	if e.Node == w.dataName {
		w.dataName = "d2"
	}
	settings := scenario.PutSettings{Persistent: w.file.Cluster.Settings}
	commands := []cluster.Command{
		&cluster.PutSettings{SettingsChange: settings.Change()},
		&cluster.PutNode{Node: cluster.Node{Name: e.Node, ID: w.names.id("node", e.Node, 1), Roles: []cluster.Role{cluster.Manager}}},
		&cluster.PutNode{Node: cluster.Node{Name: w.dataName, ID: w.names.id("node", w.dataName, 1), Roles: []cluster.Role{cluster.Data}}},
	}
	for _, name := range slices.Sorted(maps.Keys(w.file.Cluster.Indices)) {
		x := w.file.Cluster.Indices[name]
		commands = append(commands, &cluster.CreateIndex{Name: name, UUID: w.names.id("index", name, 1), Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster()})
	}
	for _, c := range commands {
		if err := w.propose(c, &writing{}); err != nil {
			return fmt.Errorf("build the cluster: %w", err)
		}
	}
	for i := range w.file.Groups {
		if err := w.found(&w.file.Groups[i]); err != nil {
			return fmt.Errorf("group %s: %w", w.file.Groups[i].Name, err)
		}
	}
	for i := range w.file.Rules {
		if err := w.putRule(&w.file.Rules[i], &writing{}); err != nil {
			return fmt.Errorf("rule %s: %w", w.file.Rules[i].Name, err)
		}
	}
	return nil
}

// found makes a group of the file, which may have one whatever the mode.
func (w *world) found(g *scenario.Group) error {
	op := w.begun(nil)
	err := w.createAnyway(g, op)
	w.conclude(op, err)
	return err
}

// cast makes the lanes and their actions, and carries out what of before: needs
// no node.
func (w *world) cast() {
	e := w.file.Explore
	w.study()
	folding := true
	for i := range e.Before {
		a := &e.Before[i]
		folding = folding && a.Request() != nil && a.Search == nil && a.GetStats == nil && a.GetGroups == nil
		if !folding {
			w.before = append(w.before, w.request(a, fmt.Sprintf("before.%d", i)))
			continue
		}
		r, op := request{action: a}, w.begun(a)
		err := w.write(a, op)
		w.conclude(op, err)
		r.answer(w, w.explain(err))
	}
	w.base = w.head
	holds := w.based.holds
	w.based, w.execution = w.execution, execution{}
	w.based.holds = holds
	var lanes []string
	for i, one := range e.Actors {
		lanes = append(lanes, one.Name)
		a := &actor{w: w, index: i}
		for k := range one.Value {
			x := &one.Value[k]
			r := w.request(x, fmt.Sprintf("%s.%d", one.Name, k))
			if slices.Contains(e.Together, one.Name) {
				r.along, r.more = k > 0, k < len(one.Value)-1
			}
			if x.Search != nil {
				w.lanes[r.search.ID] = i
				for k := range r.search.Lookups { // of which there is one, on the actor's goroutine
					w.lanes[coordinator.NestedName(r.search.ID, k)], a.nests = i, true
				}
			}
			a.actions = append(a.actions, r)
		}
		w.actors = append(w.actors, a)
	}
	w.actors = append(w.actors, &actor{w: w, index: len(lanes)})
	w.control = newController(append(lanes, applierLane))
	w.control.settled = w.settled
	w.aim()
}

// study looks at what the program as a whole can do.
func (w *world) study() {
	e := w.file.Explore
	each := func(yield func(*scenario.Action, bool) bool) {
		for i := range e.Before {
			if !yield(&e.Before[i], false) {
				return
			}
		}
		for _, actor := range e.Actors {
			for i := range actor.Value {
				if !yield(&actor.Value[i], true) {
					return
				}
			}
		}
	}
	for a, explored := range each {
		if a.DeleteGroup != nil {
			w.deleted[a.DeleteGroup.Name] = true
		}
		if explored && (a.CreateIndex != nil || a.DeleteIndex != nil) {
			w.indexing = true
		}
	}
}

// request makes an action ready. name is what a search without an id is called.
func (w *world) request(a *scenario.Action, name string) request {
	r := request{action: a, text: describe(a), at: step{name: a.Name(), touches: w.touches(a), ends: noLane}}
	s := a.Search
	if s == nil {
		return r
	}
	r.search = coordinator.Request{ID: s.ID, Index: s.Index, Size: s.Size, Timeout: time.Duration(s.Timeout), AllowPartial: s.AllowPartial}
	if s.ID == "" {
		r.search.ID = name
	}
	for _, index := range s.Lookups {
		r.search.Lookups = append(r.search.Lookups, coordinator.Lookup{Index: index, Query: []byte("{}")})
	}
	if s.Hold {
		w.based.holds = append(w.based.holds, held{search: r.search.ID})
	}
	roles := w.file.Users[s.User].Roles
	r.ctx, r.key = context.Background(), history.PrincipalKey(s.User, []string{w.switches.RoleChoice.Charged(roles)})
	if s.User != "" || len(roles) > 0 {
		r.ctx = wlm.WithPrincipal(r.ctx, wlm.Principal{User: s.User, Roles: roles, Canary: w.canary})
	}
	return r
}

// aim tells cancels and searches of one another.
func (w *world) aim() {
	var requests []*request
	for i := range w.before {
		requests = append(requests, &w.before[i])
	}
	for _, a := range w.actors {
		for i := range a.actions {
			requests = append(requests, &a.actions[i])
		}
	}
	for _, c := range requests {
		if c.action.Cancel == nil {
			continue
		}
		for _, s := range requests {
			if s.action.Search == nil || s.search.ID != c.action.Cancel.Search {
				continue
			}
			s.cancels = true
			if lane, ok := w.lanes[s.search.ID]; ok {
				c.at.ends = lane
				w.actors[lane].cancelled = true
			} else {
				c.at.touches = all // the rest of a search of before: runs within the turn
			}
		}
	}
}

// within calls a function in a bubble of the world's.
func (w *world) within(f func() error) error {
	var failed error
	if err := bubble.Run(func() {
		defer w.open()()
		failed = f()
	}); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// open makes what belongs to the bubble that it is called in, and returns what
// takes it down.
func (w *world) open() (end func()) {
	w.workers = make(chan struct{})
	for _, l := range w.control.lanes {
		l.gate = make(chan struct{}, 1)
	}
	w.data = datanode.New(datanode.Config{Node: w.dataName, States: func() *cluster.State { return w.head }})
	ended := make(chan struct{}, len(w.actors))
	actors := w.actors[:len(w.actors)-1]
	for _, a := range actors {
		a.start = make(chan struct{}, 1)
		go func() {
			defer func() { ended <- struct{}{} }()
			a.run()
		}()
	}
	return func() {
		close(w.workers)
		for range actors {
			<-ended
		}
		w.data.Close()
	}
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// newID returns the id of a key.
func newID(seed uint64, key string) string { return node.NewID(seed ^ hashOf(key)) }
