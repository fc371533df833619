package check

import (
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// principalStays: no node-to-node byte holds a canary.
type principalStays struct{ findings }

func (c *principalStays) Name() scenario.Promise { return scenario.PrincipalStays }
func (c *principalStays) Kinds() []string        { return nil }
func (c *principalStays) Observe(*history.Event) {}

func (c *principalStays) Finish(f *Facts) Result {
	switch {
	case f.Wire == nil:
		c.lack("nobody searched what nodes sent one another")
	case f.Wire.Sightings > 0:
		c.add("a principal's canary was sent from one node to another", "%d times, first %s", f.Wire.Sightings, f.Wire.First)
	}
	return c.result(c.Name())
}
