package explore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	simworld "github.com/wlmsim/wlmsim/sim/world"
)

// spareExecutions is how many executions of one schedule may take another
// course before the verdict is left open. Outside the exact lane the Go
// scheduler decides between two goroutines of one node, and raft's decide now
// and then whether two entries travel as one message.
const spareExecutions = 5

// firstLeader leads at the start of each execution.
const firstLeader = "m1"

// fleet is a whole cluster that is explored. Each execution builds it anew, in
// a bubble of its own.
type fleet struct {
	file    *scenario.File
	most    int // turns of one schedule
	table   *table
	lanes   []string
	index   map[string]int // of lanes
	roads   map[road][]int // lanes
	byLane  map[int]road
	shaken  bool // the program has the cluster get over something
	lapses  int  // lane of time that passes; noLane: none
	before  []scenario.Action
	actors  [][]scenario.Action
	hunted  []bool         // by actor: some action cancels a search of it, so that it parks at each step
	lane    map[string]int // by name of search
	holding []string       // names of the searches that stay at their data nodes

	flight
}

// flight is the part of a fleet that each execution begins anew.
type flight struct {
	cluster *simworld.Cluster
	failed  error  // why it could not even begin
	stuck   string // the lane that waits for what never comes
	base    uint64 // version at the start
	turn    int
	last    int           // lane of the turn
	lapsed  int           // turns in which time passed
	healed  bool          // everything was healed, since nothing came any more
	stirred chan struct{} // holds one: a lane parked, an actor ended

	mu      sync.Mutex
	began   bool             // steps are looked at
	free    bool             // nobody parks any more
	cut     bool             // actors begin no further action
	down    map[string]state // nodes that crashed and have not caught up since
	parked  [][]waiting      // by lane: who waits, the oldest first
	running int              // actors, and searches of before:, that have not ended
	ended   []bool           // by actor
	holds   map[string]*stay
	events  [][]history.Event // by lane, of the turn under way
	loose   []history.Event
	trace   []laneEvent
}

// waiting is a goroutine of a lane that waits for its turn.
type waiting struct {
	node string // whose it is; "": a client's
	gate chan struct{}
}

// stay is a search that stays at its data nodes.
type stay struct {
	open   chan struct{}
	opened bool
	there  bool                     // it has arrived
	gone   map[string]chan struct{} // by data node where it stays: closed when that crashes
}

// newFleet makes ready all that outlives executions.
func newFleet(f *scenario.File, most int) (*fleet, error) {
	e := f.Explore
	x := &fleet{file: f, most: most, index: map[string]int{}, roads: map[road][]int{}, byLane: map[int]road{}, lane: map[string]int{}, lapses: noLane}
	for _, a := range e.Actors {
		x.add(a.Name)
	}
	nodes := simworld.NodeNames(f)
	for _, node := range nodes {
		x.add(node + "." + applierLane)
	}
	x.shaken = shaken(e)
	x.pave(nodes)
	if x.shaken && f.Cluster.Managers > 1 {
		x.lapses = x.add(timeLane)
	}
	x.before = x.named("before", e.Before)
	for _, a := range e.Actors {
		x.actors = append(x.actors, x.named(a.Name, a.Value))
	}
	x.study()
	programs, err := compile(f)
	if err != nil {
		return nil, err
	}
	x.table = newTable(f, programs, x.lanes)
	x.table.run, x.table.misfit, x.table.whole = x.run, errDiverged, true
	x.table.names = x.groups
	if !exact.Enabled {
		x.table.spare, x.table.lenient = spareExecutions, x.shaken
	}
	return x, nil
}

func (x *fleet) add(lane string) int {
	x.index[lane] = len(x.lanes)
	x.lanes = append(x.lanes, lane)
	return len(x.lanes) - 1
}

// named copies actions and gives each search without an id one.
func (x *fleet) named(owner string, actions []scenario.Action) []scenario.Action {
	copies := slices.Clone(actions)
	for i := range copies {
		a := &copies[i]
		if a.Search == nil {
			continue
		}
		s := *a.Search
		if s.ID == "" {
			s.ID = fmt.Sprintf("%s.%d", owner, i)
		}
		if s.Hold {
			x.holding = append(x.holding, s.ID)
		}
		a.Search = &s
	}
	return copies
}

