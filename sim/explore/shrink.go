package explore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Shrunk is the smallest failing form of a file that was found.
type Shrunk struct {
	File     *scenario.File
	Failure  Check // how it fails, with its schedule
	Result   *Result
	Explored int // files that were explored on the way
}

// maxShrinkSchedules bounds the schedules of one smaller file: what fails in a
// small program fails soon.
const maxShrinkSchedules = 50_000

// ErrNothingToShrink is returned for a file of which nothing broke.
var ErrNothingToShrink = errors.New("nothing broke, so there is nothing to shrink")

// Shrink makes a file that broke smaller, as long as it breaks in the same way:
// the same promise with the same constant sentence, or the same forbidden
// outcome. It takes out actors, actions, groups, rules and observed values one
// at a time, searches the schedules anew each time, and at last looks for the
// schedule with the fewest preemptions. Strategy and bounds of o do not matter.
func Shrink(f *scenario.File, o Options) (*Shrunk, error) {
	if o.Profile == "" {
		o.Profile = f.Filled().Profile
	}
	s := &shrinker{options: Options{Path: o.Path, Context: o.Context, Schedules: maxShrinkSchedules}}
	f, err := again(f.For(o.Profile), func(g *scenario.File) { g.Profile = o.Profile; g.Breaks = nil })
	if err != nil {
		return nil, err
	}
	r, err := s.explore(f, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Verdict == check.Broken && !strings.HasPrefix(c.Name, "require ") })
	if i < 0 {
		return nil, ErrNothingToShrink
	}
	s.name, s.sentence = r.Checks[i].Name, sentence(r.Checks[i].Message)
	best := &Shrunk{File: f, Failure: r.Checks[i], Result: r}
	if alone, ok := s.try(f, s.lonely); ok {
		best = alone
	}
	for smaller := true; smaller && s.ended() == nil; {
		smaller = false
		for _, cut := range cuts(best.File) {
			if next, ok := s.try(best.File, cut); ok {
				best, smaller = next, true
				break
			}
		}
	}
	s.calm(best)
	best.Explored = s.explored
	return best, s.ended()
}

// shrinker knows what a smaller file has to show.
type shrinker struct {
	options  Options
	name     string // of the check that is broken
	sentence string // that its message begins with
	explored int
}

func (s *shrinker) ended() error {
	if s.options.Context == nil {
		return nil
	}
	return s.options.Context.Err()
}

// sentence is the part of a message that is the same for the same fault.
func sentence(message string) string {
	constant, _, _ := strings.Cut(message, ":")
	return constant
}

// again returns a changed copy of a file, as it reads when it is printed.
func again(f *scenario.File, change func(*scenario.File)) (*scenario.File, error) {
	g, err := scenario.Parse("shrunk", scenario.Print(f))
	if err != nil {
		return nil, err
	}
	change(g)
	return scenario.Parse("shrunk", scenario.Print(g))
}

func (s *shrinker) explore(f *scenario.File, preemptions *int) (*Result, error) {
	s.explored++
	o := s.options
	o.Preemptions = preemptions
	return Run(f, o)
}

// fails returns how a file fails, if it fails as it has to.
func (s *shrinker) fails(r *Result) (Check, bool) {
	for _, c := range r.Checks {
		if c.Verdict == check.Broken && c.Name == s.name && sentence(c.Message) == s.sentence {
			return c, true
		}
	}
	return Check{}, false
}

// try explores a changed file and says whether it still fails.
func (s *shrinker) try(f *scenario.File, change func(*scenario.File)) (*Shrunk, bool) {
	g, err := again(f, change)
	if err != nil {
		return nil, false // something else in the file needs what was taken out
	}
	r, err := s.explore(g, nil)
	if err != nil {
		return nil, false
	}
	c, ok := s.fails(r)
	return &Shrunk{File: g, Failure: c, Result: r}, ok
}

// lonely takes out whatever judges something else.
func (s *shrinker) lonely(f *scenario.File) {
	e := f.Explore
	e.Require = nil
	e.Forbid = slices.DeleteFunc(e.Forbid, func(x scenario.Expression) bool { return s.name != "forbid "+string(x) })
	f.About = ""
	f.Under = nil
}

// cuts are the ways to take one thing out of a file, the big things first.
func cuts(f *scenario.File) []func(*scenario.File) {
	var all []func(*scenario.File)
	e := f.Explore
	for i := range e.Observe {
		all = append(all, func(g *scenario.File) { g.Explore.Observe = slices.Delete(g.Explore.Observe, i, i+1) })
	}
	for i := range e.Actors {
		all = append(all, func(g *scenario.File) { g.Explore.Actors = slices.Delete(g.Explore.Actors, i, i+1) })
	}
	for i, actor := range e.Actors {
		for k := range actor.Value {
			all = append(all, func(g *scenario.File) {
				a := &g.Explore.Actors[i]
				a.Value = slices.Delete(a.Value, k, k+1)
			})
		}
	}
	for i := range e.Before {
		all = append(all, func(g *scenario.File) { g.Explore.Before = slices.Delete(g.Explore.Before, i, i+1) })
	}
	for i := range f.Groups {
		all = append(all, func(g *scenario.File) { g.Groups = slices.Delete(g.Groups, i, i+1) })
	}
	for i := range f.Rules {
		all = append(all, func(g *scenario.File) { g.Rules = slices.Delete(g.Rules, i, i+1) })
	}
	for _, name := range slices.Sorted(maps.Keys(f.Switches)) {
		all = append(all, func(g *scenario.File) { delete(g.Switches, name) })
	}
	return all
}

// calm looks for the failing schedule with the fewest preemptions.
func (s *shrinker) calm(best *Shrunk) {
	for n := 0; s.ended() == nil; n++ {
		r, err := s.explore(best.File, &n)
		if err != nil {
			return
		}
		if c, ok := s.fails(r); ok {
			best.Failure, best.Result = c, r
			return
		}
		if n == maxLanes {
			return
		}
	}
}

// Text returns the file as it is to be kept, with how it fails above it.
func (s *Shrunk) Text() []byte {
	head := fmt.Sprintf("# %s\n# %s\n# schedule: %s\n", s.Failure.Name, s.Failure.Message, s.Failure.Schedule)
	return append([]byte(head), scenario.Print(s.File)...)
}
