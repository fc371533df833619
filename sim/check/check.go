package check

import (
	"fmt"
	"slices"

	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Verdict is what a check found out.
type Verdict string

// The verdicts.
const (
	Held      Verdict = "held"
	Broken    Verdict = "broken"
	Undecided Verdict = "undecided"
)

// What a message begins with where a file names the promises that must break.
const (
	AsTold  = "as the file says: "                          // it broke
	ButHeld = "the file says that this breaks, but it held" // it did not
)

// Result is the verdict of one check. Promises have no line in a file, so
// theirs is 0.
type Result struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"` // "" if held
	Line    int     `json:"line"`    // of the file; 0: none
}

// Check watches over one promise in one run.
type Check interface {
	// Name returns the promise.
	Name() scenario.Promise
	// Kinds returns the kinds of events that Observe wants, and no other is
	// handed to it.
	Kinds() []string
	// Observe sees the next event. It keeps no pointer to it.
	Observe(e *history.Event)
	// Finish judges, once, after the last event.
	Finish(f *Facts) Result
}

// All returns new checks for the promises of the names, or for all promises if
// there is none, in the order of [scenario.Promises]. A name that is no promise
// panics: whoever takes names from people has package scenario check them.
func All(names ...scenario.Promise) []Check {
	all := []Check{
		newPermitsBounded(), newPermitsReturn(), newOneOutcome(), newCountersAddUp(), newRejectionAttribution(),
		newRejectionKept(), &principalStays{}, newBucketsDistinct(), newVersionsForward(), &statesEqual{},
		&historyLinearizable{}, &settles{},
	}
	if len(names) == 0 {
		return all
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name() == name }) {
			panic(fmt.Sprintf("check: %q is no promise", name))
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(names, c.Name()) })
}

// Set is checks that watch over one run together. Make it with [NewSet].
type Set struct {
	checks []Check
	wants  map[string][]int // by kind of event: which checks
	event  history.Event    // the one that is handed out, so that none is allocated
}

// NewSet returns a set of checks; see [All] for the names.
func NewSet(names ...scenario.Promise) *Set {
	s := &Set{checks: All(names...), wants: map[string][]int{}}
	for i, c := range s.checks {
		for _, kind := range c.Kinds() {
			s.wants[kind] = append(s.wants[kind], i)
		}
	}
	return s
}

// Reset makes the set as good as new, for another run.
func (s *Set) Reset() {
	for _, c := range s.checks {
		c.(resetter).reset()
	}
}

// Observe hands the next event to the checks that want it.
func (s *Set) Observe(e history.Event) {
	wanted := s.wants[e.Kind]
	if len(wanted) == 0 {
		return
	}
	s.event = e
	for _, i := range wanted {
		s.checks[i].Observe(&s.event)
	}
}

// Finish returns the results of all checks, in order. It is called once,
// unless the set is reset.
func (s *Set) Finish(f *Facts) []Result { return s.AppendFinish(make([]Result, 0, len(s.checks)), f) }

// AppendFinish is [Set.Finish] for who has the memory of the results.
func (s *Set) AppendFinish(results []Result, f *Facts) []Result {
	for _, c := range s.checks {
		results = append(results, c.Finish(f))
	}
	return results
}
