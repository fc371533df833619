package coordinator

import (
	"cmp"
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// plan says which node is asked for which shards. It follows from a state and
// what the request says of shards, and is immutable.
type plan struct {
	state      *cluster.State
	expression string
	targets    []target       // by node
	missing    []ShardFailure // shards that no node can be asked for
	shards     int            // of the targets and missing
}

// target is one node of a plan.
type target struct {
	node   string
	shards []wire.ShardID // by index, then shard
}

// planFor returns the plan of a request by a state. The last one is kept, since
// most searches in a row ask for the same.
func (c *Coordinator) planFor(state *cluster.State, r *Request) (*plan, error) {
	plain := r.Preference == "" && r.Routing == "" && r.Options == cluster.IndexOptions{}
	if last := c.plan.Load(); plain && last != nil && last.state == state && last.expression == r.Index {
		return last, nil
	}
	p, err := c.newPlan(state, r)
	if err == nil && plain {
		c.plan.Store(p)
	}
	return p, err
}

func (c *Coordinator) newPlan(s *cluster.State, r *Request) (*plan, error) {
	preference, err := ParsePreference(r.Preference)
	if err != nil {
		return nil, err
	}
	indices, err := s.MatchIndicesBy(r.Index, r.Options)
	if err != nil {
		return nil, err
	}
	p := &plan{state: s, expression: r.Index}
	place := map[string]int{}
	for _, x := range indices {
		chosen := routed(r.Routing, x.Shards())
		for shard, node := range x.ShardNodes {
			if !preference.admits(shard) || chosen != nil && !slices.Contains(chosen, shard) {
				continue
			}
			if preference.copies != nil {
				why := preference.refuses(&state{s.Node(node), node == c.config.Node}, x.Name, shard)
				if why != nil && preference.named != "" {
					return nil, why
				} else if why != nil {
					p.missing = append(p.missing, ShardFailure{x.Name, shard, node, why})
					p.shards++
					continue
				}
			}
			p.add(place, node, wire.ShardID{Index: x.Name, Shard: shard})
		}
	}
	p.order()
	return p, nil
}

// keptPlan returns the plan of what data nodes keep.
func keptPlan(s *cluster.State, k *wire.Kept) *plan {
	p, place := &plan{state: s, expression: k.Expression}, map[string]int{}
	for _, x := range k.Shards {
		p.add(place, x.Node, x.ShardID)
	}
	p.order()
	return p
}

// everyDataNode returns the plan that asks each data node for no shard.
func everyDataNode(s *cluster.State) *plan {
	p := &plan{state: s}
	for _, n := range s.Nodes() {
		if n.Has(cluster.Data) {
			p.targets = append(p.targets, target{node: n.Name})
		}
	}
	return p
}

func (p *plan) add(place map[string]int, node string, shard wire.ShardID) {
	i, known := place[node]
	if !known {
		i = len(p.targets)
		place[node] = i
		p.targets = append(p.targets, target{node: node})
	}
	p.targets[i].shards = append(p.targets[i].shards, shard)
	p.shards++
}

// only returns the plan of those shards of p that were found.
func (p *plan) only(found []*wire.ShardAnswer) *plan {
	kept := map[wire.ShardID]bool{}
	for _, a := range found {
		kept[a.Shard] = true
	}
	less, place := &plan{state: p.state, expression: p.expression}, map[string]int{}
	for _, x := range p.kept() {
		if kept[x.ShardID] {
			less.add(place, x.Node, x.ShardID)
		}
	}
	return less
}

func (p *plan) order() {
	slices.SortFunc(p.targets, func(a, b target) int { return cmp.Compare(a.node, b.node) })
}

// kept lists the plan's shards as a context's text names them.
func (p *plan) kept() []wire.KeptShard {
	var list []wire.KeptShard
	for _, t := range p.targets {
		for _, s := range t.shards {
			list = append(list, wire.KeptShard{Node: t.node, ShardID: s})
		}
	}
	return list
}
