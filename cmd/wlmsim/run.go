package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/world"
	"github.com/wlmsim/wlmsim/wlm"
)

// runFlags are the flags of `run`.
type runFlags struct {
	seed        uint64
	seeds       string
	shard       string
	profiles    []string
	set         []string
	format      string
	out         string
	jobs        int
	limit       time.Duration
	twice       bool
	stopAtFirst bool
	shrink      shrinkFlags
}

func newRun(s streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run PATH...",
		Short: "Run scenario files in virtual time and judge what happened",
		Long: `Run scenario files: each builds the cluster that it describes out of the real
nodes inside a bubble of virtual time, drives its steps, load and faults, and is
judged. A folder means every .yaml file under it. A file with an explore: block
and neither steps nor load is explored, as by wlmsim explore, whatever the seeds.

Results go to standard output, a line a run; one that did not hold shows what
broke, where the file says so, and the command that repeats it. Each run happens
in a worker process; one that crashes or hangs is undecided. An interrupt writes
the results of what was finished.

Under several profiles a file's results are columns, one a profile, and what
differs is marked and named. A dash stands for what was not asked under a
profile; an expectation of a step shows only where it did not hold.`,
		Example: `  wlmsim run scenarios                                  # every file
  wlmsim run lag.yaml --seed 7 --out runs               # one run, and what happened in it
  wlmsim run lag.yaml --seeds 1..10000 --stop-at-first  # a campaign
  wlmsim run lag.yaml --shrink --out small              # the least that still breaks
  wlmsim run lag.yaml --seeds 1..10000 --shard 3/10 --format json > 3.json
  wlmsim run lag.yaml --profile submitted,reviewed,upstream  # side by side
  wlmsim run lag.yaml --set groups.analytics.throttling.node_limit=5`,
		Args: atLeastOne("scenario file or folder"),
		RunE: func(c *cobra.Command, args []string) error {
			var seed *uint64
			if c.Flags().Changed("seed") {
				seed = &f.seed
			}
			return runScenarios(c.Context(), s, &f, seed, args)
		},
	}
	flags := c.Flags()
	flags.Uint64Var(&f.seed, "seed", 0, "seed of everything that is drawn, in place of the file's")
	flags.StringVar(&f.seeds, "seeds", "", "every seed from A to B, both included, as A..B")
	flags.StringVar(&f.shard, "shard", "", "with --seeds, every N-th seed, as I/N with I from 0 to N-1")
	flags.StringSliceVar(&f.profiles, "profile", nil, "profiles to run under, in place of the file's: "+strings.Join(wlm.Profiles(), ", "))
	flags.StringArrayVar(&f.set, "set", nil, "PATH=VALUE: change a value of the files, such as groups.analytics.throttling.node_limit=5 (repeatable)")
	flags.StringVar(&f.format, "format", report.Formats()[0], strings.Join(report.Formats(), ", "))
	flags.StringVar(&f.out, "out", "", "folder that gets a folder for each run, with its history, result and scenario")
	addJobs(flags, &f.jobs, &f.limit, "runs", "wall time after which a run is taken for hung, made to print its goroutines, and undecided; an exploration is if it takes no turn for so long")
	flags.BoolVar(&f.twice, "twice", false, "do each run twice and compare what happened: a note, in the exact lane a failure")
	flags.BoolVar(&f.stopAtFirst, "stop-at-first", false, "stop at the first run that broke; otherwise all are counted")
	f.shrink.add(c)
	return c
}

func runScenarios(ctx context.Context, s streams, f *runFlags, seed *uint64, paths []string) error {
	f.profiles = once(f.profiles)
	seeds, err := f.check(seed)
	if err != nil {
		return usageError{err}
	}
	files, exploring, err := readScenarios(s, paths, f.set)
	if err != nil {
		return err
	}
	tasks, err := f.tasks(files, seeds)
	if err != nil {
		return usageError{err}
	}
	if len(tasks)+len(exploring) == 0 {
		fmt.Fprintf(s.err, "wlmsim: nothing to run: --shard %s has none of the seeds\n", f.shard)
	}
	if err := makeFolder(f.out); err != nil {
		return usageError{err}
	}
	start, err := workerStarter()
	if err != nil {
		return err
	}
	toExplore := explorations(exploring, f.profiles, f.jobs, campaign.Exploration{Set: f.set})
	progress := newProgress(s.err, "run", len(tasks)+len(toExplore))
	c := campaign.Config{
		Start: start, Jobs: f.jobs, Limit: f.limit, Fresh: exact.Enabled, Twice: f.twice, MustRepeat: exact.Enabled,
		StopAtFirst: f.stopAtFirst, Done: progress.done, Tick: progress.tick,
	}
	results, ended := campaign.Run(ctx, c, tasks)
	small := newShrinker(s, &f.shrink, f.set, f.out, f.format)
	var misfits error
	if ended == nil && !(f.stopAtFirst && report.Verdict(results) == check.Broken) {
		var explored []*explore.Result
		explored, misfits, ended = exploreAll(ctx, c, toExplore, small)
		results = append(results, asRuns(explored, exploring)...)
	}
	progress.end()
	if ended == nil {
		ended = small.ran(ctx, files, results)
	}
	if err := report.Write(s.out, f.format, results, sourceOf); err != nil {
		return err
	}
	small.end()
	switch {
	case misfits != nil:
		return usageError{misfits}
	case ended != nil:
		return fmt.Errorf("%d of %d runs were finished: %w", len(results), len(tasks)+len(toExplore), ended)
	}
	return verdictOf(results)
}

