package shrink

import (
	"cmp"
	"context"
	"slices"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// simplify makes the schedule of a whole cluster one with fewer preemptions, as
// long as it shows the failure: it is let go on by itself ever earlier, and
// turns of a lane that others come between are put side by side.
func (e *explorer) simplify(ctx context.Context, s *Shrunk) {
	s.keepSeed()
	best, ok := e.repeated(ctx, s.File, &s.Failure, s.Failure.Schedule)
	if !ok {
		return
	}
	s.Failure = simplest(ctx, best, func(schedule explore.Schedule) (*repetition, bool) {
		return e.repeated(ctx, s.File, &s.Failure, schedule)
	}).Failure
}

// simplest returns the simplest failure that it can get to from one; repeated
// says what comes of a schedule.
func simplest(ctx context.Context, best *repetition, repeated func(explore.Schedule) (*repetition, bool)) *repetition {
	better := func(schedule explore.Schedule) bool {
		found, ok := repeated(schedule)
		if ok && found.compare(best) < 0 {
			best = found
			return true
		}
		return false
	}
	for n := 0; n < len(best.Schedule) && ctx.Err() == nil; n++ {
		if n > 0 && best.Schedule[n] == best.Schedule[n-1] {
			continue // to stop here is to stop at the next switch
		}
		if better(best.Schedule[:n]) {
			break
		}
	}
	for i := 1; i < len(best.Schedule) && ctx.Err() == nil; i++ {
		for i < len(best.Schedule) && best.Schedule[i] != best.Schedule[i-1] && ctx.Err() == nil {
			if next := gathered(best.Schedule, i); next == nil || !better(next) {
				break
			}
		}
	}
	return best
}

// gathered returns a schedule whose next turns of the lane of turn i-1 come at
// turn i already, or nil if that lane has no more.
func gathered(s explore.Schedule, i int) explore.Schedule {
	lane := s[i-1]
	from := slices.Index(s[i:], lane)
	if from < 0 {
		return nil
	}
	from += i
	to := from
	for to < len(s) && s[to] == lane {
		to++
	}
	return slices.Concat(s[:i], s[from:to], s[i:from], s[to:])
}

// repetition is a failure whose schedule was executed again, to the same end.
type repetition struct {
	Failure
	preemptions int
}

// compare returns -1 for a simpler schedule than the other one.
func (r *repetition) compare(o *repetition) int {
	return cmp.Or(cmp.Compare(r.preemptions, o.preemptions), cmp.Compare(switches(r.Schedule), switches(o.Schedule)), cmp.Compare(len(r.Schedule), len(o.Schedule)))
}

// switches counts how often another lane takes the next turn.
func switches(s explore.Schedule) int { return len(slices.Compact(slices.Clone(s))) }

// repeated follows a schedule as far as it fits, and says how it fails, if it
// does and if that repeats.
func (e *explorer) repeated(ctx context.Context, f *scenario.File, want *Failure, s explore.Schedule) (*repetition, bool) {
	found, _, ok := e.try(ctx, f, want, explore.Options{Schedule: append(explore.Schedule{}, s...), Loose: true})
	if !ok {
		return nil, false
	}
	r, err := explore.Run(f, explore.Options{Schedule: found.Schedule, Context: ctx})
	if err != nil || len(r.Outcomes) != 1 || shown(r, want) == nil || takesAnotherCourse(r) {
		return nil, false
	}
	return &repetition{found, r.Outcomes[0].Preemptions}, true
}

// takesAnotherCourse says whether a schedule was not seen to repeat.
func takesAnotherCourse(r *explore.Result) bool {
	return slices.ContainsFunc(r.Checks, func(c explore.Check) bool { return c.Name == "explore" })
}
