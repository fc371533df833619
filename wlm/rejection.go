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
}

// Error returns the text for the client, the pull request's.
func (r *Rejection) Error() string {
	return "Node-level workload group throttle limit reached: " + strconv.Itoa(r.Limit) + " concurrent in-flight requests"
}

// Unwrap returns the refusal as a [*cluster.Error] of kind [cluster.TooMany].
func (r *Rejection) Unwrap() error {
	return &cluster.Error{Kind: cluster.TooMany, Reason: r.Error()}
}

// reject counts a refusal and returns it, or what the failure of the count
// makes of it.
func (t *Throttle) reject(a attempt, held int) error {
	if t.probe.On() {
		t.probe.At(a.event(probe.Rejected, held, 0))
		t.probe.At(a.event(probe.MapRead, held, probe.ReadMap|probe.WriteCounters))
	}
	on, err := t.count(a.key.group)
	if t.probe.On() {
		counted := a.event(probe.Counted, held, 0)
		counted.Detail = on
		t.probe.At(counted)
	}
	r := &Rejection{Group: a.key.group, Limit: a.limit, Counted: on != ""}
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
