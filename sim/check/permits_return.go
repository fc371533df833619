package check

import (
	"cmp"
	"slices"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// permitsReturn: with nothing running, no bucket is left. The throttle's books
// are asked, and whether every search that was seen to get a permit was seen
// to give it back.
type permitsReturn struct {
	findings
	held map[permit]int
}

func newPermitsReturn() *permitsReturn { return &permitsReturn{held: map[permit]int{}} }

func (c *permitsReturn) Name() scenario.Promise { return scenario.PermitsReturn }

func (c *permitsReturn) Kinds() []string {
	return []string{string(probe.Acquired), string(probe.Released)}
}

func (c *permitsReturn) Observe(e *history.Event) {
	if e.Bucket == 0 {
		return
	}
	p := permit{lifeOf(e), e.Search, e.Bucket}
	if e.Kind == string(probe.Acquired) {
		c.held[p]++
	} else if c.held[p]--; c.held[p] <= 0 { // one too many is for permits_bounded
		delete(c.held, p)
	}
}

func (c *permitsReturn) Finish(f *Facts) Result {
	if f.Lives == nil {
		c.lack("nobody looked at the permits of the nodes")
	}
	for i := range f.Lives {
		c.judge(&f.Lives[i])
	}
	return c.result(c.Name())
}

func (c *permitsReturn) judge(l *Life) {
	name := life{l.Node, l.Number}
	if l.Running > 0 {
		c.lack("%d searches still run on %v", l.Running, name)
		return
	}
	for _, g := range l.Permits {
		c.add("with nothing running, permits are still held", "%v, group %s: %d in %d buckets", name, g.Group, g.Held, g.Buckets)
	}
	for _, p := range c.left(name) {
		c.add("with nothing running, a search has not given its permit back", "%v, bucket %016x, search %s", name, p.bucket, p.search)
	}
}

// left returns the permits of a life that were not given back, sorted.
func (c *permitsReturn) left(of life) []permit {
	var left []permit
	for p := range c.held {
		if p.life == of {
			left = append(left, p)
		}
	}
	slices.SortFunc(left, func(a, b permit) int {
		return cmp.Or(cmp.Compare(a.search, b.search), cmp.Compare(a.bucket, b.bucket))
	})
	return left
}
