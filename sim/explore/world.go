package explore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/wlmsim/wlmsim/applier"
	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// applierLane is the name of the lane of the node's applier.
const applierLane = scenario.ApplierLane

// world is the node that is explored and what stands around it. One is used
// for all schedules of an exploration; only the node is made anew.
type world struct {
	file     *scenario.File
	switches wlm.Switches
	control  *controller
	names    *names
	programs programs
	base     *cluster.State // that each execution begins with
	based    execution      // what the writes of before: have left
	before   []request      // what of before: is done in each execution
	actors   []*actor
	lanes    map[string]int // by name of search
	deleted  map[string]bool
	indexing bool // an actor creates or deletes indices
	dataName string
	// everyStep: lanes park at steps that touch nothing, too.
	everyStep bool
	canary    string
	probe     *probe.Probe

	log     *slog.Logger       // of each node: nobody reads it
	books   books              // of the execution that was judged last
	data    *datanode.DataNode // outlives executions: it is not explored
	workers chan struct{}      // closed at the end

	execution
	parts
	judge func(w *world) // called at the end of each execution that came to its end
}

// execution is the part of a world that each schedule begins anew.
type execution struct {
	head       *cluster.State // that the next command applies to
	turn       int
	made       map[string]int // groups created, by name
	rules      map[string]string
	operations []check.Operation
	explained  []byte // what the operations are, for [table.linear]
	answers    map[string]any
	sightings  uint64
	sighted    string
	peaks      map[string]int // by group id
	loose      []history.Event
	events     []laneEvent
	checks     *check.Set
	holds      []held
	leave      map[string]context.CancelFunc // by id of search
	stats      []wlm.GroupStats              // at the end; nil before
}

// parts is the node of one execution.
type parts struct {
	applier     *applier.Applier
	throttle    *wlm.Throttle
	coordinator *coordinator.Coordinator
}

// laneEvent is an event with the lane that it belongs to; noLane: to none.
type laneEvent struct {
	lane int
	history.Event
}

// held is a search that stays at its data node.
type held struct {
	search string
	open   chan struct{}
	opened bool
}

// actor carries out the actions of a lane. Its goroutine serves all executions.
type actor struct {
	w       *world
	index   int
	actions []request
	// cancelled: some action cancels a search of the lane, so that each of its
	// steps is a place where order matters.
	cancelled bool
	nests     bool            // one of its searches starts another one
	events    []history.Event // of the lane, since the bubble settled last; its goroutine's
	start     chan struct{}
	done      bool // of this execution
}

// State implements [coordinator.States].
func (w *world) State() *cluster.State { return w.applier.State() }

// Reach implements [probe.Hook].
func (w *world) Reach(e probe.Event) {
	i := w.laneOf(&e)
	if e.Step == probe.Acquired && e.Held > w.peaks[e.Group] {
		w.peaks[e.Group] = e.Held
	}
	if i == noLane {
		w.loose = append(w.loose, history.Of(0, 1, e))
		return
	}
	a := w.actors[i]
	a.events = append(a.events, history.Of(0, 1, e))
	if w.control.free {
		return
	}
	if s := w.stepOf(a, &e); s.touches != 0 || a.cancelled || w.everyStep {
		w.control.lanes[i].park(s)
	}
}

// stepOf adds what the data node reads to the turns in which a search may reach
// it. Where a search starts another one, that reads the state, and the outer
// one reaches the data node after it, in turns that are not told apart.
func (w *world) stepOf(a *actor, e *probe.Event) step {
	s := stepOf(e)
	reaches := a.nests
	if a.nests {
		s.touches |= touch(probe.ReadState)
	}
	switch e.Step {
	case probe.CoordinatorRead, probe.Acquired, probe.Counted, probe.Observed:
		reaches = true
	}
	if w.indexing && reaches {
		s.touches |= readHead
	}
	return s
}

// laneOf returns the lane that reached a step: a search's actor or the applier.
func (w *world) laneOf(e *probe.Event) int {
	if e.Search == "" {
		return len(w.actors) - 1
	}
	if i, ok := w.lanes[e.Search]; ok {
		return i
	}
	return noLane
}

// begin implements [stage].
func (w *world) begin() {
	w.renew(&w.based)
	for _, a := range w.actors {
		a.events, a.done = a.events[:0], false
	}
	w.control.free = true
	w.assemble()
	bubble.Wait()
	w.settled()
	for i := range w.before {
		go w.before[i].run(w, nil)
		bubble.Wait()
		w.settled()
	}
	w.coordinator.RefreshRules()
	w.control.free = false
	for _, a := range w.actors[:len(w.actors)-1] {
		a.start <- struct{}{}
	}
}

// renew makes x the beginning of an execution that goes on from another one. It
// uses the memory of x again.
func (x *execution) renew(from *execution) {
	old := *x
	*x = *from
	if x.checks = old.checks; x.checks == nil {
		x.checks = check.NewSet(streamed...)
	} else {
		x.checks.Reset()
	}
	x.peaks, x.leave = emptied(old.peaks), emptied(old.leave)
	x.made, x.rules, x.answers = filled(old.made, from.made), filled(old.rules, from.rules), filled(old.answers, from.answers)
	if x.operations = append(old.operations[:0], from.operations...); x.operations == nil {
		x.operations = []check.Operation{} // none, and each would have been noted
	}
	x.explained = append(old.explained[:0], from.explained...)
	x.loose = old.loose[:0]
	x.holds = old.holds[:0]
	for _, h := range from.holds {
		x.holds = append(x.holds, held{search: h.search, open: make(chan struct{})})
	}
}

func emptied[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	clear(m)
	return m
}

func filled[V any](m, from map[string]V) map[string]V {
	m = emptied(m)
	for k, v := range from {
		m[k] = v
	}
	return m
}

