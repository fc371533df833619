package check

import (
	"fmt"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// statesEqual: once settled, all nodes have equal states.
type statesEqual struct{ findings }

func (c *statesEqual) Name() scenario.Promise { return scenario.StatesEqual }
func (c *statesEqual) Kinds() []string        { return nil }
func (c *statesEqual) Observe(*history.Event) {}

func (c *statesEqual) Finish(f *Facts) Result {
	switch {
	case len(f.States) == 0:
		c.lack("nobody looked at the states of the nodes")
	case f.Settle == nil:
		c.lack("nobody waited for the cluster to settle")
	case f.Settle.Err != nil:
		c.lack("the cluster did not settle, so its states may differ: %v", f.Settle.Err)
	default:
		first := f.States[0]
		for _, other := range f.States[1:] {
			c.compare(first, other)
		}
	}
	return c.result(c.Name())
}

func (c *statesEqual) compare(a, b NodeState) {
	changes := cluster.Diff(a.State, b.State)
	if a.State.Version() == b.State.Version() && changes.Empty() {
		return
	}
	c.add("two nodes have states that differ", "%s has version %d, %s has version %d; what differs: %s",
		a.Node, a.State.Version(), b.Node, b.State.Version(), describe(changes))
}

// describe lists what differs by name.
func describe(c cluster.Changes) string {
	var parts []string
	if c.Settings {
		parts = append(parts, "settings")
	}
	parts = append(append(append(append(parts, keys("group", c.Groups)...), keys("rule", c.Rules)...), keys("index", c.Indices)...), keys("node", c.Nodes)...)
	if parts == nil {
		return "the version alone"
	}
	return strings.Join(parts, ", ")
}

func keys[T any](what string, changes []cluster.Change[T]) []string {
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = fmt.Sprintf("%s %s", what, c.Key)
	}
	return names
}
