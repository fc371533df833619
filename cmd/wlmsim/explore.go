package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/world"
	"github.com/wlmsim/wlmsim/wlm"
)

// exploreFlags are the flags of `explore`.
type exploreFlags struct {
	strategy    string
	schedules   int
	preemptions int
	schedule    string
	noReduction bool
	profiles    []string
	set         []string
	format      string
	out         string
	shrink      shrinkFlags
}

func newExplore(s streams) *cobra.Command {
	var f exploreFlags
	c := &cobra.Command{
		Use:   "explore PATH...",
		Short: "Run every interleaving of the explore: blocks of scenario files",
		Long: `Run the explore: block of each file in every order of its steps, and print what
can happen: each outcome, how many of the executed schedules lead to it, and the
shortest schedule. A folder means every .yaml file under it that has such a block.

Orders that differ only in steps that touch nothing in common are not executed
twice. A bound on preemptions covers every order within it, and no reduction
applies. The strategies pct and random draw schedules from the file's seed.

A block that names no node is about the whole cluster, raft and all: a turn is a
step of a client or of a node's applier, or a message between two nodes. Its
orders are too many to try each, so they are drawn.`,
		Example: `  wlmsim explore scenarios/explore                              # every file
  wlmsim explore lag.yaml --set switches.missing_counters=default_group
  wlmsim explore lag.yaml --schedule 'update applier first×3'   # one order, step by step
  wlmsim explore lag.yaml --preemptions 2
  wlmsim explore lag.yaml --strategy pct --schedules 10000 --format json
  wlmsim explore lag.yaml --shrink --out small                  # the least that still breaks
  wlmsim explore scenarios/clusters --strategy pct              # whole clusters`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options(c.Flags().Changed("preemptions"), c.Flags().Changed("schedule"))
			if err != nil {
				return usageError{err}
			}
			files, err := readExplorations(s, args, f.set)
			if err != nil {
				return err
			}
			if err := watch(&o, f.format); err != nil {
				return err
			}
			return exploreFiles(c.Context(), s, &f, o, files)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.strategy, "strategy", "", fmt.Sprintf("%s; without it %s, and %s for whole clusters", strings.Join(explore.Strategies(), ", "), explore.DFS, explore.Random))
	flags.IntVar(&f.schedules, "schedules", 0, fmt.Sprintf("how many to execute at the most; 0: with dfs no bound, else %d, and %d of a whole cluster", explore.DefaultDraws, explore.DefaultClusterDraws))
	flags.IntVar(&f.preemptions, "preemptions", 0, fmt.Sprintf("with dfs, bound on the preemptions of a schedule; with pct, how often priorities change (%d)", explore.DefaultChanges))
	flags.StringVar(&f.schedule, "schedule", "", "execute this schedule alone, such as 'update applier×3 first'")
	flags.BoolVar(&f.noReduction, "no-reduction", false, "execute orders that cannot differ as well")
	flags.StringSliceVar(&f.profiles, "profile", nil, "profiles to run under, in place of the file's: "+strings.Join(wlm.Profiles(), ", "))
	flags.StringArrayVar(&f.set, "set", nil, "PATH=VALUE: change a value of the files, such as switches.acquire=rollback (repeatable)")
	flags.StringVar(&f.format, "format", explore.Formats()[0], strings.Join(explore.Formats(), ", "))
	flags.StringVar(&f.out, "out", "", "folder for what --shrink leaves of files that broke")
	f.shrink.add(c)
	return c
}

// options checks all flags.
func (f *exploreFlags) options(bounded, replayed bool) (explore.Options, error) {
	o := explore.Options{Strategy: f.strategy, Schedules: f.schedules, NoReduction: f.noReduction, Set: f.set}
	if bounded {
		o.Preemptions = &f.preemptions
	}
	faults := []error{o.Check(), f.shrink.check(f.out)}
	if replayed {
		var err error
		if o.Schedule, err = explore.ParseSchedule(f.schedule); o.Schedule == nil {
			o.Schedule = explore.Schedule{}
		}
		faults = append(faults, err)
	}
	for _, p := range f.profiles {
		if _, err := wlm.Profile(p); err != nil {
			faults = append(faults, fmt.Errorf("--profile: %w", err))
		}
	}
	known := false
	for _, format := range explore.Formats() {
		known = known || format == f.format
	}
	if !known {
		faults = append(faults, fmt.Errorf("--format %q: one of %s", f.format, strings.Join(explore.Formats(), ", ")))
	}
	return o, errors.Join(faults...)
}

// readExplorations reads all files that have an explore: block.
func readExplorations(s streams, paths, set []string) ([]scenarioFile, error) {
	files, err := readFiles(s, paths, set)
	if err != nil {
		return nil, err
	}
	var kept []scenarioFile
	var faults []error
	for _, f := range files {
		switch {
		case f.parsed.Explore != nil:
			kept = append(kept, f)
		case f.named:
			faults = append(faults, fmt.Errorf("%s has no explore: block", f.path))
		}
	}
	if len(faults) == 0 && len(kept) == 0 {
		faults = append(faults, errors.New("no file has an explore: block"))
	}
	if len(faults) > 0 {
		return nil, usageError{errors.Join(faults...)}
	}
	return kept, nil
}

// asRuns explores files for `run`: each becomes one run, whose repeat command is
// that of `explore`.
func asRuns(ctx context.Context, f *runFlags, small *shrinker, files []scenarioFile) ([]world.Result, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var runs []world.Result
	for _, file := range files {
		filled := file.parsed.Filled()
		profiles := f.profiles
		if len(profiles) == 0 {
			profiles = []string{filled.Profile}
		}
		for _, profile := range profiles {
			r, err := explore.Run(file.parsed, explore.Options{Profile: profile, Path: file.path, Set: f.set, Context: ctx})
			if err != nil {
				return runs, fmt.Errorf("%s: %w", file.path, err)
			}
			run := world.Result{
				Scenario: r.Scenario, File: r.File, Seed: filled.Seed, Profile: r.Profile, Verdict: r.Verdict,
				WallSeconds: r.WallSeconds, Repeat: r.Repeat,
			}
			for _, c := range r.Checks {
				run.Checks = append(run.Checks, c.Result)
			}
			runs = append(runs, run)
			if err := small.explored(ctx, &file, r); err != nil {
				return runs, err
			}
		}
	}
	return runs, nil
}

// exploreFiles explores each file under each profile and writes the results.
func exploreFiles(ctx context.Context, s streams, f *exploreFlags, o explore.Options, files []scenarioFile) error {
	// One lane goes at a time: a second processor only makes each wake-up dearer.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// Executions leave little behind and much garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var results []*explore.Result
	var ended error
	small := newShrinker(s, &f.shrink, f.out, f.format)
	for _, file := range files {
		profiles := f.profiles
		if len(profiles) == 0 {
			profiles = []string{file.parsed.Filled().Profile}
		}
		for _, profile := range profiles {
			if ended != nil {
				continue
			}
			o.Context, o.Profile, o.Path = ctx, profile, file.path
			r, err := explore.Run(file.parsed, o)
			if err != nil {
				ended = fmt.Errorf("%s: %w", file.path, err)
				continue
			}
			results = append(results, r)
			ended = small.explored(ctx, &file, r)
		}
	}
	if err := explore.Write(s.out, f.format, results, sourceOf); err != nil {
		return err
	}
	small.end()
	if ended != nil {
		if errors.Is(ended, explore.ErrUsage) {
			return usageError{ended}
		}
		return ended
	}
	if v := explore.Verdict(results); v != check.Held {
		return verdictError{v, explore.Summary(results)}
	}
	return nil
}
