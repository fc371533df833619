package check

import (
	"net/http"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// rejectionKept: whoever found the bucket full was refused. After step
// wlm.rejected a search reaches no step of one that runs, and its client sees
// 429, or no answer at all.
type rejectionKept struct {
	findings
	refused map[request]bool
}

func newRejectionKept() *rejectionKept { return &rejectionKept{refused: map[request]bool{}} }

func (c *rejectionKept) Name() scenario.Promise { return scenario.RejectionKept }

func (c *rejectionKept) Kinds() []string {
	return []string{
		string(probe.Rejected), string(probe.FannedOut), string(probe.Merged), string(probe.Released), history.RequestAnswered,
	}
}

func (c *rejectionKept) Observe(e *history.Event) {
	r := requestOf(e)
	if e.Kind == string(probe.Rejected) {
		c.refused[r] = true
		return
	}
	if !c.refused[r] {
		return
	}
	delete(c.refused, r) // it is told once of each
	switch {
	case e.Kind != history.RequestAnswered:
		c.add("a search that found its bucket full was run all the same", "%v, group %s, search %s reached %s at %v", lifeOf(e), e.Group, e.Search, e.Kind, e.At)
	case e.Status != 0 && e.Status != http.StatusTooManyRequests:
		c.add("a search that found its bucket full was not answered with 429", "node %s, search %s was answered with %d at %v", e.Node, e.Search, e.Status, e.At)
	}
}

func (c *rejectionKept) Finish(*Facts) Result { return c.result(c.Name()) }
