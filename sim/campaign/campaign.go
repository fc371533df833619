package campaign

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Config says how to run a campaign.
type Config struct {
	// Start returns a command that calls [Serve] on its standard input and
	// output, not yet started. It is called from several goroutines. Required.
	Start func() *exec.Cmd
	// Jobs is how many workers run side by side. Default: the processors.
	Jobs int
	// Limit bounds a run's wall time, and the wall time in which an exploration
	// takes no turn. Default: [DefaultLimit].
	Limit time.Duration
	// Fresh gives each run a process of its own.
	Fresh bool
	// Twice does each run twice, each time in a process of its own, and
	// compares the histories. With MustRepeat a difference breaks the run,
	// otherwise it is a note.
	Twice, MustRepeat bool
	// StopAtFirst ends the campaign at the first run that broke.
	StopAtFirst bool
	// Done is called for each run or exploration when it is finished, in order
	// of time, and Tick each second. Both are called from the goroutine that
	// called Run or Explore. Nil: nobody asks.
	Done func(Finished)
	Tick func([]Underway)
}

// Finished says what has just come to its end.
type Finished struct {
	File, Profile string
	Seed          uint64        // of a run
	Verdict       check.Verdict // "": it cannot be explored
}

// Underway is what a worker does just now.
type Underway struct {
	File, Profile string
	Seed          uint64        // of a run
	For           time.Duration // since it began
	Schedules     uint64        // that were begun, of an exploration
}

// DefaultLimit is far longer than a scenario takes, and short enough for a
// person to wait for.
const DefaultLimit = 5 * time.Minute

func (c Config) withDefaults() Config {
	if c.Jobs == 0 {
		c.Jobs = runtime.GOMAXPROCS(0)
	}
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Done == nil {
		c.Done = func(Finished) {}
	}
	if c.Tick == nil {
		c.Tick = func([]Underway) {}
	}
	return c
}

func (c Config) check() error {
	var faults []error
	if c.Start == nil {
		faults = append(faults, errors.New("a campaign needs a command for its workers"))
	}
	if c.Jobs < 1 {
		faults = append(faults, fmt.Errorf("a campaign has 1 worker or more, not %d", c.Jobs))
	}
	if c.Limit < 0 {
		faults = append(faults, fmt.Errorf("a run's limit is over 0, not %v", c.Limit))
	}
	return errors.Join(faults...)
}

// Run does the tasks and returns their results in order. The error is that of
// the config, before anything was started, or of ctx; the results are then
// those that were finished.
func Run(ctx context.Context, c Config, tasks []Task) ([]world.Result, error) {
	return carryOut(ctx, c, tasks, (*slot).run, func(r *world.Result) Finished {
		return Finished{r.File, r.Profile, r.Seed, r.Verdict}
	})
}

// Explore is [Run] for explorations.
func Explore(ctx context.Context, c Config, explorations []Exploration) ([]Explored, error) {
	return carryOut(ctx, c, explorations, (*slot).explore, func(e *Explored) Finished {
		f := Finished{File: e.Result.File, Profile: e.Result.Profile, Verdict: e.Result.Verdict}
		if e.Misfit != nil {
			f.Verdict = ""
		}
		return f
	})
}

// tickEvery is how often Tick is called.
const tickEvery = time.Second

// carryOut has slots do what is to do, of type T, and returns what came of it,
// of type R.
func carryOut[T, R any](ctx context.Context, c Config, todo []T, do func(*slot, context.Context, T) (R, error), told func(*R) Finished) ([]R, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &plan{tasks: len(todo), stop: c.StopAtFirst, first: len(todo)}
	finished := make(chan finish[R])
	slots := make([]slot, min(c.Jobs, len(todo)))
	var working sync.WaitGroup
	for i := range slots {
		s := &slots[i]
		s.config = &c
		working.Go(func() {
			defer s.close()
			for i, more := p.next(ctx); more; i, more = p.next(ctx) {
				result, err := do(s, ctx, todo[i])
				if err != nil {
					return // of ctx
				}
				p.done(i, told(&result).Verdict)
				finished <- finish[R]{i, result}
			}
		})
	}
	go func() { working.Wait(); close(finished) }()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	results := make([]*R, len(todo))
	for more := true; more; {
		var f finish[R]
		select {
		case f, more = <-finished:
			if more {
				results[f.place] = &f.result
				c.Done(told(&f.result))
			}
		case <-tick.C:
			c.Tick(underway(slots))
		}
	}
	return inOrder(results, p), context.Cause(ctx)
}

// inOrder returns the results that there are. Later ones than the first that
// broke are dropped if that ends the campaign: whether they were done was
// chance.
func inOrder[R any](results []*R, p *plan) []R {
	var ordered []R
	for i, r := range results {
		if r != nil && (!p.stop || i <= p.first) {
			ordered = append(ordered, *r)
		}
	}
	return ordered
}

// underway lists what the slots do.
func underway(slots []slot) []Underway {
	var all []Underway
	for i := range slots {
		if u, busy := slots[i].now(); busy {
			all = append(all, u)
		}
	}
	return all
}

// finish is a result and the place of its task.
type finish[R any] struct {
	place  int
	result R
}

// plan says which task is next.
type plan struct {
	tasks int
	stop  bool

	mu     sync.Mutex
	handed int // tasks before this one were handed out
	first  int // the first task that broke, or tasks
}

// next returns the place of the next task, or that there is none.
func (p *plan) next(ctx context.Context) (place int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handed == p.tasks || p.stop && p.first < p.handed || ctx.Err() != nil {
		return 0, false
	}
	p.handed++
	return p.handed - 1, true
}

func (p *plan) done(place int, v check.Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v == check.Broken {
		p.first = min(p.first, place)
	}
}
