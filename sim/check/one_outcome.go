package check

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// oneOutcome: each search that was sent has exactly one outcome on its
// coordinator, and its client saw it.
//
// A search that a coordinator began reached step coordinator.state_read. Its
// books must have as many outcomes as searches it began, and of each kind as
// many as its clients saw, give or take those whose clients saw nothing.
type oneOutcome struct {
	findings
	open    map[request]sent
	lives   map[life]*tally
	unbegun map[string]uint64 // by node: searches that no coordinator began
}

// sent is a search between its sending and its answer.
type sent struct {
	begun    life // zero: by no coordinator
	rejected bool
}

// kind is how a search ended for its client.
type kind uint8

const (
	unseen kind = iota
	completed
	throttled
	failed // or cancelled: a client that left cannot tell
	kinds
)

var kindNames = [kinds]string{"unseen", "completed", "throttled", "failed or cancelled"}

// tally counts the searches of one life.
type tally struct {
	begun uint64
	seen  [kinds]uint64
}

func newOneOutcome() *oneOutcome {
	return &oneOutcome{open: map[request]sent{}, lives: map[life]*tally{}, unbegun: map[string]uint64{}}
}

func (c *oneOutcome) Name() scenario.Promise { return scenario.OneOutcome }

func (c *oneOutcome) Kinds() []string {
	return []string{history.RequestSent, string(probe.CoordinatorRead), string(probe.Rejected), history.RequestAnswered}
}

func (c *oneOutcome) Observe(e *history.Event) {
	r := requestOf(e)
	s, known := c.open[r]
	switch e.Kind {
	case history.RequestSent:
		if known {
			c.lack("search %s was sent to node %s a second time before its answer was there", r.search, r.node)
		}
		c.open[r] = sent{}
	case string(probe.CoordinatorRead):
		c.begin(e, r, s, known)
	case string(probe.Rejected):
		if known {
			s.rejected = true
			c.open[r] = s
		}
	case history.RequestAnswered:
		c.answer(e, s, known)
		delete(c.open, r)
	}
}

func (c *oneOutcome) begin(e *history.Event, r request, s sent, known bool) {
	l := lifeOf(e)
	c.of(l).begun++
	switch {
	case !known:
		c.of(l).seen[unseen]++ // nobody that we know of waits for it
	case s.begun != life{}:
		c.of(l).seen[unseen]++
		c.add("a search was begun twice", "node %s, search %s, at %v", e.Node, e.Search, e.At)
	default:
		s.begun = l
		c.open[r] = s
	}
}

func (c *oneOutcome) answer(e *history.Event, s sent, known bool) {
	if !known {
		c.add("a client had an answer to a search that was not under way", "node %s, search %s, status %d, at %v", e.Node, e.Search, e.Status, e.At)
		return
	}
	k := kindOf(e.Status, s.rejected)
	if s.begun != (life{}) {
		c.of(s.begun).seen[k]++
		return
	}
	c.unbegun[e.Node]++
	if k == completed {
		c.add("a client had an answer to a search that no coordinator began", "node %s, search %s, status %d, at %v", e.Node, e.Search, e.Status, e.At)
	}
}

// kindOf says how a search ended by the status of its answer. A search whose
// shards were all refused by data nodes has status 429 too and has failed.
func kindOf(status int, rejected bool) kind {
	switch {
	case status == 0:
		return unseen
	case status == http.StatusOK:
		return completed
	case status == http.StatusTooManyRequests && rejected:
		return throttled
	}
	return failed
}

func (c *oneOutcome) of(l life) *tally {
	t := c.lives[l]
	if t == nil {
		t = &tally{}
		c.lives[l] = t
	}
	return t
}

func (c *oneOutcome) Finish(f *Facts) Result {
	for _, r := range c.unanswered() {
		c.add("the client of a search saw no outcome", "node %s, search %s", r.node, r.search)
	}
	if f.Lives == nil {
		c.lack("nobody looked at the outcomes of the nodes")
		return c.result(c.Name())
	}
	for i := range f.Lives {
		c.judge(&f.Lives[i])
	}
	return c.result(c.Name())
}

func (c *oneOutcome) unanswered() []request {
	var left []request
	for r := range c.open {
		left = append(left, r)
	}
	slices.SortFunc(left, func(a, b request) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.search, b.search)) })
	return left
}

// judge compares the books of a life with what was seen of it.
func (c *oneOutcome) judge(l *Life) {
	name := life{l.Node, l.Number}
	if l.Running > 0 {
		c.lack("%d searches still run on %v", l.Running, name)
		return
	}
	t := c.of(name)
	var books [kinds]uint64
	for _, o := range l.Outcomes {
		books[completed] += o.Completed
		books[throttled] += o.Throttled
		books[failed] += o.Failed + o.Cancelled
	}
	// A coordinator that closes fails searches without beginning them.
	total, spare := books[completed]+books[throttled]+books[failed], c.unbegun[l.Node]
	if total < t.begun || total > t.begun+spare {
		c.add("a coordinator has not one outcome for each search that it began", "%v: %d outcomes, %d begun, %d sent and not begun", name, total, t.begun, spare)
		return
	}
	for k := completed; k < kinds; k++ {
		most := t.seen[k] + t.seen[unseen]
		if k == failed {
			most += spare
		}
		if books[k] < t.seen[k] || books[k] > most {
			c.add("the outcomes on a coordinator are not those that clients saw",
				"%v: %s %d, while clients saw %d, and of %d nothing", name, kindNames[k], books[k], t.seen[k], t.seen[unseen])
		}
	}
}
