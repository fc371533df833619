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
	// Limit bounds a run's wall time. Default: [DefaultLimit].
	Limit time.Duration
	// Fresh gives each run a process of its own.
	Fresh bool
	// Twice does each run twice, each time in a process of its own, and
	// compares the histories. With MustRepeat a difference breaks the run,
	// otherwise it is a note.
	Twice, MustRepeat bool
	// StopAtFirst ends the campaign at the first run that broke.
	StopAtFirst bool
	// Done is called for each run when it is finished, in order of time, from
	// the goroutine that called Run. Nil: nobody asks.
	Done func(*world.Result)
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
		c.Done = func(*world.Result) {}
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
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &plan{tasks: len(tasks), stop: c.StopAtFirst, first: len(tasks)}
	finished := make(chan finish)
	var slots sync.WaitGroup
	for range min(c.Jobs, len(tasks)) {
		slots.Go(func() {
			s := slot{config: &c}
			defer s.rest()
			for i, more := p.next(ctx); more; i, more = p.next(ctx) {
				result, err := s.run(ctx, tasks[i])
				if err != nil {
					return // of ctx
				}
				p.done(i, result.Verdict)
				finished <- finish{i, result}
			}
		})
	}
	go func() { slots.Wait(); close(finished) }()
	return p.collect(finished, c.Done), context.Cause(ctx)
}

// finish is a result and the place of its task.
type finish struct {
	place  int
	result world.Result
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

// collect takes the results until the channel is closed, and puts them in
// order. Later ones than the first that broke are dropped if that ends the
// campaign: whether they were run was chance.
func (p *plan) collect(finished <-chan finish, done func(*world.Result)) []world.Result {
	results := make([]*world.Result, p.tasks)
	for f := range finished {
		results[f.place] = &f.result
		done(&f.result)
	}
	var ordered []world.Result
	for i, r := range results {
		if r != nil && (!p.stop || i <= p.first) {
			ordered = append(ordered, *r)
		}
	}
	return ordered
}
