package explore

import (
	"math/rand/v2"
	"slices"
)

// explore executes schedules until the strategy has no more, and makes sure
// that each outcome's repeats.
func (t *table) explore(o Options) error {
	if err := t.strategy(o); err != nil || o.Until != nil {
		return err
	}
	return t.confirm()
}

// strategy executes the schedules that the options ask for.
func (t *table) strategy(o Options) error {
	draw := rand.New(rand.NewPCG(t.file.Seed, hashOf("explore "+o.Strategy)))
	s := seek{t: t, o: o}
	more := func() bool { return t.schedules < o.Schedules && o.Context.Err() == nil && !s.enough() }
	switch o.Strategy {
	case Replay:
		if o.Loose {
			return t.follow(o.Schedule)
		}
		lanes, err := t.indices(o.Schedule)
		if err != nil {
			return err
		}
		return t.replay(lanes)
	case Random:
		for more() && t.trouble == "" {
			if err := t.execute(&walk{draw}); err != nil {
				return err
			}
		}
		return o.Context.Err()
	case PCT:
		p := &pct{draw: draw, changes: DefaultChanges}
		if o.Preemptions != nil {
			p.changes = *o.Preemptions
		}
		for more() && t.trouble == "" {
			p.restart(len(t.lanes))
			if err := t.execute(p); err != nil {
				return err
			}
		}
		return o.Context.Err()
	}
	d := &dfs{reduce: !o.NoReduction, preemptions: -1, names: t.name}
	if o.Preemptions != nil {
		// A reduced search leaves out orders for the sake of others that may
		// have more preemptions.
		d.preemptions, d.reduce = *o.Preemptions, false
	}
	for t.trouble == "" && o.Context.Err() == nil {
		if err := t.execute(d); err != nil {
			return err
		}
		if !d.next() {
			t.complete = t.trouble == ""
			break
		}
		if o.Schedules > 0 && t.schedules >= o.Schedules || s.enough() {
			break
		}
	}
	return o.Context.Err()
}

// replay executes one schedule.
func (t *table) replay(lanes []int) error {
	for amiss := 0; ; amiss++ {
		t.trouble = ""
		err := t.execute(&replay{lanes: lanes, names: t.name, wrong: t.misfit})
		if err != nil || t.trouble == "" || amiss == t.spare {
			return err
		}
	}
}

// indices returns the numbers of the lanes of a schedule.
func (t *table) indices(s Schedule) ([]int, error) {
	var lanes []int
	for i, name := range s {
		lane := slices.Index(t.lanes, name)
		if lane < 0 {
			return nil, misfit("schedule: turn %d is of lane %q, which is unknown: one of %v", i+1, name, t.lanes)
		}
		lanes = append(lanes, lane)
	}
	return lanes, nil
}
