package wlm

import (
	"strconv"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Rejection is the error of a search that found its bucket full.
type Rejection struct {
	// Refusal has the kind [cluster.TooMany] and the pull request's text.
	Refusal cluster.Error
	Group   string // id
	// Counted says whether total_throttled of some group went up for it. Under
	// missing_counters: default_group that may be another group than its own;
	// the detail of step wlm.counted names it.
	Counted bool
}

// Error returns the text for the client.
func (r *Rejection) Error() string { return r.Refusal.Reason }

// Unwrap returns the [*cluster.Error].
func (r *Rejection) Unwrap() error { return &r.Refusal }

// refusal returns the error of a search refused by a limit.
func refusal(limit int) cluster.Error {
	return cluster.Error{
		Kind:   cluster.TooMany,
		Reason: "Node-level workload group throttle limit reached: " + strconv.Itoa(limit) + " concurrent in-flight requests",
	}
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
	r := &Rejection{Refusal: refusal(a.limit), Group: a.key.group, Counted: on != ""}
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
