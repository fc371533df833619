package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/report"
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
	jobs        int
	limit       time.Duration
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
orders are too many to try each, so they are drawn.

Each exploration happens in a worker process, as many at a time as --jobs says;
one alone executes as many schedules of its node at a time. If a goroutine of the
explored nodes panics, it has broken something: the schedule under way is shown,
with the command that repeats it. One whose process dies in another way, or that
takes no turn for as long as --limit, is undecided and shows the same.

Under several profiles a file's outcomes are also shown side by side.`,
		Example: `  wlmsim explore scenarios/explore                              # every file
  wlmsim explore lag.yaml --set switches.missing_counters=default_group
  wlmsim explore lag.yaml --schedule 'update applier first×3'   # one order, step by step
  wlmsim explore lag.yaml --preemptions 2
  wlmsim explore lag.yaml --strategy pct --schedules 10000 --format json
  wlmsim explore lag.yaml --profile submitted,reviewed          # side by side
  wlmsim explore lag.yaml --shrink --out small                  # the least that still breaks
  wlmsim explore scenarios/clusters --strategy pct              # whole clusters`,
		Args: atLeastOne("scenario file or folder"),
		RunE: func(c *cobra.Command, args []string) error {
			f.profiles = once(f.profiles)
			o, err := f.options(c.Flags().Changed("preemptions"), c.Flags().Changed("schedule"))
			if err != nil {
				return usageError{err}
			}
			files, err := readExplorations(s, args, &f)
			if err != nil {
				return err
			}
			return exploreFiles(c.Context(), s, &f, o, files)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.strategy, "strategy", "", fmt.Sprintf("%s; without it %s, and %s for whole clusters", strings.Join(explore.Strategies(), ", "), explore.DFS, explore.Random))
	flags.IntVar(&f.schedules, "schedules", 0, fmt.Sprintf("how many to execute at the most; 0: with dfs no bound, else %d, and %d of a whole cluster", explore.DefaultDraws, explore.DefaultClusterDraws))
	flags.IntVar(&f.preemptions, "preemptions", 0, fmt.Sprintf("with dfs, bound on the preemptions of a schedule; with pct, how often priorities change (%d, and 0 of a whole cluster)", explore.DefaultChanges))
	flags.StringVar(&f.schedule, "schedule", "", "execute this schedule alone, such as 'update applier×3 first'")
	flags.BoolVar(&f.noReduction, "no-reduction", false, "execute orders that cannot differ as well")
	flags.StringSliceVar(&f.profiles, "profile", nil, "profiles to run under, in place of the file's: "+strings.Join(wlm.Profiles(), ", "))
	flags.StringArrayVar(&f.set, "set", nil, "PATH=VALUE: change a value of the files, such as switches.acquire=rollback (repeatable)")
	flags.StringVar(&f.format, "format", report.Formats()[0], strings.Join(report.Formats(), ", "))
	flags.StringVar(&f.out, "out", "", "folder for what --shrink leaves of files that broke")
	addJobs(flags, &f.jobs, &f.limit, "explorations", "wall time without a turn after which an exploration is taken for hung, made to print its goroutines, and undecided")
	f.shrink.add(c)
	return c
}

// options checks all flags and returns what each exploration begins with.
func (f *exploreFlags) options(bounded, replayed bool) (campaign.Exploration, error) {
	e := campaign.Exploration{Set: f.set, Strategy: f.strategy, Schedules: f.schedules, NoReduction: f.noReduction}
	if bounded {
		e.Preemptions = &f.preemptions
	}
	faults := []error{
		explore.Options{Strategy: e.Strategy, Schedules: e.Schedules, Preemptions: e.Preemptions}.Check(),
		f.shrink.check(f.out), checkProfiles(f.profiles), checkJobs(f.jobs, f.limit), report.CheckFormat(f.format),
	}
	if f.out != "" && !f.shrink.on {
		faults = append(faults, errors.New("--out is the folder for what --shrink leaves, and needs --shrink"))
	}
	if replayed {
		var err error
		if e.Schedule, err = explore.ParseSchedule(f.schedule); e.Schedule == nil {
			e.Schedule = explore.Schedule{}
		}
		faults = append(faults, err, f.alone())
	}
	return e, errors.Join(faults...)
}