// study looks at what the searches of the program meet.
func (x *fleet) study() {
	x.hunted = make([]bool, len(x.actors))
	for i, actions := range x.actors {
		for k := range actions {
			if s := actions[k].Search; s != nil {
				x.lane[s.ID] = i
			}
		}
	}
	for _, actions := range x.actors {
		for k := range actions {
			if c := actions[k].Cancel; c != nil {
				if i, ok := x.lane[c.Search]; ok {
					x.hunted[i] = true
				}
			}
		}
	}
}

// run executes one schedule; see [table].
func (x *fleet) run(c chooser, taken []uint8, traced bool) (turns []uint8, whole bool, events []laneEvent, err error) {
	x.flight = flight{
		holds: map[string]*stay{}, down: map[string]state{}, parked: make([][]waiting, len(x.lanes)),
		events: make([][]history.Event, len(x.lanes)), ended: make([]bool, len(x.actors)),
	}
	t := x.table
	r, failed := simworld.Explore(x.file, simworld.Options{Profile: x.file.Profile}, simworld.Exploration{
		Hook: x,
		Body: func(cluster *simworld.Cluster) {
			x.cluster = cluster
			turns, whole, err = play(x, x.most, c, taken)
		},
		End: func(env scenario.Env) {
			t.vars = x.file.Vars(scenario.InExplore, env)
			t.observe()
		},
	})
	switch {
	case x.failed != nil:
		return turns, false, nil, errors.Join(x.failed, failed)
	case failed != nil:
		return turns, false, nil, failed
	case x.stuck != "":
		t.stuck(x.stuck)
	}
	if t.hash == "" {
		t.hash = r.TraceHash
	}
	t.results = t.results[:0]
	for _, c := range r.Checks {
		t.results = append(t.results, check.Result(c))
	}
	return turns, whole, x.trace, err
}

// begin implements [stage].
func (x *fleet) begin() {
	x.stirred = make(chan struct{}, 1) // channels belong to the bubble that they are made in
	for _, id := range x.holding {
		x.holds[id] = &stay{open: make(chan struct{}), gone: map[string]chan struct{}{}}
	}
	if x.failed = x.cluster.Settle(firstLeader); x.failed != nil {
		return
	}
	x.mu.Lock()
	x.began, x.free = true, true
	x.mu.Unlock()
	for i := range x.before {
		x.prepare(&x.before[i])
	}
	base := uint64(0)
	for _, name := range x.cluster.Nodes() {
		if n, err := x.cluster.Node(name); err == nil {
			n.Coordinator().RefreshRules()
			base = max(base, n.State().Version())
		}
	}
	x.gather()
	x.mu.Lock()
	x.base, x.free, x.trace = base, false, nil
	x.mu.Unlock()
	x.cluster.Network().HoldBack(x.explored)
	for i := range x.actors {
		x.start(func() { x.act(i) })
	}
}

// start starts a goroutine of a client.
func (x *fleet) start(f func()) {
	x.mu.Lock()
	x.running++
	x.mu.Unlock()
	go func() {
		f()
		x.mu.Lock()
		x.running--
		x.mu.Unlock()
		x.stir()
	}()
}

// prepare carries out an action of before:. A search that is held goes on.
func (x *fleet) prepare(a *scenario.Action) {
	ended := false
	x.start(func() {
		x.ask(a, noLane)
		x.mu.Lock()
		ended = true
		x.mu.Unlock()
	})
	x.wait(func() bool {
		return ended || a.Search != nil && x.holds[a.Search.ID] != nil && x.holds[a.Search.ID].there
	})
}

// act is the goroutine of an actor.
func (x *fleet) act(i int) {
	for k := range x.actors[i] {
		a := &x.actors[i][k]
		x.mu.Lock()
		x.parkLocked(i, "")
		x.mu.Lock()
		cut := x.cut
		x.mu.Unlock()
		if cut {
			return
		}
		x.ask(a, i)
	}
	x.mu.Lock()
	x.ended[i] = true
	x.mu.Unlock()
}