// assemble makes a node, as package node does, of the parts that are explored.
func (w *world) assemble() {
	a := applier.New(applier.Config{Probe: w.probe, Log: w.log})
	t, err := wlm.New(wlm.Config{Switches: w.switches, Locks: 1, Probe: w.probe, Log: w.log}) // one lane runs at a time
	if err != nil {
		panic(err) // the switches were checked
	}
	a.Before("wlm.settings", t.ApplySettings)
	a.Listen("wlm", t.ClusterChanged)
	w.parts = parts{applier: a, throttle: t}
	w.coordinator = coordinator.New(coordinator.Config{Node: w.file.Explore.Node, States: w, Peers: peers{w}, Throttle: t, Probe: w.probe, Log: w.log})
	a.Start(w.base)
}

// settled puts the events of all lanes in order. Of
// lanes that ran at the same time, one woke the other, and what the other did
// since touches nothing.
func (w *world) settled() {
	for i, a := range w.actors {
		for _, e := range a.events {
			w.event(i, e)
		}
		a.events = a.events[:0]
	}
	for _, e := range w.loose {
		w.event(noLane, e)
	}
	w.loose = w.loose[:0]
	if !w.control.free {
		w.turn++
	}
}

// event takes an event into the history. Its time is the number of the turn,
// since the clock stands still.
func (w *world) event(lane int, e history.Event) {
	e.At = time.Duration(w.turn)
	w.checks.Observe(e)
	if w.events != nil {
		w.events = append(w.events, laneEvent{lane, e})
	}
}

// settle implements [stage].
func (w *world) settle() (enabled uint64, steps []step) {
	w.control.settle()
	return w.control.enabled, w.control.steps
}

// release implements [stage].
func (w *world) release(lane int) { w.control.release(w.control.lanes[lane]) }

// end implements [stage].
func (w *world) end(judged bool) {
	w.control.free = true
	if !judged {
		w.control.letAll()
	}
	for w.letHeld() {
		w.control.letAll()
	}
	if judged {
		w.judge(w)
	}
	for _, leave := range w.leave {
		leave()
	}
	w.coordinator.Close()
	w.applier.Close()
	if !judged { // clients that were cut off are on their way out
		bubble.Wait()
	}
}

// letHeld lets the first search go that is still held.
func (w *world) letHeld() bool {
	for i := range w.holds {
		if h := &w.holds[i]; !h.opened {
			h.opened = true
			close(h.open)
			w.control.settle()
			return true
		}
	}
	return false
}

// peers is the network to the data node.
type peers struct{ w *world }

// Search implements [coordinator.Peers].
func (p peers) Search(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	w := p.w
	if w.canary != "" && bytes.Contains(r.AppendTo(nil), []byte(w.canary)) {
		w.sightings++
		if w.sighted == "" {
			w.sighted = fmt.Sprintf("from %s to %s in search %s", w.file.Explore.Node, node, r.Search)
		}
	}
	for i := range w.holds {
		h := &w.holds[i]
		if h.search != r.Search || h.opened {
			continue
		}
		select {
		case <-h.open:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return w.data.Search(ctx, w.file.Explore.Node, r)
}

// books are the facts of an execution and what they point to: memory that is
// used again.
type books struct {
	facts  check.Facts
	life   [1]check.Life
	state  [1]check.NodeState
	wire   check.Wire
	settle check.Settle
}

// facts are what the end of an execution shows. They hold until the next one.
func (w *world) facts() *check.Facts {
	stats, err := w.throttle.Stats(nil)
	w.stats = stats
	b := &w.books
	b.life[0] = check.Life{
		Node: w.file.Explore.Node, Number: 1, Running: w.coordinator.Running(), Permits: w.throttle.Permits(),
		Stats: stats, StatsErr: err, Outcomes: w.coordinator.Outcomes(),
	}
	b.state[0] = check.NodeState{Node: w.file.Explore.Node, State: w.State()}
	b.wire, b.settle = check.Wire{Sightings: w.sightings, First: w.sighted}, check.Settle{}
	if applied := w.applier.Applied(); applied != w.head.Version() {
		b.settle.Err = fmt.Errorf("version %d is applied, and %d is the newest", applied, w.head.Version())
	}
	b.facts = check.Facts{Lives: b.life[:], States: b.state[:], Operations: w.operations, Wire: &b.wire, Settle: &b.settle}
	return &b.facts
}

// stuck names a lane that waits for what never comes, or "".
func (w *world) stuck() string {
	for i, a := range w.actors[:len(w.actors)-1] {
		if !a.done {
			return w.control.lanes[i].name
		}
	}
	return ""
}

// run is the goroutine of an actor.
func (a *actor) run() {
	for {
		select {
		case <-a.start:
		case <-a.w.workers:
			return
		}
		for i := range a.actions {
			a.actions[i].run(a.w, a)
		}
		a.done = true
	}
}

// names gives the ids of groups, which follow from the seed, the name and the
// number of the creation. They are kept, since every execution asks again.
type names struct {
	seed uint64
	ids  map[creation]string
}

// creation is the number of a creation of something.
type creation struct {
	kind, name string
	number     int
}

func (n *names) id(kind, name string, number int) string {
	c := creation{kind, name, number}
	if n.ids[c] == "" {
		n.ids[c] = newID(n.seed, kind+" "+strconv.Itoa(number)+" "+name)
	}
	return n.ids[c]
}

// group returns the id that a search sends for a group: the newest one's, or
// the first one's before there is any.
func (w *world) group(name string) string {
	if name == "" || name == cluster.DefaultGroupID {
		return name
	}
	return w.names.id("group", name, max(1, w.made[name]))
}
