package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/shrink"
	"github.com/wlmsim/wlmsim/sim/world"
)

// shrinkFlags are the flags about shrinking, of `run` and `explore`.
type shrinkFlags struct {
	on    bool
	limit time.Duration
}

func (f *shrinkFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.on, "shrink", false, "write the smallest failing form of each file that broke to the folder of --out")
	flags.DurationVar(&f.limit, "shrink-limit", shrink.DefaultTime, "wall time of shrinking one file")
}

func (f *shrinkFlags) check(out string) error {
	var faults []error
	if f.on && out == "" {
		faults = append(faults, errors.New("--shrink needs --out, the folder for what is left"))
	}
	if f.limit <= 0 {
		faults = append(faults, fmt.Errorf("--shrink-limit %v: over 0", f.limit))
	}
	return errors.Join(faults...)
}

// hangLimit is the wall time after which the run of a smaller file is taken for
// hung. They are short.
const hangLimit = 20 * time.Second

// shrinker writes the smallest failing forms of files into a folder, once for
// each file and profile.
type shrinker struct {
	streams
	flags   *shrinkFlags
	folder  string
	set     []string        // assignments that were made to the files
	command bool            // the results leave room for commands on standard output
	done    map[string]bool // what was shrunk, and which names are taken
	repeats []string
}

func newShrinker(s streams, f *shrinkFlags, set []string, out, format string) *shrinker {
	return &shrinker{streams: s, flags: f, folder: out, set: set, command: format == "text", done: map[string]bool{}}
}

// explored shrinks the files of explorations that broke, in workers.
func (s *shrinker) explored(ctx context.Context, start func() *exec.Cmd, results []*explore.Result) error {
	for _, r := range results {
		if !s.flags.on || r.Verdict != check.Broken {
			continue
		}
		if err := s.tell(ctx, r.File, s.exploration(ctx, start, r)); err != nil {
			return err
		}
	}
	return nil
}

func (s *shrinker) exploration(ctx context.Context, start func() *exec.Cmd, r *explore.Result) error {
	hand, err := campaign.NewHand(campaign.Config{Start: start})
	if err != nil {
		return err
	}
	defer hand.Close()
	fmt.Fprintf(s.err, "%s: shrinking, for up to %v\n", r.File, s.flags.limit)
	path := s.path(r.File, r.Profile)
	small, err := hand.Shrink(ctx, campaign.Shrinking{File: r.File, Set: s.set, Path: path, Time: s.flags.limit}, r)
	return s.keep(r.File, path, small, err)
}

