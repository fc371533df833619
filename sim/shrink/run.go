package shrink

import (
	"context"
	"fmt"
	"slices"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Runner runs a checked file with a seed. [world.Run] is one, but for its
// options; one that uses processes also gets over runs that crash or hang. A
// run of which there is no result is an error, and does not fail.
type Runner func(ctx context.Context, f *scenario.File, seed uint64) (*world.Result, error)

// InProcess runs a file in this process.
func InProcess(_ context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
	return world.Run(f, world.Options{Seed: &seed})
}

// moreRuns is how often the last file is run again to say how often it fails.
const moreRuns = 3

// Run makes a file smaller of which a run broke: broken is the run's result.
func Run(ctx context.Context, f *scenario.File, broken *world.Result, run Runner, l Limits) (*Shrunk, error) {
	l = l.withDefaults()
	if err := l.check(); err != nil {
		return nil, err
	}
	f, err := f.For(broken.Profile).Changed(func(g *scenario.File) { g.Explore = nil })
	if err != nil {
		return nil, err
	}
	failure, ok := failureOf(f, broken.Checks)
	if !ok {
		return nil, ErrNothing
	}
	failure.Seed = broken.Seed
	return shrink(ctx, f, failure, &seeker{run: run, seed: broken.Seed, most: l.Seeds, stuck: stuck(f, broken.Checks), held: map[attempt]bool{}}, l)
}

// seeker probes by running with a few seeds.
type seeker struct {
	run    Runner
	seed   uint64 // that failed last
	most   int    // seeds of a file
	stuck  bool   // a step of the first file could not be done
	needed int    // the most seeds until one failed, of the files that did
	shaky  bool   // some file failed and did not fail again, with one seed
	held   map[attempt]bool
	quick  bool
	count  int
}

// attempt is a run of a file, by its text, with a seed.
type attempt struct {
	text string
	seed uint64
}

// thoroughTries is how many seeds a smaller file gets at the least, even if the
// one before failed with the first.
const thoroughTries = 3

func (s *seeker) tried() int        { return s.count }
func (s *seeker) hasten(quick bool) { s.quick = quick }

// tries is how many seeds the next file gets. One that failed with the nth seed
// makes it likely that a smaller one needs as many, and so that one gets three
// times as many; one that fails now and then with one seed gets all.
func (s *seeker) tries() int {
	switch {
	case s.needed == 0 || s.shaky && !s.quick: // the first file
		return s.most
	case s.needed == 1 && s.quick:
		return 1
	}
	return min(s.most, max(thoroughTries, 3*s.needed))
}

// probe tries the seed that failed last, and those after it. It has to fail
// twice.
func (s *seeker) probe(ctx context.Context, f *scenario.File, want *Failure) (Failure, bool) {
	return s.seek(ctx, f, want, func(seed uint64) bool {
		_, again := s.once(ctx, f, want, seed)
		s.shaky = s.shaky || !again && ctx.Err() == nil
		return again
	})
}

func (s *seeker) met(ctx context.Context, f *scenario.File, want *Failure) bool {
	_, ok := s.seek(ctx, f, want, func(uint64) bool { return true })
	return ok
}

// seek tries seeds until one fails and is not turned down.
func (s *seeker) seek(ctx context.Context, f *scenario.File, want *Failure, agrees func(seed uint64) bool) (Failure, bool) {
	s.count++
	text := string(scenario.Print(f))
	for n := range s.tries() {
		a := attempt{text, s.seed + uint64(n)}
		if s.held[a] && !s.shaky {
			continue
		}
		found, ok := s.once(ctx, f, want, a.seed)
		if ok && agrees(a.seed) {
			found.needed = n + 1
			return found, true
		}
		if ctx.Err() != nil {
			break
		}
		s.held[a] = !ok
	}
	return Failure{}, false
}

func (s *seeker) take(found *Failure) { s.seed, s.needed = found.Seed, max(s.needed, found.needed) }

func (s *seeker) once(ctx context.Context, f *scenario.File, want *Failure, seed uint64) (Failure, bool) {
	r, err := s.run(ctx, f, seed)
	if err != nil || !s.stuck && stuck(f, r.Checks) {
		return Failure{}, false
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; want.Is(c) {
			return Failure{Check: c.Name, Message: c.Message, Seed: seed}, true
		}
	}
	return Failure{}, false
}

// stuck says whether a step of a run could not be done. What fails because of
// that fails in another way than where every step was.
func stuck(f *scenario.File, checks []check.Result) bool {
	return slices.ContainsFunc(checks, func(c check.Result) bool {
		return c.Verdict == check.Undecided && slices.ContainsFunc(f.Steps, func(s scenario.Step) bool { return s.Name() == c.Name })
	})
}

// settle writes the seed into the file and says how often it fails.
func (s *seeker) settle(ctx context.Context, small *Shrunk) {
	small.keepSeed()
	for small.Of < moreRuns {
		_, ok := s.once(ctx, small.File, &small.Failure, small.Failure.Seed)
		if ctx.Err() != nil {
			return
		}
		small.Of++
		if ok {
			small.Again++
		}
	}
}

// repeatRun is the command that repeats a run's failure.
func repeatRun(path string, seed uint64) string {
	return fmt.Sprintf("%s run %s --seed %d", program(), quoted(path), seed)
}
