package shrink

import (
	"context"
	"fmt"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Bounds of the schedules of one smaller file: what fails in a small program
// fails soon.
const (
	quickSchedules = 500 // with dfs, of a quick look
	maxSchedules   = 5_000
	portion        = 100 // of drawn schedules, after which another seed draws
	wholePortion   = 10  // of a whole cluster
	quickPortions  = 2
	maxPortions    = 5
	firstPortions  = 30 // of the file that broke, whose schedules were others
)

// Explore makes a file smaller whose exploration broke: broken is what
// [explore.Run] said of it. Every smaller file is explored with the same
// strategy, and one that explores a single node in place of a whole cluster in
// every order. Where schedules are drawn, that is done by seeds, one after the
// other, after the schedule of the larger file was followed as far as it fits;
// the file that comes out has the seed that failed.
func Explore(ctx context.Context, f *scenario.File, broken *explore.Result, l Limits) (*Shrunk, error) {
	l = l.withDefaults()
	if err := l.check(); err != nil {
		return nil, err
	}
	f, err := f.For(broken.Profile).Changed(func(g *scenario.File) { g.Load, g.Steps, g.Expect = nil, nil, nil })
	if err != nil {
		return nil, err
	}
	var checks results
	for _, c := range broken.Checks {
		checks = append(checks, c.Result)
	}
	failure, ok := failureOf(f, checks)
	if !ok {
		return nil, ErrNothing
	}
	e := &explorer{strategy: broken.Strategy, whole: explore.Whole(f), seed: f.Seed, held: map[string]bool{}}
	if e.strategy == explore.Replay { // one schedule says nothing about smaller files
		e.strategy = explore.DFS
	}
	for _, c := range broken.Checks {
		if failure.Is(&c.Result) {
			if e.schedule, err = explore.ParseSchedule(c.Schedule); err != nil {
				return nil, err
			}
		}
	}
	return shrink(ctx, f, failure, e, l)
}

// explorer probes by exploring.
type explorer struct {
	strategy string
	whole    bool             // the file that broke explores a whole cluster
	seed     uint64           // that failed last, where schedules are drawn
	schedule explore.Schedule // of the last failure
	held     map[string]bool  // by text: files that hold in every order
	quick    bool
	count    int
}

func (e *explorer) tried() int        { return e.count }
func (e *explorer) hasten(quick bool) { e.quick = quick }

// draws says whether the schedules of a file are drawn.
func (e *explorer) draws(f *scenario.File) bool {
	return explore.Whole(f) || !e.whole && e.strategy != explore.DFS
}

func (e *explorer) probe(ctx context.Context, f *scenario.File, want *Failure) (found Failure, ok bool) {
	e.count++
	text := string(scenario.Print(f))
	switch {
	case e.held[text]:
		return Failure{}, false
	case e.draws(f):
		found, ok = e.drawn(ctx, f, want)
	default:
		found, ok = e.every(ctx, f, want, text)
	}
	return found, ok
}

func (e *explorer) met(ctx context.Context, f *scenario.File, want *Failure) bool {
	_, ok := e.probe(ctx, f, want)
	return ok
}

func (e *explorer) take(found *Failure) { e.seed, e.schedule = found.Seed, found.Schedule }

// every tries every order, or many.
func (e *explorer) every(ctx context.Context, f *scenario.File, want *Failure, text string) (Failure, bool) {
	o := explore.Options{Strategy: explore.DFS, Schedules: maxSchedules}
	if e.quick {
		o.Schedules = quickSchedules
	}
	found, r, ok := e.try(ctx, f, want, o)
	e.held[text] = !ok && r != nil && r.Complete
	return found, ok
}

// drawn follows the schedule that failed last, and draws a portion of schedules
// by each of a few seeds.
func (e *explorer) drawn(ctx context.Context, f *scenario.File, want *Failure) (Failure, bool) {
	if found, _, ok := e.try(ctx, f, want, explore.Options{Schedule: append(explore.Schedule{}, e.schedule...), Loose: true}); ok {
		return found, true
	}
	portions := maxPortions
	switch {
	case e.count == 1:
		portions = firstPortions
	case e.quick:
		portions = quickPortions
	}
	for n := range portions {
		seed := e.seed + uint64(n)
		g, err := f.Changed(func(g *scenario.File) { g.Seed = seed })
		if err != nil || ctx.Err() != nil {
			break
		}
		if found, _, ok := e.try(ctx, g, want, e.share(f, n)); ok {
			return found, true
		}
	}
	return Failure{}, false
}

// share is the nth portion of drawn schedules. In a whole cluster, what a random
// walk hardly meets pct may meet soon, and the other way round.
func (e *explorer) share(f *scenario.File, n int) explore.Options {
	o := explore.Options{Strategy: e.strategy, Schedules: portion}
	if explore.Whole(f) {
		o.Schedules = wholePortion
		o.Strategy = []string{explore.Random, explore.PCT}[n%2]
	}
	return o
}

// try explores a file until it fails.
func (e *explorer) try(ctx context.Context, f *scenario.File, want *Failure, o explore.Options) (Failure, *explore.Result, bool) {
	o.Context = ctx
	o.Until = func(r *explore.Result) bool { return shown(r, want) != nil }
	r, err := explore.Run(f, o)
	if err != nil {
		return Failure{}, nil, false
	}
	c := shown(r, want)
	if c == nil {
		return Failure{}, r, false
	}
	s, err := explore.ParseSchedule(c.Schedule)
	return Failure{Check: c.Name, Message: c.Message, Schedule: s, Seed: f.Seed}, r, err == nil
}

// shown returns what shows a failure, or nil.
func shown(r *explore.Result, want *Failure) *explore.Check {
	for i := range r.Checks {
		if c := &r.Checks[i]; want.Is(&c.Result) {
			return c
		}
	}
	return nil
}

// settle looks for the schedule with the fewest preemptions: of one node with
// bounds from 0 on, of a whole cluster by making the one that was found simpler.
func (e *explorer) settle(ctx context.Context, s *Shrunk) {
	if explore.Whole(s.File) {
		e.simplify(ctx, s)
		return
	}
	for n := 0; n <= len(s.Failure.Schedule) && ctx.Err() == nil; n++ {
		found, _, ok := e.try(ctx, s.File, &s.Failure, explore.Options{Strategy: explore.DFS, Schedules: maxSchedules, Preemptions: &n})
		if ok {
			s.Failure = found
			return
		}
	}
	s.keepSeed()
}

// repeatExplored is the command that repeats an exploration's failure.
func repeatExplored(path string, s explore.Schedule) string {
	return fmt.Sprintf("%s explore %s --schedule %s", program(), quoted(path), quoted(s.String()))
}
