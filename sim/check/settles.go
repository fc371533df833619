package check

import (
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// settles: after the last fault there is one leader, all members are there,
// all have applied, within the bound.
type settles struct{ findings }

func (c *settles) Name() scenario.Promise { return scenario.Settles }
func (c *settles) Kinds() []string        { return nil }
func (c *settles) Observe(*history.Event) {}

func (c *settles) Finish(f *Facts) Result {
	switch {
	case f.Settle == nil:
		c.lack("nobody waited for the cluster to settle")
	case f.Settle.Err != nil:
		c.add("the cluster did not settle", "%v (given up after %v, the bound is %v)", f.Settle.Err, f.Settle.Took, f.Settle.Bound)
	case f.Settle.Took > f.Settle.Bound:
		c.add("the cluster settled too late", "after %v, the bound is %v", f.Settle.Took, f.Settle.Bound)
	}
	return c.result(c.Name())
}