// ask carries out an action and notes it in its lane.
func (x *fleet) ask(a *scenario.Action, lane int) {
	first, last, e := history.WriteBegin, history.WriteEnd, history.Event{Detail: describe(a)}
	switch {
	case a.Search != nil:
		first, last, e = history.RequestSent, history.RequestAnswered, history.Event{Search: a.Search.ID}
	case a.Disturbs():
		e.Detail = disturbance(a)
	}
	if r := a.Request(); r != nil {
		e.Node = r.Via
	}
	e.Kind = first
	x.note(lane, e)
	x.expect(a)
	answer, err := x.cluster.Ask(a)
	if err != nil {
		e.Detail = err.Error()
	}
	switch {
	case a.Search != nil:
		x.open(a.Search.ID)
	case a.Crash != nil:
		x.bury()
	}
	e.Kind, e.Status = last, answer.Status
	x.note(lane, e)
}

// open lets a search go that stays, or ends its stay.
func (x *fleet) open(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.holds[id]; s != nil && !s.opened {
		s.opened = true
		close(s.open)
	}
}

func (x *fleet) note(lane int, e history.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.noteLocked(lane, e)
}

func (x *fleet) noteLocked(lane int, e history.Event) {
	if e.Version > 0 { // the versions before the first turn differ with the way the cluster came about
		e.Version -= min(e.Version, x.base)
	}
	if lane == noLane {
		x.loose = append(x.loose, e)
		return
	}
	x.events[lane] = append(x.events[lane], e)
}

// parkLocked lets the caller, a goroutine of a node or of a client, wait until
// its lane has its turn, and gives the lock up.
func (x *fleet) parkLocked(lane int, node string) {
	if x.free || x.down[node] != up {
		x.mu.Unlock()
		return
	}
	gate := make(chan struct{})
	x.parked[lane] = append(x.parked[lane], waiting{node, gate})
	x.mu.Unlock()
	x.stir()
	<-gate
}

// stir wakes who waits for something to happen.
func (x *fleet) stir() {
	select {
	case x.stirred <- struct{}{}:
	default:
	}
}

// Reach implements [probe.Hook].
func (x *fleet) Reach(e probe.Event) {
	x.mu.Lock()
	if !x.began || x.down[e.Node] != up {
		x.mu.Unlock()
		return
	}
	if e.Step == probe.DataNodeAnswer {
		x.stayLocked(e.Search, e.Node)
		return
	}
	lane := x.laneOf(&e)
	x.noteLocked(lane, history.Of(0, 1, e))
	if lane == noLane || e.Step == probe.ClusterProposed || e.Touches == 0 && !(lane < len(x.actors) && x.hunted[lane]) {
		x.mu.Unlock()
		return
	}
	x.parkLocked(lane, e.Node)
}

// laneOf returns the lane that reached a step: a search's actor or the node's
// applier.
func (x *fleet) laneOf(e *probe.Event) int {
	if e.Search == "" {
		return x.index[e.Node+"."+applierLane]
	}
	if i, ok := x.lane[e.Search]; ok {
		return i
	}
	return noLane
}

// stayLocked keeps a search at a data node if it is to stay there, and gives
// the lock up.
func (x *fleet) stayLocked(search, node string) {
	s := x.holds[search]
	if s == nil || s.opened || x.down[node] != up {
		x.mu.Unlock()
		return
	}
	s.there = true
	gone := s.gone[node]
	if gone == nil {
		gone = make(chan struct{})
		s.gone[node] = gone
	}
	x.mu.Unlock()
	x.stir()
	select {
	case <-s.open:
	case <-gone:
	}
}

// nearly is how soon something has to be due to count as now: connections are
// made and ended within some nanoseconds, and no timer of a node is as short.
const nearly = 10 * time.Microsecond

// settle implements [stage].
func (x *fleet) settle() (enabled uint64, steps []step) {
	for x.failed == nil && x.stuck == "" {
		x.quiet()
		x.gather()
		x.raise()
		enabled, idle := x.enabled(), x.idle()
		switch {
		case idle && enabled == 0:
			return 0, nil
		case enabled != 0 && !idle && x.lapses != noLane && x.lapsed < maxLapses:
			return enabled | 1<<x.lapses, nil
		case enabled != 0:
			return enabled, nil
		}
		// The clock has to move; what is sent meanwhile is not explored.
		x.cluster.Network().HoldBack(nil)
		switch {
		case x.await(simworld.SettleBound(x.file)):
		case x.shaken && !x.healed:
			x.heal()
		default:
			x.stuck = x.waits()
		}
		x.cluster.Network().HoldBack(x.explored)
	}
	return 0, nil
}

