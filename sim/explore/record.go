package explore

import (
	"errors"
	"fmt"

	"github.com/wlmsim/wlmsim/sim/check"
)

// record is what came of one execution. Its memory is used again.
type record struct {
	turns   []uint8
	whole   bool   // no lane could take a further turn
	preempt int    // how often a lane was preempted
	err     error  // why the schedule could not be executed
	trouble string // why nothing can be said of it
	key     []byte // of its outcome
	values  []any
	results []check.Result // of the promises that did not hold
}

// spoilt says whether whoever executed the schedule may be in no state to
// execute another.
func (r *record) spoilt() bool { return r.err != nil || r.trouble != "" }

// try executes a schedule and notes what came of it, without taking it in.
func (t *table) try(c chooser, r *record) {
	r.preempt, t.counting = 0, counting{chooser: c, preemptions: &r.preempt}
	r.turns, r.whole, _, r.err = t.run(&t.counting, r.turns[:0], false)
	r.trouble, t.trouble = t.trouble, ""
	if errors.Is(r.err, errDiverged) || errors.Is(r.err, errTooLong) {
		r.trouble, r.err = fmt.Sprintf("%v; schedule: %s", r.err, t.schedule(r.turns)), nil
	}
	r.results = r.results[:0]
	if !r.whole || r.spoilt() {
		return
	}
	r.key, t.key = t.key, r.key
	r.values, t.values = t.values, r.values
	for _, one := range t.results {
		if one.Verdict != check.Held {
			r.results = append(r.results, one)
		}
	}
}

// enter takes an execution in. The error is one of the schedule that was asked
// for.
func (t *table) enter(r *record) error {
	switch {
	case r.err != nil:
		return r.err
	case r.trouble != "":
		t.trouble = r.trouble
	case !r.whole:
		t.pruned++
	default:
		t.schedules++
		t.longest = max(t.longest, len(r.turns))
		t.take(r)
	}
	return nil
}

// execute executes one schedule and takes it in.
func (t *table) execute(c chooser) error {
	t.try(c, &t.last)
	return t.enter(&t.last)
}
