package check

import (
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// countersAddUp: per node and life, total_throttled over all groups plus
// uncounted is the number of 429s given.
//
// A 429 was given to each search that reached step wlm.rejected and did not
// run nevertheless. A group that was deleted took its counters along, so what
// was counted on it is known from the events.
type countersAddUp struct {
	findings
	refused map[request]bool
	given   map[life]int
	counted map[life]map[string]uint64 // by group
}

func newCountersAddUp() *countersAddUp {
	return &countersAddUp{refused: map[request]bool{}, given: map[life]int{}, counted: map[life]map[string]uint64{}}
}

func (c *countersAddUp) Name() scenario.Promise { return scenario.CountersAddUp }

func (c *countersAddUp) Kinds() []string {
	return []string{string(probe.Rejected), string(probe.Counted), string(probe.Released), history.RequestAnswered}
}

func (c *countersAddUp) Observe(e *history.Event) {
	switch r := requestOf(e); e.Kind {
	case string(probe.Rejected):
		c.refused[r] = true
		c.given[lifeOf(e)]++
	case string(probe.Counted):
		c.count(lifeOf(e), e.Detail)
	case string(probe.Released):
		if c.refused[r] { // it ran
			c.given[lifeOf(e)]--
			delete(c.refused, r)
		}
	case history.RequestAnswered:
		delete(c.refused, r)
	}
}

func (c *countersAddUp) count(l life, on string) {
	if on == "" {
		return
	}
	if c.counted[l] == nil {
		c.counted[l] = map[string]uint64{}
	}
	c.counted[l][on]++
}

func (c *countersAddUp) Finish(f *Facts) Result {
	if f.Lives == nil {
		c.lack("nobody looked at the counters of the nodes")
	}
	for i := range f.Lives {
		c.judge(&f.Lives[i])
	}
	return c.result(c.Name())
}

func (c *countersAddUp) judge(l *Life) {
	name := life{l.Node, l.Number}
	if l.StatsErr != nil {
		c.lack("the counters of %v cannot be read: %v", name, l.StatsErr)
		return
	}
	inStats, throttled, uncounted := uint64(0), uint64(0), uint64(0)
	counted := c.counted[name]
	ofGone := uint64(0)
	for _, n := range counted {
		ofGone += n
	}
	for _, s := range l.Stats {
		inStats += s.Throttled
		ofGone -= counted[s.ID]
	}
	for _, o := range l.Outcomes {
		throttled += o.Throttled
		uncounted += o.Uncounted
	}
	given := uint64(c.given[name])
	if inStats+ofGone+uncounted != given || throttled != given {
		c.add("the counts of throttled searches do not add up to the 429s given",
			"%v: %d in the counters, %d of deleted groups and %d uncounted, with outcome throttled %d; given %d",
			name, inStats, ofGone, uncounted, throttled, given)
	}
}
