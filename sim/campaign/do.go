package campaign

import (
	"bufio"
	"errors"
	"os"
	"slices"

	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxEvents bounds the history that is written for a run: a few hundred
// megabytes of memory.
const MaxEvents = 1_000_000

// Doer does tasks, as the worker of [Serve]. It keeps the last file that it
// read, since a campaign runs one file under many seeds. The zero value is
// ready; it belongs to one goroutine.
type Doer struct {
	path string
	set  []string
	file *scenario.File
}

// Do runs the task and writes its history, if that is asked for.
func (d *Doer) Do(t Task) (*world.Result, error) {
	if err := d.read(&t); err != nil {
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

func (d *Doer) read(t *Task) error {
	if d.file != nil && d.path == t.File && slices.Equal(d.set, t.Set) {
		return nil
	}
	f, err := scenario.Read(t.File, t.Set...)
	if err != nil {
		return err
	}
	d.path, d.set, d.file = t.File, t.Set, f
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
