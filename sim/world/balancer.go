package world

import (
	"maps"
	"slices"
	"sort"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// balancer chooses the nodes of a load's requests.
type balancer struct {
	nodes  []string
	upTo   []float64 // share of the nodes up to this one; nil: in turn
	random bool
	seed   stream
}

func newBalancer(v *scenario.Via, all []string, seed stream) balancer {
	b := balancer{nodes: all, random: v.Mode == "random", seed: seed}
	switch {
	case len(v.Nodes) > 0:
		b.nodes = v.Nodes
	case len(v.Weights) > 0:
		b.nodes, b.random = slices.Sorted(maps.Keys(v.Weights)), true
		total := 0.0
		for _, name := range b.nodes {
			total += v.Weights[name]
			b.upTo = append(b.upTo, total)
		}
		for i := range b.upTo {
			b.upTo[i] /= total
		}
	}
	return b
}

// first returns the place of the node of a request's first attempt.
func (b *balancer) first(number uint64) int {
	if !b.random {
		return int(number % uint64(len(b.nodes)))
	}
	d := b.seed.at(number).draws()
	if b.upTo == nil {
		return int(d.upTo(uint64(len(b.nodes) - 1)))
	}
	share := d.share()
	return min(sort.Search(len(b.upTo), func(i int) bool { return share < b.upTo[i] }), len(b.nodes)-1)
}

// next returns the place of the node of a later attempt: each goes one further.
func (b *balancer) next(first, retries int) int { return (first + retries) % len(b.nodes) }
