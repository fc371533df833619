package coordinator

import (
	"cmp"
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// plan says which node is asked for which shards. It follows from a state and
// an index expression, and is immutable.
type plan struct {
	state      *cluster.State
	expression string
	targets    []target // by node
	shards     int
}

// target is one node of a plan.
type target struct {
	node   string
	shards []wire.ShardID // by index, then shard
}

// planFor returns the plan of an index expression. The last one is kept, since
// most searches in a row ask for the same.
func (c *Coordinator) planFor(state *cluster.State, expression string) (*plan, error) {
	if last := c.plan.Load(); last != nil && last.state == state && last.expression == expression {
		return last, nil
	}
	p, err := newPlan(state, expression)
	if err == nil {
		c.plan.Store(p)
	}
	return p, err
}

func newPlan(state *cluster.State, expression string) (*plan, error) {
	indices, err := state.MatchIndices(expression)
	if err != nil {
		return nil, err
	}
	p := &plan{state: state, expression: expression}
	place := map[string]int{}
	for _, x := range indices {
		for shard, node := range x.ShardNodes {
			i, known := place[node]
			if !known {
				i = len(p.targets)
				place[node] = i
				p.targets = append(p.targets, target{node: node})
			}
			p.targets[i].shards = append(p.targets[i].shards, wire.ShardID{Index: x.Name, Shard: shard})
			p.shards++
		}
	}
	slices.SortFunc(p.targets, func(a, b target) int { return cmp.Compare(a.node, b.node) })
	return p, nil
}
