package explore

import "math/rand/v2"

// sampling is what [PCT] is for a whole cluster, most of whose turns are
// messages that have little to do with one another. Not the lanes have random
// priorities but their turns: each draws its own when the turn before it in its
// lane has been taken, and the highest that can be taken is. So a step that has
// drawn little stays behind while many others pass it, whatever lanes those are
// of. At some random turns the one that would be taken falls below all others,
// if so many are asked for. Source: Yuan, Yang and Gu, Partial Order Aware
// Concurrency Sampling, 2018, in its basic form.
type sampling struct {
	draw     *rand.Rand
	priority []float64    // of the next turn of each lane
	falls    map[int]bool // turns at which the one that would be taken falls
	lowest   float64
}

// newSampling draws the first priorities of an execution of so many lanes, and
// its changes, among so many turns.
func newSampling(draw *rand.Rand, lanes, changes, turns int) *sampling {
	s := &sampling{draw: draw, falls: map[int]bool{}}
	for range lanes {
		s.priority = append(s.priority, draw.Float64())
	}
	for range changes {
		s.falls[draw.IntN(max(turns, 1))] = true
	}
	return s
}

// choose implements [chooser].
func (s *sampling) choose(turn int, enabled uint64, _ []step, _ int) (int, error) {
	if s.falls[turn] {
		s.lowest--
		s.priority[s.best(enabled)] = s.lowest
	}
	next := s.best(enabled)
	s.priority[next] = s.draw.Float64()
	return next, nil
}

func (s *sampling) best(enabled uint64) int {
	best := first(enabled)
	for set := enabled; set != 0; set &= set - 1 {
		if i := first(set); s.priority[i] > s.priority[best] {
			best = i
		}
	}
	return best
}