// verdictOf is the error of a command whose results did not all hold.
func verdictOf(results []world.Result) error {
	if v := report.Verdict(results); v != check.Held {
		return verdictError{v, report.Summary(results)}
	}
	return nil
}

// check checks all flags and reads the seeds; none: each file's own.
func (f *runFlags) check(seed *uint64) (seedRange, error) {
	seeds, err := parseSeeds(f.seeds, f.shard)
	if seed != nil && f.seeds != "" {
		err = errors.Join(err, errors.New("--seed and --seeds exclude each other"))
	}
	if seed != nil {
		seeds = seedRange{from: *seed, count: 1, every: 1}
	}
	return seeds, errors.Join(err, report.CheckFormat(f.format), f.shrink.check(f.out), checkProfiles(f.profiles), checkJobs(f.jobs, f.limit))
}

// addJobs adds the flags about workers; what names what they do.
func addJobs(flags *pflag.FlagSet, jobs *int, limit *time.Duration, what, hung string) {
	flags.IntVar(jobs, "jobs", runtime.GOMAXPROCS(0), "how many "+what+" go on side by side")
	flags.DurationVar(limit, "limit", campaign.DefaultLimit, hung)
}

func checkJobs(jobs int, limit time.Duration) error {
	var faults []error
	if jobs < 1 {
		faults = append(faults, fmt.Errorf("--jobs %d: at least 1", jobs))
	}
	if limit <= 0 {
		faults = append(faults, fmt.Errorf("--limit %v: over 0", limit))
	}
	return errors.Join(faults...)
}

// once returns names without those that come again.
func once(names []string) (kept []string) {
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func checkProfiles(profiles []string) error {
	var faults []error
	for _, p := range profiles {
		if _, err := wlm.Profile(p); err != nil {
			faults = append(faults, fmt.Errorf("--profile: %w", err))
		}
	}
	return errors.Join(faults...)
}

// asRuns makes explorations runs, each with the seed of its file.
func asRuns(explored []*explore.Result, files []scenarioFile) (runs []world.Result) {
	seeds := map[string]uint64{}
	for _, f := range files {
		seeds[f.path] = f.parsed.Filled().Seed
	}
	for _, r := range explored {
		runs = append(runs, asRun(r, seeds[r.File]))
	}
	return runs
}

// maxRuns bounds a campaign, so that its results fit in memory.
const maxRuns = 1_000_000

// tasks are the runs: each file under each profile with each seed.
func (f *runFlags) tasks(files []scenarioFile, seeds seedRange) ([]campaign.Task, error) {
	if n := uint64(len(files)) * uint64(max(1, len(f.profiles))); n > 0 && seeds.count > maxRuns/n {
		return nil, fmt.Errorf("%d files and profiles with %d seeds each are more than %d runs", n, seeds.count, maxRuns)
	}
	folders := folderNames{}
	var tasks []campaign.Task
	for _, file := range files {
		filled := file.parsed.Filled()
		profiles := f.profiles
		if len(profiles) == 0 {
			profiles = []string{filled.Profile}
		}
		own := seeds
		if seeds.every == 0 {
			own = seedRange{from: filled.Seed, count: 1, every: 1}
		}
		for _, profile := range profiles {
			for i := range own.count {
				t := campaign.Task{Scenario: filled.Name, File: file.path, Set: f.set, Seed: own.at(i), Profile: profile}
				t.Repeat = f.repeat(&t)
				if f.out != "" {
					t.Out = filepath.Join(f.out, folders.unique(&t))
				}
				tasks = append(tasks, t)
			}
		}
	}
	return tasks, nil
}

// repeat is the command that does a task again.
func (f *runFlags) repeat(t *campaign.Task) string {
	program := "wlmsim"
	if exact.Enabled {
		program = "wlmsim-exact"
	}
	words := []string{program, "run", quoted(t.File), "--seed", strconv.FormatUint(t.Seed, 10), "--profile", t.Profile}
	for _, set := range t.Set {
		words = append(words, "--set", quoted(set))
	}
	if f.twice {
		words = append(words, "--twice")
	}
	return strings.Join(words, " ")
}

// quoted writes a word as a POSIX shell takes it.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@+"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// folderNames gives each run a folder of its own.
type folderNames map[string]bool

func (names folderNames) unique(t *campaign.Task) string {
	stem := strings.TrimSuffix(filepath.ToSlash(filepath.Clean(t.File)), filepath.Ext(t.File))
	for _, up := range []string{"../", "/"} {
		for strings.HasPrefix(stem, up) {
			stem = strings.TrimPrefix(stem, up)
		}
	}
	base := fmt.Sprintf("%s.%s.%d", strings.NewReplacer("/", "_", ":", "_").Replace(stem), t.Profile, t.Seed)
	name := base
	for i := 2; names[name]; i++ {
		name = fmt.Sprintf("%s.%d", base, i)
	}
	names[name] = true
	return name
}

// workerStarter starts workers as processes of this same program.
func workerStarter() (func() *exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func() *exec.Cmd {
		return &exec.Cmd{Path: path, Args: []string{os.Args[0], workerName}, Env: append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")}
	}, nil
}
