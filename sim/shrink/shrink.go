package shrink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// DefaultTime is how long shrinking goes on unless [Limits] say otherwise:
// several times what a planted flaw takes.
const DefaultTime = time.Minute

// DefaultSeeds is how many seeds are tried at the most for a smaller file
// unless [Limits] say otherwise.
const DefaultSeeds = 20

// Limits bound shrinking. The zero value has the defaults.
type Limits struct {
	// Time on the wall clock; 0: DefaultTime. A quarter of it more is for the
	// last file: for its best schedule, or to see how often it fails.
	Time  time.Duration
	Seeds int // of a smaller file, for runs; 0: DefaultSeeds
	// Told is called for each smaller file that fails; nil: nobody asks.
	Told func(Progress)
}

// Progress says how far shrinking is.
type Progress struct {
	Tried int // files that were run or explored, so far
	Size  Size
}

func (l Limits) withDefaults() Limits {
	if l.Time == 0 {
		l.Time = DefaultTime
	}
	if l.Seeds == 0 {
		l.Seeds = DefaultSeeds
	}
	if l.Told == nil {
		l.Told = func(Progress) {}
	}
	return l
}

// check returns what is wrong with the limits, or nil.
func (l Limits) check() error {
	if l.Time < 0 || l.Seeds < 0 {
		return errors.New("limits of shrinking are 0, for the defaults, or more")
	}
	return nil
}

// Shrunk is the smallest file that was found to fail in the same way.
type Shrunk struct {
	File    *scenario.File
	Failure Failure
	Tried   int // files that were run or explored
	// Least says that no move makes the file smaller; otherwise the time was
	// over first.
	Least bool
	// Again and Of say that the file of a run failed Again times of Of more
	// with its seed.
	Again, Of int
}

// keepSeed writes the seed of the failure into the file.
func (s *Shrunk) keepSeed() {
	if f, err := s.File.Changed(func(g *scenario.File) { g.Seed = s.Failure.Seed }); err == nil {
		s.File = f
	}
}

// ErrNothing is returned for a file of which nothing broke that a smaller one
// could break as well, and for one that did not break again.
var ErrNothing = errors.New("nothing to shrink")

// prober tells whether a file fails as it has to.
type prober interface {
	// probe looks for a failure in a file, and returns the one that it found.
	probe(ctx context.Context, f *scenario.File, want *Failure) (Failure, bool)
	// met looks for a failure and says whether it was met once.
	met(ctx context.Context, f *scenario.File, want *Failure) bool
	// take tells that the file with this failure is the smallest one now.
	take(found *Failure)
	// hasten makes probes quick, or thorough again. A quick one misses more.
	hasten(quick bool)
	// settle makes the most of the last file: a better schedule, or how often
	// it fails.
	settle(ctx context.Context, s *Shrunk)
	// tried is how many files were run or explored.
	tried() int
}

// shrink makes a file smaller that failed as failure says.
func shrink(ctx context.Context, f *scenario.File, failure Failure, p prober, l Limits) (*Shrunk, error) {
	limited, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()
	found, ok := p.probe(limited, f, &failure)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, fmt.Errorf("%v were over before it failed again", l.Time)
	case !ok:
		return nil, ErrNothing
	}
	p.take(&found)
	s := &Shrunk{File: f, Failure: found}
	mended := plantedIn(limited, f, p, &failure)
	flawless := false // what was turned down last failed without its flaw, too
	fails := func(g *scenario.File) bool {
		// What turned the last file down is likely to turn this one down.
		if flawless && failsMended(limited, g, p, &failure, mended) {
			return false
		}
		found, ok := p.probe(limited, g, &failure)
		if ok && !flawless && mended != nil {
			flawless = failsMended(limited, g, p, &failure, mended)
			ok = !flawless
		} else if !ok {
			flawless = false
		}
		if ok = ok && limited.Err() == nil; ok {
			p.take(&found)
			s.File, s.Failure = g, found
		}
		return ok
	}
	told := func(g *scenario.File) { l.Told(Progress{Tried: p.tried(), Size: SizeOf(g)}) }
	p.hasten(true)
	if g, err := f.Changed(failure.alone); err == nil && fails(g) {
		told(g)
	}
	Least(limited, s.File, fails, told)
	p.hasten(false)
	_, s.Least = least(limited, s.File, fails, told)
	settling, cancel := context.WithTimeout(ctx, l.Time/4)
	defer cancel()
	p.settle(settling, s)
	s.Tried = p.tried()
	return s, context.Cause(ctx)
}

// plantedIn returns what takes the flaw out of a file that fails for its sake:
// out of its switches, if under its profile alone it holds, or out of its
// profile, too. Nil: it fails without that, or by a promise. What an expression
// says is easily made false by taking away what it is about, and so a smaller
// file must have the flaw, and not fail without it; a promise says enough by
// itself.
func plantedIn(ctx context.Context, f *scenario.File, p prober, failure *Failure) func(*scenario.File) *scenario.File {
	if !strings.Contains(failure.Check, " ") {
		return nil
	}
	bySwitches := func(g *scenario.File) *scenario.File {
		if g.Profile != f.Profile {
			return nil
		}
		return changed(g, func(g *scenario.File) { g.Switches = nil })
	}
	byProfile := func(g *scenario.File) *scenario.File {
		return changed(g, func(g *scenario.File) { g.Profile, g.Switches = "", nil })
	}
	for _, mended := range []func(*scenario.File) *scenario.File{bySwitches, byProfile} {
		if !failsMended(ctx, f, p, failure, mended) {
			return mended
		}
	}
	return nil
}

// failsMended says whether a file fails without its flaw, too, or has none.
func failsMended(ctx context.Context, f *scenario.File, p prober, failure *Failure, mended func(*scenario.File) *scenario.File) bool {
	g := mended(f)
	return g == nil || scenario.Equal(f, g) || p.met(ctx, g, failure)
}

// results are the results of checks that package explore or world gave.
type results = []check.Result
