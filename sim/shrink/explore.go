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
	portion        = 100 // of drawn schedules, after which one looks whether it fails
	wholePortion   = 10  // of a whole cluster
	quickPortions  = 2
	maxPortions    = 5
	firstPortions  = 30 // of the file that broke, whose schedules were others
)

// Explore makes a file smaller whose exploration broke: broken is what
// [explore.Run] said of it. Every smaller file is explored with the same
// strategy. Where schedules are drawn, that is done by seeds, one after the
// other, and the file that comes out has the one that failed.
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
	e := &explorer{strategy: broken.Strategy, whole: builds(f), seed: f.Seed}
	if e.strategy == explore.Replay { // one schedule says nothing about smaller files
		e.strategy = explore.DFS
		if e.whole {
			e.strategy = explore.Random
		}
	}
	return shrink(ctx, f, failure, e, l)
}

// explorer probes by exploring.
type explorer struct {
	strategy string
	whole    bool
	seed     uint64 // that failed last, where schedules are drawn
	quick    bool
	count    int
}

func (e *explorer) tried() int        { return e.count }
func (e *explorer) hasten(quick bool) { e.quick = quick }
func (e *explorer) draws() bool       { return e.strategy != explore.DFS }

func (e *explorer) probe(ctx context.Context, f *scenario.File, want *Failure) (Failure, bool) {
	e.count++
	if e.draws() {
		return e.drawn(ctx, f, want)
	}
	o := explore.Options{Strategy: e.strategy, Schedules: maxSchedules}
	if e.quick {
		o.Schedules = quickSchedules
	}
	return e.try(ctx, f, want, o)
}

// drawn draws a portion of schedules by each of a few seeds.
func (e *explorer) drawn(ctx context.Context, f *scenario.File, want *Failure) (Failure, bool) {
	o := explore.Options{Strategy: e.strategy, Schedules: portion}
	if e.whole {
		o.Schedules = wholePortion
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
		if found, ok := e.try(ctx, g, want, o); ok {
			e.seed = seed
			return found, true
		}
	}
	return Failure{}, false
}

func (e *explorer) try(ctx context.Context, f *scenario.File, want *Failure, o explore.Options) (Failure, bool) {
	o.Context = ctx
	r, err := explore.Run(f, o)
	if err != nil {
		return Failure{}, false
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; want.Is(&c.Result) {
			s, err := explore.ParseSchedule(c.Schedule)
			return Failure{Check: c.Name, Message: c.Message, Schedule: s, Seed: f.Seed}, err == nil
		}
	}
	return Failure{}, false
}

// settle looks for the schedule with the fewest preemptions: with bounds from 0
// on, and, where schedules are drawn, by letting the one that was found go on
// by itself ever earlier.
func (e *explorer) settle(ctx context.Context, s *Shrunk) {
	if e.draws() {
		e.settleDrawn(ctx, s)
		return
	}
	for n := 0; n <= len(s.Failure.Schedule) && ctx.Err() == nil; n++ {
		found, ok := e.try(ctx, s.File, &s.Failure, explore.Options{Strategy: e.strategy, Schedules: maxSchedules, Preemptions: &n})
		if ok {
			s.Failure = found
			return
		}
	}
}

func (e *explorer) settleDrawn(ctx context.Context, s *Shrunk) {
	if f, err := s.File.Changed(func(g *scenario.File) { g.Seed = s.Failure.Seed }); err == nil {
		s.File = f
	}
	for n := 0; n < len(s.Failure.Schedule) && ctx.Err() == nil; n++ {
		if n > 0 && s.Failure.Schedule[n] == s.Failure.Schedule[n-1] {
			continue // to stop here is to stop at the next switch
		}
		start := append(explore.Schedule{}, s.Failure.Schedule[:n]...)
		if found, ok := e.try(ctx, s.File, &s.Failure, explore.Options{Schedule: start}); ok {
			s.Failure = found
			return
		}
	}
}

// repeatExplored is the command that repeats an exploration's failure.
func repeatExplored(path string, s explore.Schedule) string {
	return fmt.Sprintf("%s explore %s --schedule %s", program(), quoted(path), quoted(s.String()))
}
