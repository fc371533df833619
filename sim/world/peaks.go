package world

import (
	"sync"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

// peaks is a hook that knows how full the fullest bucket of a group ever was on
// each node.
type peaks struct {
	mu sync.Mutex
	of map[peakKey]int
}

type peakKey struct{ node, group string }

// Reach implements [probe.Hook].
func (p *peaks) Reach(e probe.Event) {
	if e.Step != probe.Acquired {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[peakKey]int{}
	}
	key := peakKey{e.Node, e.Group}
	p.of[key] = max(p.of[key], e.Held)
}

func (p *peaks) peak(node, group string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[peakKey{node, group}]
}
