package explore

import (
	"fmt"
	"math/rand/v2"
)

// walk chooses each turn at random, every lane that can go alike.
type walk struct{ draw *rand.Rand }

// choose implements [chooser].
func (w *walk) choose(_ int, enabled uint64, _ []step, _ int) (int, error) {
	lanes := make([]int, 0, maxLanes)
	for set := enabled; set != 0; set &= set - 1 {
		lanes = append(lanes, first(set))
	}
	return lanes[w.draw.IntN(len(lanes))], nil
}

// pct is probabilistic concurrency testing: lanes have random priorities, the
// highest that can go does, and at some random turns the one that would go
// falls below all others. An order that needs d such turns is met with a chance
// of at least 1 in lanes × turns^d. Source: Burckhardt, Kothari, Musuvathi and
// Nagarakatte, A Randomized Scheduler with Probabilistic Guarantees of Finding
// Bugs, 2010.
type pct struct {
	draw    *rand.Rand
	changes int // turns at which priorities change
	turns   int // among which they do

	priority []int
	lowest   int
	at       map[int]bool
}

// restart draws the priorities and changes of one execution.
func (p *pct) restart(lanes int) {
	p.priority = p.draw.Perm(lanes)
	p.lowest = -1
	p.at = map[int]bool{}
	for range p.changes {
		p.at[p.draw.IntN(max(p.turns, 1))] = true
	}
}

// choose implements [chooser].
func (p *pct) choose(turn int, enabled uint64, _ []step, _ int) (int, error) {
	if p.at[turn] {
		p.priority[p.best(enabled)] = p.lowest
		p.lowest--
	}
	return p.best(enabled), nil
}

func (p *pct) best(enabled uint64) int {
	best := first(enabled)
	for set := enabled; set != 0; set &= set - 1 {
		if i := first(set); p.priority[i] > p.priority[best] {
			best = i
		}
	}
	return best
}

// replay follows a schedule, and goes on without preemptions where it ends.
type replay struct {
	lanes []int
	names func(int) string
	// wrong is in the chain of the error when a lane cannot take its turn:
	// [ErrUsage] where the schedule must be wrong, [errDiverged] where the course
	// may be another one than before.
	wrong error
}

// choose implements [chooser].
func (r *replay) choose(turn int, enabled uint64, _ []step, last int) (int, error) {
	if turn >= len(r.lanes) {
		return onward(enabled, last), nil
	}
	next := r.lanes[turn]
	if enabled&(1<<next) == 0 {
		return noLane, fmt.Errorf("%w: schedule: lane %s cannot take turn %d: it has ended, or waits for another; %s can", r.wrong, r.names(next), turn+1, listOf(enabled, r.names))
	}
	return next, nil
}

// listOf writes a set of lanes.
func listOf(set uint64, names func(int) string) string {
	var s Schedule
	for ; set != 0; set &= set - 1 {
		s = append(s, names(first(set)))
	}
	return "[" + s.String() + "]"
}