// quiet waits until nothing happens any more by itself. It takes a nanosecond
// at least, so that what is sent in two turns is two messages.
func (x *fleet) quiet() {
	bubble.Wait()
	for {
		due, under := x.cluster.Network().Due()
		if !under || due > nearly {
			break
		}
		time.Sleep(max(due, 1))
		bubble.Wait()
	}
	time.Sleep(time.Nanosecond)
	bubble.Wait()
	select {
	case <-x.stirred: // that is known
	default:
	}
}

// await waits until something happens, but not longer than a bound.
func (x *fleet) await(bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-x.stirred:
		return true
	case <-timer.C:
		return false
	}
}

// wait waits until something is so, which changes with a stir, but not longer
// than a cluster takes to settle. It says whether it is.
func (x *fleet) wait(so func() bool) bool {
	for {
		x.mu.Lock()
		done := so()
		x.mu.Unlock()
		if done {
			return true
		}
		if !x.await(simworld.SettleBound(x.file)) {
			return false
		}
	}
}

// enabled returns the lanes in which somebody is parked or a message waits.
func (x *fleet) enabled() (set uint64) {
	x.mu.Lock()
	for lane, who := range x.parked {
		if len(who) > 0 {
			set |= 1 << lane
		}
	}
	x.mu.Unlock()
	for _, lane := range x.arrivals() {
		set |= 1 << lane.lane
	}
	return set
}

// idle says whether no client has anything left to do but to stay.
func (x *fleet) idle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.idleLocked()
}

func (x *fleet) idleLocked() bool {
	staying := 0
	for _, s := range x.holds {
		if s.there && !s.opened {
			staying++
		}
	}
	return x.running <= staying
}

// release implements [stage].
func (x *fleet) release(lane int) {
	x.turn, x.last = x.turn+1, lane
	if lane == x.lapses {
		x.lapse()
		return
	}
	if _, ok := x.byLane[lane]; ok {
		x.deliver(lane)
		return
	}
	x.mu.Lock()
	one := x.parked[lane][0]
	x.parked[lane] = x.parked[lane][1:]
	x.mu.Unlock()
	close(one.gate)
}

// gather puts the events of the turn in order: those of the lane that had it
// first, then those that it woke.
func (x *fleet) gather() {
	x.mu.Lock()
	defer x.mu.Unlock()
	add := func(lane int, events []history.Event) {
		for _, e := range events {
			e.At = time.Duration(x.turn)
			x.trace = append(x.trace, laneEvent{lane, e})
		}
	}
	if x.turn > 0 { // what ran woke the others
		add(x.last, x.events[x.last])
		x.events[x.last] = nil
	}
	for lane := range x.events {
		add(lane, x.events[lane])
		x.events[lane] = nil
	}
	add(noLane, x.loose)
	x.loose = nil
}

// end implements [stage].
func (x *fleet) end(whole bool) {
	if x.failed != nil {
		return
	}
	x.cluster.Network().HoldBack(nil)
	x.mu.Lock()
	x.free, x.cut = true, !whole
	for lane, who := range x.parked {
		for _, one := range who {
			close(one.gate)
		}
		x.parked[lane] = nil
	}
	x.mu.Unlock()
	patient := x.patient()
	for _, id := range x.holding {
		x.open(id)
		patient = patient && x.patient()
	}
	if !patient && x.stuck == "" {
		x.stuck = x.waits()
	}
	x.gather()
}

// patient waits until no client has anything left to do but to stay, and heals
// everything if that does not come about by itself.
func (x *fleet) patient() bool {
	if x.wait(x.idleLocked) {
		return true
	}
	if !x.shaken || x.healed {
		return false
	}
	x.heal()
	return x.wait(x.idleLocked)
}

// waits names a lane that has not come to its end.
func (x *fleet) waits() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.lanes[max(0, slices.Index(x.ended, false))]
}
