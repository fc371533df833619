package campaign

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxEvents bounds the history that is written for a run: a few hundred
// megabytes of memory.
const MaxEvents = 1_000_000

// Doer does tasks, as the [Worker] of [Serve]. It keeps the last file that it
// read, since a campaign runs one file under many seeds. The zero value is
// ready; it belongs to one goroutine.
type Doer struct {
	path string
	set  []string
	file *scenario.File

	folder string // of the notes that box notes in
	box    func(explore.Flight) []byte
}

// Do runs the task and writes its history, if that is asked for.
func (d *Doer) Do(t Task) (*world.Result, error) {
	if err := d.read(t.File, t.Set); err != nil {
		return nil, err
	}
	o := world.Options{Seed: &t.Seed, Profile: t.Profile, Path: t.File, Set: t.Set}
	if t.History != "" {
		o.Keep = MaxEvents
	}
	r, err := world.Run(d.file, o)
	if err == nil && t.History != "" {
		err = writeHistory(t.History, r)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Explore explores, and notes what it is about to do. It ends early, with what
// it has seen, when the process is told to terminate.
func (d *Doer) Explore(e Exploration) (*explore.Result, error) {
	o, err := d.Options(&e)
	if err != nil {
		return nil, err
	}
	if err := d.read(e.File, e.Set); err != nil {
		return nil, err
	}
	defer collectLess()()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, e.Workers))) // more would only make each wake-up dearer
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o.Context = ctx
	r, err := explore.Run(d.file, o)
	if r != nil {
		return r, nil
	}
	return nil, err
}

// garbage is how much of it an exploration makes before it is collected, in
// percent of the live heap, which Go takes for four megabytes at the least.
// Schedules leave next to nothing alive and make some 13 KB of garbage each: at
// the usual 100 the collector would have its turn every few milliseconds, and a
// seventh of the time.
const garbage = 400

// collectLess makes the process collect its garbage less often, unless it does
// so even less, and returns what takes that back.
func collectLess() (back func()) {
	before := debug.SetGCPercent(garbage)
	if before < 0 || before > garbage {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}

// Options are those of an exploration, with its notes.
func (d *Doer) Options(e *Exploration) (explore.Options, error) {
	o := e.options()
	if e.Notes == "" {
		return o, nil
	}
	if e.Notes != d.folder {
		box, err := note(e.Notes)
		if err != nil {
			return o, err
		}
		d.folder, d.box = e.Notes, box
	}
	o.Box = d.box
	return o, nil
}

func (d *Doer) read(path string, set []string) error {
	if d.file != nil && d.path == path && slices.Equal(d.set, set) {
		return nil
	}
	f, err := scenario.Read(path, set...)
	if err != nil {
		return err
	}
	d.path, d.set, d.file = path, set, f
	return nil
}

func writeHistory(path string, r *world.Result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	err = history.Write(b, r.History.Header(r.Scenario, r.Seed, r.Profile), r.History.Events())
	return errors.Join(err, b.Flush(), f.Close())
}
