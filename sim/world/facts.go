package world

import (
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
)

// facts collects what only the end of a run shows.
func (w *world) facts(took time.Duration, unsettled error) *check.Facts {
	f := &check.Facts{
		Lives: []check.Life{}, States: []check.NodeState{}, Operations: w.record.operations(),
		Settle: &check.Settle{Bound: w.settleBound(), Took: took, Err: unsettled},
	}
	for _, m := range w.list() {
		for _, l := range m.all() {
			f.Lives = append(f.Lives, books(l))
		}
	}
	for _, m := range w.expected() {
		if l := m.current.Load(); l != nil {
			f.States = append(f.States, check.NodeState{Node: m.name, State: l.node.State()})
		}
	}
	found, sightings := w.search.Found()
	f.Wire = &check.Wire{Sightings: sightings}
	if len(found) > 0 {
		f.Wire.First = found[0].String()
	}
	return f
}

// books are what a life has counted.
func books(l *life) check.Life {
	stats, err := l.node.Throttle().Stats(nil)
	return check.Life{
		Node: l.m.name, Number: l.number, Running: l.node.Coordinator().Running(),
		Permits: l.node.Throttle().Permits(), Stats: stats, StatsErr: err, Outcomes: l.node.Coordinator().Outcomes(),
	}
}
