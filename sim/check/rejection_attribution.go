package check

import (
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// rejectionAttribution: no rejection is counted on another group than its own.
// Each count says on which group it was; and at the end no group has more
// counts than it had rejections.
type rejectionAttribution struct {
	findings
	rejected map[groupOf]uint64
}

func newRejectionAttribution() *rejectionAttribution {
	return &rejectionAttribution{rejected: map[groupOf]uint64{}}
}

func (c *rejectionAttribution) Name() scenario.Promise { return scenario.RejectionAttribution }

func (c *rejectionAttribution) Kinds() []string {
	return []string{string(probe.Rejected), string(probe.Counted)}
}

func (c *rejectionAttribution) Observe(e *history.Event) {
	if e.Kind == string(probe.Rejected) {
		c.rejected[groupOf{lifeOf(e), e.Group}]++
		return
	}
	if on := e.Detail; on != "" && on != e.Group {
		c.add("a rejection was counted on another group than its own", "%v, search %s of group %s was counted on %s at %v", lifeOf(e), e.Search, e.Group, on, e.At)
	}
}

func (c *rejectionAttribution) Finish(f *Facts) Result {
	if f.Lives == nil {
		c.lack("nobody looked at the counters of the nodes")
	}
	for i := range f.Lives {
		l := &f.Lives[i]
		name := life{l.Node, l.Number}
		if l.StatsErr != nil {
			c.lack("the counters of %v cannot be read: %v", name, l.StatsErr)
			continue
		}
		for _, s := range l.Stats {
			if n := c.rejected[groupOf{name, s.ID}]; s.Throttled > n {
				c.add("a group has more throttled searches counted than it had rejections", "%v, group %s: %d counted, %d rejections", name, s.ID, s.Throttled, n)
			}
		}
	}
	return c.result(c.Name())
}
