package wlm

import (
	"strconv"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Rejection is the error of a search that found its bucket full. Its text is
// made when somebody asks for it, since under a storm of refusals few do.
type Rejection struct {
	Group string // id
	Limit int    // node_limit, by which the search was judged
	// Counted says whether total_throttled of some group went up for it. Under
	// missing_counters: default_group that may be another group than its own;
	// the detail of step wlm.counted names it.
	Counted bool

	text text // nil: nodeLevel
}

// Error returns the text for the client. Under rejection_text: names_group it
// names the user or role that was charged, and is for nobody else's eyes.
func (r *Rejection) Error() string {
	if r.text == nil {
		return nodeLevel{}.of(r.Limit)
	}
	return r.text.of(r.Limit)
}

// Unwrap returns the refusal as a [*cluster.Error] of kind [cluster.TooMany].
func (r *Rejection) Unwrap() error {
	return &cluster.Error{Kind: cluster.TooMany, Reason: r.Error()}
}

// text is what a throttled client reads; it keeps no more than it names.
type text interface {
	of(limit int) string
}

// rejectionText returns the text of a refusal by a group and the key of its
// bucket.
type rejectionText interface {
	about(g *cluster.Group, key bucketKey) text
}

func newRejectionText(s RejectionText) rejectionText {
	if s == TextNamesGroup {
		return namesGroup{}
	}
	return nodeLevel{}
}

type nodeLevel struct{}

func (nodeLevel) about(*cluster.Group, bucketKey) text { return nil }

func (nodeLevel) of(limit int) string {
	return "Node-level workload group throttle limit reached: " + strconv.Itoa(limit) + " concurrent in-flight requests"
}

type namesGroup struct{ name, by string }

func (namesGroup) about(g *cluster.Group, key bucketKey) text {
	n := namesGroup{name: g.Name}
	if key.attribute != cluster.ByGroup {
		n.by = " for " + string(key.attribute) + " [" + key.value + "]"
	}
	return n
}

func (n namesGroup) of(limit int) string {
	return "Request throttled: workload group [" + n.name + "]" + n.by + " reached its per-node limit of " + strconv.Itoa(limit) + " concurrent requests."
}

// fullBucket says what becomes of a search that found its bucket full.
type fullBucket interface {
	found(t *Throttle, g *cluster.Group, a attempt, held int, p *Permit) error
	// show adds to the statistics what is counted beside them.
	show(s *GroupStats, c *counters)
}

func newFullBucket(s Monitor) fullBucket {
	if s == MonitorObserves {
		return observes{}
	}
	return rejects{}
}

type rejects struct{}

func (rejects) found(t *Throttle, g *cluster.Group, a attempt, held int, _ *Permit) error {
	return t.reject(g, a, held)
}

func (rejects) show(*GroupStats, *counters) {}

// observes lets the searches of groups in mode monitor pass.
type observes struct{}

func (observes) found(t *Throttle, g *cluster.Group, a attempt, held int, p *Permit) error {
	if g.ResiliencyMode != cluster.Monitor {
		return t.reject(g, a, held)
	}
	t.observe(a, held)
	p.counted = true
	return nil
}

func (observes) show(s *GroupStats, c *counters) { s.WouldThrottle = new(c.wouldThrottle.Load()) }

// observe counts a search that would have been refused. A count that fails
// changes nothing.
func (t *Throttle) observe(a attempt, held int) {
	if t.probe.On() {
		t.probe.At(a.event(probe.Observed, held, probe.ReadMap|probe.WriteCounters))
	}
	if _, err := t.count(a.key.group, wouldThrottle); err != nil {
		t.log.Warn("a search that would have been throttled was not counted", "group", a.key.group, "error", err)
	}
}

// reject counts a refusal and returns it, or what the failure of the count
// makes of it.
func (t *Throttle) reject(g *cluster.Group, a attempt, held int) error {
	if t.probe.On() {
		t.probe.At(a.event(probe.Rejected, held, 0))
		t.probe.At(a.event(probe.MapRead, held, probe.ReadMap|probe.WriteCounters))
	}
	on, err := t.count(a.key.group, throttled)
	if t.probe.On() {
		counted := a.event(probe.Counted, held, 0)
		counted.Detail = on
		t.probe.At(counted)
	}
	r := &Rejection{Group: a.key.group, Limit: a.limit, Counted: on != "", text: t.text.about(g, a.key)}
	if err != nil {
		return t.failure.after(t, r, err)
	}
	return r
}

// countFailure says what Admit returns for a rejection whose count failed.
type countFailure interface {
	after(t *Throttle, r *Rejection, err error) error
}

func newCountFailure(s CountFailure) countFailure {
	if s == FailureSwallowsRejection {
		return swallowsRejection{}
	}
	return keepsRejection{}
}

type keepsRejection struct{}

func (keepsRejection) after(t *Throttle, r *Rejection, err error) error {
	t.log.Warn("a throttled search was not counted", "group", r.Group, "error", err)
	return r
}

type swallowsRejection struct{}

func (swallowsRejection) after(t *Throttle, r *Rejection, err error) error {
	t.log.Warn("a search is admitted although its bucket is full, since it could not be counted", "group", r.Group, "error", err)
	t.failedOpen.Add(1)
	return nil
}