// ran shrinks the files of runs that broke.
func (s *shrinker) ran(ctx context.Context, files []scenarioFile, results []world.Result) error {
	for i := range results {
		r := &results[i]
		key := r.File + "\x00" + r.Profile
		if !s.flags.on || r.Verdict != check.Broken || s.done[key] {
			continue
		}
		s.done[key] = true
		for k := range files {
			if files[k].path != r.File {
				continue
			}
			if err := s.tell(ctx, r.File, s.run(ctx, &files[k], r)); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell tells why a file was not shrunk, which changes nothing for the others, nor
// in what broke, and returns the error of ctx.
func (s *shrinker) tell(ctx context.Context, file string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s: not shrunk: %v\n", file, err)
	return nil
}

func (s *shrinker) run(ctx context.Context, file *scenarioFile, r *world.Result) error {
	start, err := workerStarter()
	if err != nil {
		return err
	}
	hand, err := campaign.NewHand(campaign.Config{Start: start, Limit: hangLimit, Fresh: exact.Enabled})
	if err != nil {
		return err
	}
	defer hand.Close()
	dir, err := os.MkdirTemp("", "wlmsim-shrink-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTraces(file.parsed, filepath.Dir(file.path), dir); err != nil {
		return err
	}
	c := candidates{hand: hand, dir: dir}
	small, err := shrink.Run(ctx, file.parsed, r, c.run, s.limits(file.path))
	return s.keep(file.path, s.path(file.path, r.Profile), small, err)
}

// limits tell how far it is, each second.
func (s *shrinker) limits(path string) shrink.Limits {
	told := time.Now()
	return shrink.Limits{Time: s.flags.limit, Told: func(p shrink.Progress) {
		if time.Since(told) >= time.Second {
			told = time.Now()
			fmt.Fprintf(s.err, "%s: shrinking: %d files tried, %d parts left\n", path, p.Tried, p.Size.Parts)
		}
	}}
}

// keep writes what is left of a file to a path, if anything was found.
func (s *shrinker) keep(file, path string, small *shrink.Shrunk, err error) error {
	switch {
	case errors.Is(err, shrink.ErrNothing):
		fmt.Fprintf(s.err, "%s: not shrunk: a smaller file would show no more, or it did not fail again\n", file)
		return nil
	case small == nil && err != nil:
		return err
	}
	if err := copyTraces(small.File, filepath.Dir(file), s.folder); err != nil {
		return err
	}
	if err := os.WriteFile(path, small.Text(path), 0o666); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s: shrunk to %s: %d files tried%s\n", file, path, small.Tried, reservations(small))
	s.repeats = append(s.repeats, small.Repeat(path))
	return err // of ctx
}

// reservations say what is not as good as it could be.
func reservations(small *shrink.Shrunk) string {
	text := ""
	if !small.Least {
		text = "; the time was over before it was the least"
	}
	if small.Again < small.Of {
		text += fmt.Sprintf("; it failed %d times of %d with its seed", small.Again, small.Of)
	}
	return text
}

// path returns a new path for what is left of a file: one that leads to nothing,
// or to what was left before.
func (s *shrinker) path(file, profile string) string {
	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + "." + profile
	path := func(name string) string { return filepath.Join(s.folder, name+".yaml") }
	name := stem
	for i := 2; s.done["path "+name] || others(path(name)); i++ {
		name = fmt.Sprintf("%s.%d", stem, i)
	}
	s.done["path "+name] = true
	return path(name)
}

// others says whether a file is there that shrinking did not leave.
func others(path string) bool {
	if _, _, err := shrink.Read(path); errors.Is(err, os.ErrNotExist) || err == nil {
		return false
	}
	return true
}

// end writes the commands that repeat the failures.
func (s *shrinker) end() {
	for _, command := range s.repeats {
		if s.command {
			fmt.Fprintf(s.out, "shrunk: %s\n", command)
		} else {
			fmt.Fprintf(s.err, "shrunk: %s\n", command)
		}
	}
}

// candidates runs smaller files in a worker.
type candidates struct {
	hand  *campaign.Hand
	dir   string
	file  *scenario.File // that was written last
	count int
}

// run implements [shrink.Runner]. A worker keeps the file that it read last, so
// each has a path of its own.
func (c *candidates) run(ctx context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
	if c.file != f {
		if c.count > 0 {
			if err := os.Remove(c.path()); err != nil {
				return nil, err
			}
		}
		c.count++
		c.file = f
		if err := os.WriteFile(c.path(), scenario.Print(f), 0o666); err != nil {
			return nil, err
		}
	}
	r, err := c.hand.Do(ctx, campaign.Task{Scenario: f.Name, File: c.path(), Seed: seed, Profile: f.Filled().Profile})
	return &r, err
}

func (c *candidates) path() string { return filepath.Join(c.dir, fmt.Sprintf("%d.yaml", c.count)) }

// copyTraces copies the traces that a file names from beside it to another
// folder.
func copyTraces(f *scenario.File, from, to string) error {
	for i := range f.Load {
		trace := filepath.FromSlash(f.Load[i].Arrive.Trace)
		if trace == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, trace))
		if err != nil {
			return err
		}
		target := filepath.Join(to, trace)
		if there, err := os.ReadFile(target); err == nil && !bytes.Equal(there, text) {
			return fmt.Errorf("%s is another trace than %s: give another folder", target, filepath.Join(from, trace))
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
