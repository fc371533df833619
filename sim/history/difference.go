package history

import (
	"fmt"
	"strings"
)

// ContextEvents is how many equal events a [Difference] shows before the first
// one that differs.
const ContextEvents = 5

// Difference is the first place where two histories differ.
type Difference struct {
	Index  int     // of the event in both, from 0 on
	Before []Event // up to [ContextEvents] equal ones before it
	A, B   *Event  // the events there; nil where a history has ended
}

// FirstDifference compares two histories event by event, time and all. It
// returns nil if they are equal.
func FirstDifference(a, b []Event) *Difference {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return nil
	}
	d := &Difference{Index: i, Before: a[max(0, i-ContextEvents):i]}
	if i < len(a) {
		d.A = &a[i]
	}
	if i < len(b) {
		d.B = &b[i]
	}
	return d
}

// String returns the difference for people: the equal events before it, and
// then the two that differ.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the histories differ from event %d on\n", d.Index+1)
	for _, e := range d.Before {
		fmt.Fprintf(&b, "   both  %v\n", e)
	}
	fmt.Fprintf(&b, "   first %s\n   other %s\n", orEnd(d.A), orEnd(d.B))
	return b.String()
}

func orEnd(e *Event) string {
	if e == nil {
		return "(has ended)"
	}
	return e.String()
}
