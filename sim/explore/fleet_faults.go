package explore

import (
	"fmt"
	"time"

	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// timeLane is the lane in which time passes, in a program that has a cluster of
// several managers get over something: one of them may be elected meanwhile.
const timeLane = "cluster.time"

const (
	// maxLapses bounds the turns of an order in which time passes, while others
	// could go on.
	maxLapses = 2
	// lapse is how long it passes in a turn, unless something comes of it before:
	// long enough for the manager that is next to be elected.
	lapse = 10 * time.Second
)

// shaken says whether the program has the cluster get over something but a move
// of the leadership, which it carries out by itself.
func shaken(e *scenario.Explore) bool {
	for _, actions := range append(scenario.Ordered[[]scenario.Action]{{Value: e.Before}}, e.Actors...) {
		for i := range actions.Value {
			if a := &actions.Value[i]; a.Disturbs() && a.TransferLeadership == nil {
				return true
			}
		}
	}
	return false
}

// disturbance says in a few words what an action has the cluster get over.
func disturbance(a *scenario.Action) string {
	switch {
	case a.Crash != nil:
		return "crash " + a.Crash.Node
	case a.Restart != nil:
		return "restart " + a.Restart.Node
	case a.Partition != nil:
		text := "partition"
		for i, side := range a.Partition.Sides {
			if i > 0 {
				text += map[bool]string{true: " ->", false: " |"}[a.Partition.OneWay]
			}
			if side.Word != "" {
				text += " " + side.Word
				continue
			}
			text += fmt.Sprintf(" %v", side.Nodes)
		}
		return text
	}
	return a.Name()
}

// state is what a node is to the explorer.
type state uint8

const (
	up     state = iota
	dead         // it crashed: nobody sees what becomes of what waits on it
	rising       // it starts again, which it does by itself
)

// expect notes what an action is about to do to nodes.
func (x *fleet) expect(a *scenario.Action) {
	var name string
	next := dead
	switch {
	case a.Crash != nil:
		name = a.Crash.Node
	case a.Restart != nil:
		name, next = a.Restart.Node, rising
	default:
		return
	}
	names := []string{name}
	switch name {
	case scenario.All:
		names = x.cluster.Nodes()
	case scenario.Leader:
		if names[0] = x.cluster.Leader(); names[0] == "" {
			return // nobody leads, and so nothing happens
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range names {
		if is := x.down[name]; next == dead && is == up || next == rising && is == dead {
			x.down[name] = next
		}
	}
}

// bury lets go of what waits on nodes that have crashed.
func (x *fleet) bury() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for lane, who := range x.parked {
		alive := who[:0]
		for _, one := range who {
			if x.down[one.node] == up {
				alive = append(alive, one)
				continue
			}
			close(one.gate)
		}
		x.parked[lane] = alive
	}
	for _, id := range x.holding {
		for name, gone := range x.holds[id].gone {
			if x.down[name] != up {
				close(gone)
				delete(x.holds[id].gone, name)
			}
		}
	}
}

// raise has the nodes explored again that have caught up since they crashed.
func (x *fleet) raise() {
	x.mu.Lock()
	var names []string
	for name, is := range x.down {
		if is == rising {
			names = append(names, name)
		}
	}
	x.mu.Unlock()
	for _, name := range names {
		if n, err := x.cluster.Node(name); err == nil && n.CaughtUp() {
			x.mu.Lock()
			delete(x.down, name)
			x.mu.Unlock()
		}
	}
}

// heal ends all that the cluster has to get over.
func (x *fleet) heal() {
	x.healed = true
	x.mu.Lock()
	for name := range x.down {
		x.down[name] = rising
	}
	x.mu.Unlock()
	x.cluster.Heal()
}

// lapse lets time pass while others could go on. What is under way stays so,
// and what is sent meanwhile arrives by itself, unless it is behind that.
func (x *fleet) lapse() {
	x.lapsed++
	x.note(x.lapses, history.Event{Kind: timePassed})
	network := x.cluster.Network()
	network.HoldBack(func(string, string, int, netsim.Kind) bool { return false })
	x.await(lapse)
	network.HoldBack(x.explored)
}

// timePassed is the kind of the event that time passed in a turn.
const timePassed = "time passes"
