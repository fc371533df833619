package explore

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// explore executes schedules until the strategy has no more, and makes sure
// that each outcome's repeats.
func (t *table) explore(o Options) error {
	if err := t.strategy(o); err != nil || o.Until != nil {
		return err
	}
	err := t.within(func() error { return t.confirm(o.Context) })
	t.complete = t.complete && t.trouble == "" // who knows which orders those were
	return err
}

// strategy executes the schedules that the options ask for.
func (t *table) strategy(o Options) (err error) {
	if o.Strategy == Replay {
		return t.within(func() error { return t.given(o) })
	}
	p := pursuit{t: t, o: o, seek: seek{t: t, o: o}}
	defer func() {
		if failed := p.end(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	switch o.Strategy {
	case Random:
		_, err = p.follow(t.draws(o, 0, o.Schedules, func(draw *rand.Rand) chooser { return &walk{draw} }))
	case PCT:
		err = t.pct(&p)
	default:
		var all bool
		all, err = p.follow(t.dfs(o))
		t.complete = all && err == nil && t.trouble == ""
	}
	return err
}

// dfs returns the row of every order.
func (t *table) dfs(o Options) *dfs {
	d := &dfs{reduce: !o.NoReduction, preemptions: -1, names: t.name}
	if o.Preemptions != nil {
		// A reduced search leaves out orders for the sake of others that may
		// have more preemptions.
		d.preemptions, d.reduce = *o.Preemptions, false
	}
	return d
}

// draws returns the row of drawn schedules of some numbers.
func (t *table) draws(o Options, from, to int, with func(*rand.Rand) chooser) *draws {
	return &draws{seed: t.file.Seed ^ hashOf("explore "+o.Strategy), from: from, to: to, with: with}
}

// pct follows rows that are each as long as all before it together: where the
// priorities of an execution change depends on how many turns those before the
// row had.
func (t *table) pct(p *pursuit) error {
	changes := DefaultChanges
	if t.whole {
		changes = 0
	}
	if p.o.Preemptions != nil {
		changes = *p.o.Preemptions
	}
	for from, to := 0, 1; from < p.o.Schedules; from, to = to, 2*to {
		turns := t.longest
		all, err := p.follow(t.draws(p.o, from, min(to, p.o.Schedules), func(draw *rand.Rand) chooser {
			if t.whole {
				return newSampling(draw, len(t.lanes), changes, turns)
			}
			one := &pct{draw: draw, changes: changes, turns: turns}
			one.restart(len(t.lanes))
			return one
		}))
		if !all || p.over || err != nil {
			return err
		}
	}
	return nil
}

// pursuit executes rows of schedules.
type pursuit struct {
	t    *table
	o    Options
	seek seek
	crew *crew // nil: one worker has sufficed so far
	over bool  // nothing more is asked for
}

// follow executes a row until nothing more is asked for, and says whether it
// came to the row's end.
func (p *pursuit) follow(r row) (all bool, err error) {
	if err := p.o.Context.Err(); err != nil {
		return false, err
	}
	if p.crew == nil {
		var more bool
		if all, more, err = p.start(r); all || !more || err != nil {
			return all, err
		}
		p.crew = newCrew(p.o.Workers, p.t.portion, p.t.hire)
	}
	return p.crew.work(r, func(one *record) (bool, error) {
		if err := p.t.enter(one); err != nil {
			return false, err
		}
		return p.goesOn()
	})
}

// start executes the beginning of a row, which is all of most rows, or all of it
// if there is to be one worker.
func (p *pursuit) start(r row) (all, more bool, err error) {
	most := 2 * p.t.portion
	if p.o.Workers == 1 {
		most = math.MaxInt
	}
	err = p.t.within(func() error {
		for n := 0; n < most; n++ {
			if err := p.t.execute(r.chooser()); err != nil {
				return err
			}
			var err error
			if more, err = p.goesOn(); err != nil {
				return err
			}
			if all = !r.next() && p.t.trouble == ""; all || !more {
				return nil
			}
		}
		return nil
	})
	return all, more, err
}

// goesOn says whether a further schedule is asked for.
func (p *pursuit) goesOn() (bool, error) {
	if err := p.o.Context.Err(); err != nil {
		return false, err
	}
	t := p.t
	p.over = t.trouble != "" || p.o.Schedules > 0 && t.schedules >= p.o.Schedules || p.seek.enough()
	return !p.over, nil
}

// end ends the workers.
func (p *pursuit) end() error {
	if p.crew == nil {
		return nil
	}
	return p.crew.close()
}

// given executes the schedule of the options.
func (t *table) given(o Options) error {
	if o.Loose {
		return t.follow(o.Schedule)
	}
	lanes, err := t.indices(o.Schedule)
	if err != nil {
		return err
	}
	return t.replay(lanes)
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