// alone returns an error if flags say how to choose schedules beside one that
// is given.
func (f *exploreFlags) alone() error {
	if f.strategy != "" || f.schedules != 0 || f.preemptions != 0 || f.noReduction {
		return errors.New("--schedule executes one schedule alone: it goes without --strategy, --schedules, --preemptions and --no-reduction")
	}
	return nil
}

// readExplorations reads all files that have an explore: block.
func readExplorations(s streams, paths []string, flags *exploreFlags) ([]scenarioFile, error) {
	files, err := readFiles(s, paths, flags.set)
	if err != nil {
		return nil, err
	}
	var kept []scenarioFile
	var faults []error
	for _, f := range files {
		switch {
		case flags.strategy == explore.DFS && explore.Whole(f.parsed.Filled()):
			faults = append(faults, fmt.Errorf("%s is about a whole cluster, which has too many orders to try each: --strategy %s or %s", f.path, explore.Random, explore.PCT))
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

// explorations are those of files, each under each profile: the file's own if
// none is given. If there are fewer of them than jobs, each goes on in several
// bubbles of its process.
func explorations(files []scenarioFile, profiles []string, jobs int, like campaign.Exploration) (all []campaign.Exploration) {
	for _, file := range files {
		filled := file.parsed.Filled()
		under := profiles
		if len(under) == 0 {
			under = []string{filled.Profile}
		}
		for _, profile := range under {
			e := like
			e.Scenario, e.File, e.Profile = filled.Name, file.path, profile
			all = append(all, e)
		}
	}
	for i := range all {
		all[i].Workers = min(max(1, jobs/len(all)), explore.MaxWorkers)
	}
	return all
}

// exploreAll explores in workers, and shrinks the files of what broke. What
// cannot be explored at all comes back as one error, beside the results of the
// rest.
func exploreAll(ctx context.Context, c campaign.Config, all []campaign.Exploration, small *shrinker) (results []*explore.Result, misfits, err error) {
	explored, err := campaign.Explore(ctx, c, all)
	var faults []error
	for _, x := range explored {
		if x.Misfit != nil {
			faults = append(faults, x.Misfit)
			continue
		}
		results = append(results, x.Result)
	}
	if err == nil {
		err = small.explored(ctx, c.Start, results)
	}
	return results, errors.Join(faults...), err
}

// exploreFiles explores each file under each profile and writes the results.
func exploreFiles(ctx context.Context, s streams, f *exploreFlags, like campaign.Exploration, files []scenarioFile) error {
	if err := makeFolder(f.out); err != nil {
		return usageError{err}
	}
	start, err := workerStarter()
	if err != nil {
		return err
	}
	all := explorations(files, f.profiles, f.jobs, like)
	progress := newProgress(s.err, "exploration", len(all))
	small := newShrinker(s, &f.shrink, f.set, f.out, f.format)
	results, misfits, ended := exploreAll(ctx, campaign.Config{
		Start: start, Jobs: f.jobs, Limit: f.limit, Fresh: exact.Enabled, Done: progress.done, Tick: progress.tick,
	}, all, small)
	progress.end()
	if err := report.WriteExplored(s.out, f.format, results, sourceOf); err != nil {
		return err
	}
	small.end()
	switch v := explore.Verdict(results); {
	case misfits != nil:
		return usageError{misfits}
	case ended != nil:
		return fmt.Errorf("%d of %d explorations have a result, which may be what was seen until now: %w", len(results), len(all), ended)
	case v != check.Held:
		return verdictError{v, explore.Summary(results)}
	}
	return nil
}

// asRun makes an exploration one run, for `run`; its repeat command is that of
// `explore`.
func asRun(r *explore.Result, seed uint64) world.Result {
	run := world.Result{
		Scenario: r.Scenario, File: r.File, Seed: seed, Profile: r.Profile, Verdict: r.Verdict,
		WallSeconds: r.WallSeconds, Repeat: r.Repeat,
	}
	for _, c := range r.Checks {
		if c.Verdict != check.Held && c.Schedule != "" {
			c.Message += "\nschedule: " + c.Schedule
		}
		run.Checks = append(run.Checks, c.Result)
	}
	return run
}
