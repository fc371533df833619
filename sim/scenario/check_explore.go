package scenario

import (
	"fmt"
	"slices"
)

// Bounds of an exploration. They keep the lanes of one, the actors and all that
// stands beside them, within what a set of lanes holds; more than that
// interleaves in too many ways to be tried.
const (
	// MaxExploredNodes bounds the nodes of a cluster that is explored whole: the
	// messages between each two are lanes of their own.
	MaxExploredNodes = 5
	// MaxExploredActors bounds the actors.
	MaxExploredActors = 16
)

// ApplierLane is the lane of the applier of a node that is explored alone. No
// actor has the name.
const ApplierLane = "applier"

func (c *checker) explore() {
	e := c.file.Explore
	if e == nil {
		return
	}
	switch nodes := c.file.Cluster.Managers + c.file.Cluster.Data; {
	case e.Node != "":
		c.node("explore.node", e.Node)
	case nodes > MaxExploredNodes:
		c.at("explore", "without explore.node the whole cluster is explored, and it has %d nodes: at most %d; give cluster.managers and cluster.data", nodes, MaxExploredNodes)
	}
	switch n := len(e.Actors); {
	case n == 0:
		c.at("explore.actors", "nobody acts: give actors")
	case n > MaxExploredActors:
		c.at("explore.actors", "%d actors interleave in too many ways: at most %d", n, MaxExploredActors)
	}
	if len(e.Observe) == 0 {
		c.at("explore.observe", "nothing is observed: give observe")
	}
	p := c.program(InExplore)
	p.explore = e
	for i := range e.Before {
		c.explored(fmt.Sprintf("explore.before[%d]", i), &e.Before[i], p)
	}
	for _, actor := range e.Actors {
		c.actor(actor, p)
	}
	for i, name := range e.Together {
		c.together(fmt.Sprintf("explore.together[%d]", i), name, e)
	}
}

// together checks that the actions of an actor can reach a node as one version.
func (c *checker) together(path, name string, e *Explore) {
	var names []string
	for _, actor := range e.Actors {
		names = append(names, actor.Name)
	}
	c.word(path, "actor", name, names)
	if e.Node == "" {
		c.at(path, "changes come together at one node: give explore.node")
	}
	for _, actor := range e.Actors {
		for i := range actor.Value {
			if actor.Name == name && !actor.Value[i].changes() {
				c.at(path, "actor %s does more than change the state, which cannot come with a version", name)
			}
		}
	}
}

// changes says whether an action makes a new version of the state.
func (a *Action) changes() bool {
	return a.Request() != nil && a.Search == nil && a.GetGroups == nil && a.GetStats == nil && a.OpenPit == nil && a.ClosePit == nil
}

func (c *checker) actor(actor Entry[[]Action], p *program) {
	path := "explore.actors." + actor.Name
	c.identifier(path, "actor", actor.Name)
	if actor.Name == ApplierLane && p.explore.Node != "" {
		c.at(path, "%s is the name of the lane of the node's applier: give the actor another", ApplierLane)
	}
	if len(actor.Value) == 0 {
		c.at(path, "actor %s does nothing", actor.Name)
	}
	for i := range actor.Value {
		a := &actor.Value[i]
		c.explored(fmt.Sprintf("%s[%d]", path, i), a, p)
		if a.Search != nil && a.Search.Hold && i < len(actor.Value)-1 {
			c.at(fmt.Sprintf("%s[%d].search.hold", path, i), "a search with hold: true keeps its permit to the end, so it is the last action of its actor")
		}
	}
}

// Disturbs says whether the action is one that the cluster has to get over: a
// crash, a restart, a partition, a heal or a move of the leadership.
func (a *Action) Disturbs() bool {
	return a.Crash != nil || a.Restart != nil || a.Partition != nil || a.Heal != nil || a.TransferLeadership != nil
}

// explored checks an action of an exploration: a request, a search's end, or
// something that a whole cluster has to get over.
func (c *checker) explored(path string, a *Action, p *program) {
	if !c.action(path, a, p) {
		return
	}
	at, r := path+"."+a.Name(), a.Request()
	switch {
	case a.Disturbs() && p.explore.Node != "":
		c.at(path, "%s needs a whole cluster, and %s alone is explored: leave explore.node out", a.Name(), p.explore.Node)
	case a.Crash != nil && a.Crash.RestartAfter > 0:
		c.at(at+".restart_after", "an exploration has orders and no times: have an actor restart %s, or leave it to the end", a.Crash.Node)
	case a.Partition != nil && a.Partition.For > 0:
		c.at(at+".for", "an exploration has orders and no times: have an actor heal, or leave it to the end")
	case a.Disturbs():
	case r == nil && a.Cancel == nil:
		c.at(path, "%s cannot be explored: requests and cancel can, and in a whole cluster %s", a.Name(), listed(disturbances()))
	case r != nil && p.explore.Node != "" && r.Via != p.explore.Node:
		c.at(at+".via", "node %s alone is explored: leave via out", p.explore.Node)
	}
}

func disturbances() []string {
	return slices.DeleteFunc(actionNames(), func(name string) bool {
		return !slices.Contains([]string{"crash", "restart", "partition", "heal", "transfer_leadership"}, name)
	})
}
