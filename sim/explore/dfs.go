package explore

import (
	"errors"
	"fmt"
)

// errDiverged means that a schedule that was executed before met other steps.
var errDiverged = errors.New("the same schedule took another course")

// point is a place on the path of a depth-first search where a lane is chosen.
type point struct {
	enabled  uint64
	asleep   uint64 // lanes whose turn here leads to nothing new
	tried    uint64 // lanes whose turns here were explored before
	steps    []step
	choice   int
	last     int // lane of the turn before
	preempts int // before this point
}

// dfs explores depth first. It executes each schedule from its start, up to
// where it leaves the one before.
type dfs struct {
	reduce      bool
	preemptions int // at most; negative: no bound
	names       func(int) string

	path  []point // of the execution under way; beyond: spare memory
	depth int     // how many of path were chosen
	floor int     // how many of path are not this search's to change
}

// choose implements [chooser].
func (d *dfs) choose(turn int, enabled uint64, steps []step, last int) (int, error) {
	if turn < d.depth {
		p := &d.path[turn]
		return p.choice, d.compare(turn, p, enabled, steps)
	}
	if len(d.path) == turn {
		d.path = append(d.path, point{steps: make([]step, len(steps))})
	}
	p := &d.path[turn]
	copy(p.steps, steps)
	p.enabled, p.tried, p.last, p.asleep, p.preempts = enabled, 0, last, 0, 0
	if turn > 0 {
		d.inherit(&d.path[turn-1], p)
	}
	rest := d.open(p)
	if rest == 0 {
		return noLane, nil
	}
	p.choice = onward(rest, last)
	d.depth++
	return p.choice, nil
}

// inherit takes over what the point before knows: a lane that sleeps stays
// asleep past a turn that has nothing to do with its own.
func (d *dfs) inherit(before, p *point) {
	p.preempts = before.preempts
	if preempts(before.enabled, before.last, before.choice) {
		p.preempts++
	}
	if !d.reduce {
		return
	}
	for set := before.asleep | before.tried; set != 0; set &= set - 1 {
		z := first(set)
		if z != before.choice && independent(before.steps[z], z, before.steps[before.choice], before.choice) {
			p.asleep |= 1 << z
		}
	}
}

// open returns the lanes that may still be chosen at a point.
func (d *dfs) open(p *point) uint64 {
	rest := p.enabled &^ (p.asleep | p.tried)
	if d.preemptions >= 0 && p.preempts >= d.preemptions && p.last != noLane && p.enabled&(1<<p.last) != 0 {
		rest &= 1 << p.last
	}
	return rest
}

// compare makes sure that an execution comes by the same points as the one
// before.
func (d *dfs) compare(turn int, p *point, enabled uint64, steps []step) error {
	if enabled != p.enabled {
		return fmt.Errorf("%w: before turn %d the lanes %s can go, and could %s before", errDiverged, turn+1, listOf(enabled, d.names), listOf(p.enabled, d.names))
	}
	for set := enabled; set != 0; set &= set - 1 {
		if i := first(set); steps[i] != p.steps[i] {
			return fmt.Errorf("%w: before turn %d lane %s is at %s, and was at %s before", errDiverged, turn+1, d.names(i), steps[i].name, p.steps[i].name)
		}
	}
	return nil
}

// next prepares the next execution; false: every order was explored. It
// implements [row].
func (d *dfs) next() bool {
	for d.depth > d.floor {
		p := &d.path[d.depth-1]
		p.tried |= 1 << p.choice
		if rest := d.open(p); rest != 0 {
			p.choice = onward(rest, p.last)
			return true
		}
		d.depth--
	}
	return false
}
