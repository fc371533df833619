package simtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/shrink"
)

// ScheduleVariable is the environment variable that makes every Explore execute
// one schedule alone.
const ScheduleVariable = "WLMSIM_SCHEDULE"

// Defaults of an [Exploration].
const (
	DefaultFailures = "testdata/wlmsim"
	DefaultShrink   = 20 * time.Second
)

// MaxFailures bounds the fail files of one test, which may explore many programs.
const MaxFailures = 10

// Exploration says what [Explore] explores, and how.
type Exploration struct {
	// Scenario is the text of a scenario file with an explore: block; version
	// and name may be left out.
	Scenario string
	// File is the path of a scenario file, in place of Scenario.
	File string
	// Set makes assignments to the scenario, such as "switches.acquire=rollback".
	Set []string
	// Profile to explore under. "": the scenario's.
	Profile string

	// Strategy, Schedules and Preemptions are those of [explore.Options]: by
	// default every order of one node is tried.
	Strategy    string
	Schedules   int
	Preemptions *int

	// Failures is the folder of fail files. "": DefaultFailures, which is
	// beside the test.
	Failures string
	// Shrink bounds the wall time of making a failure smaller. 0:
	// DefaultShrink.
	Shrink time.Duration
}

// Explore tries the orders of the scenario's actors and fails the test if a
// promise breaks in one, if a forbidden outcome can happen, if a required one
// cannot, or if nothing can be said. It tells the schedule and the command that
// repeats it, and writes the smallest form of the failure to a fail file, which
// is executed first from then on: while it fails, the test fails by it alone;
// once it does not, it is removed, which the test's log says. A fail file whose
// schedule does not fit any more, or of which nothing can be said, is said to be
// stale and explored anew.
//
// A fail file belongs to the test and to the program that it explores, which is
// the scenario with its assignments and the profile: where that has changed, its
// fail files are not executed, and the log names them, to be removed.
//
// It returns what can happen, or what the fail file did; nil if the test was
// ended.
func Explore(t TB, o Exploration) *explore.Result {
	t.Helper()
	x := exploring{TB: t, options: o}
	f, schedule, err := x.prepare()
	if err != nil {
		endTest(t, err)
		return nil
	}
	if schedule == nil {
		x.tellStrangers()
		if r, failed, err := x.again(); err != nil {
			endTest(t, err)
			return nil
		} else if failed {
			return r
		}
	}
	r, err := explore.Run(f, explore.Options{
		Strategy: o.Strategy, Schedules: o.Schedules, Preemptions: o.Preemptions, Schedule: schedule, Profile: o.Profile, Path: o.File, Set: o.Set,
	})
	if err != nil {
		endTest(t, err)
		return nil
	}
	if r.Verdict != check.Held {
		kept := ""
		if schedule == nil && r.Verdict == check.Broken {
			kept = x.keep(f, r)
		}
		t.Errorf("%s%s", x.report(r), kept)
	}
	return r
}

// endTest fails the test and ends it.
func endTest(t TB, err error) {
	t.Helper()
	t.Errorf("simtest: %v", err)
	t.FailNow()
}

// exploring is one call of Explore.
type exploring struct {
	TB
	options Exploration
	program string // a short text that tells the program from others
}

// prepare reads the scenario and the schedule.
func (x *exploring) prepare() (*scenario.File, explore.Schedule, error) {
	o := &x.options
	if o.Failures == "" {
		o.Failures = DefaultFailures
	}
	if o.Shrink == 0 {
		o.Shrink = DefaultShrink
	}
	var schedule explore.Schedule
	if text, given := os.LookupEnv(ScheduleVariable); given {
		var err error
		if schedule, err = explore.ParseSchedule(text); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", ScheduleVariable, err)
		}
		schedule = append(explore.Schedule{}, schedule...) // an empty one is given, too
	}
	if o.File != "" && o.Scenario != "" {
		return nil, nil, errors.New("an exploration has both Scenario and File: give one")
	}
	var f *scenario.File
	var err error
	if o.File != "" {
		f, err = scenario.Read(o.File, o.Set...)
	} else {
		f, err = scenario.Parse("scenario", []byte(complete(o.Scenario, x.Name())), o.Set...)
	}
	if err == nil {
		h := fnv.New32a()
		fmt.Fprintf(h, "%s\n%s\n%s", x.Name(), o.Profile, scenario.Print(f))
		x.program = fmt.Sprintf("%08x", h.Sum32())
	}
	return f, schedule, err
}

// path is the fail file of the test and its program.
func (x *exploring) path() string {
	return filepath.Join(filepath.FromSlash(x.options.Failures), x.stem()+x.program+".yaml")
}

// stem is what the names of the test's fail files begin with. Other tests may
// have the same.
func (x *exploring) stem() string {
	name := unsafe.ReplaceAllString(x.Name(), "_")
	return name[:min(len(name), 100)] + "."
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// heading is the first line of the test's fail files.
func (x *exploring) heading() string { return "# test: " + strings.Join(strings.Fields(x.Name()), " ") }

// strangers returns the fail files of the test that other programs left.
func (x *exploring) strangers() (paths []string) {
	folder := filepath.Dir(x.path())
	entries, err := os.ReadDir(folder)
	if err != nil { // there is no folder yet
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if path == x.path() || !strings.HasPrefix(e.Name(), x.stem()) {
			continue
		}
		text, err := os.ReadFile(path)
		if line, _, _ := strings.Cut(string(text), "\n"); err == nil && line == x.heading() {
			paths = append(paths, path)
		}
	}
	return paths
}

// tellStrangers says which fail files are not executed.
func (x *exploring) tellStrangers() {
	if paths := x.strangers(); len(paths) > 0 {
		x.logf("simtest: not executed: fail files of other programs of this test, to be removed if it explores them no more: %s", strings.Join(paths, ", "))
	}
}

// logf writes to the test's log, if it has one.
func (x *exploring) logf(format string, args ...any) {
	if l, ok := x.TB.(interface{ Logf(string, ...any) }); ok {
		l.Logf(format, args...)
	}
}

// again executes the test's fail file, if there is one, and says whether the
// test fails by it.
func (x *exploring) again() (r *explore.Result, failed bool, err error) {
	path := x.path()
	f, failure, err := shrink.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && failure.Schedule == nil {
		err = fmt.Errorf("%s has no schedule", path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("the fail file cannot be read; mend or remove it: %w", err)
	}
	r, stale, err := replay(f, failure.Schedule)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%s: %w", path, err)
	case stale != "":
	case shows(r, &failure):
		x.Errorf("%s\n\tby the fail file %s", x.report(r), path)
		return r, true, nil
	case r.Verdict == check.Undecided:
		stale = "its schedule is undecided"
	default:
		x.remove(path, "does not fail any more")
		return nil, false, nil
	}
	if r, err = explore.Run(f, explore.Options{Strategy: x.options.Strategy, Schedules: x.options.Schedules, Preemptions: x.options.Preemptions}); err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case shows(r, &failure):
		x.Errorf("%s\n\tby the fail file %s, whose schedule is stale: %s%s", x.report(r), path, stale, x.keep(f, r))
	case r.Verdict == check.Held && r.Complete:
		x.remove(path, "is stale ("+stale+"), and fails in no order any more")
		return nil, false, nil
	default:
		x.Errorf("%s\n\tthe fail file %s is stale: %s; it was not seen to fail, nor to hold in every order: mend or remove it", x.report(r), path, stale)
	}
	return r, true, nil
}

// replay executes a schedule, and says why it is stale, if it is.
func replay(f *scenario.File, s explore.Schedule) (r *explore.Result, stale string, err error) {
	r, err = explore.Run(f, explore.Options{Schedule: s})
	switch {
	case errors.Is(err, explore.ErrUsage):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case len(r.Outcomes) != 1:
		return r, "it came to no end", nil
	case r.Outcomes[0].Schedule != s.String():
		return r, "it goes on as " + r.Outcomes[0].Schedule, nil
	}
	return r, "", nil
}

// shows says whether an exploration shows a failure.
func shows(r *explore.Result, failure *shrink.Failure) bool {
	for i := range r.Checks {
		if failure.Is(&r.Checks[i].Result) {
			return true
		}
	}
	return false
}

// keep writes the smallest form of a failure, and says where it is.
func (x *exploring) keep(f *scenario.File, r *explore.Result) string {
	small, err := shrink.Explore(context.Background(), f, r, shrink.Limits{Time: x.options.Shrink})
	if errors.Is(err, shrink.ErrNothing) { // such as an outcome that is required
		return ""
	}
	path := x.path()
	if err == nil {
		err = x.write(path, small.Text(path))
	}
	if err != nil {
		return fmt.Sprintf("\n\tnot kept: %v", err)
	}
	return fmt.Sprintf("\n\tits smallest form is kept in %s, which is executed first from now on: %s", path, small.Repeat(path))
}

// write writes a fail file as a whole or not at all, since tests in other
// processes may read it.
func (x *exploring) write(path string, text []byte) error {
	if n := len(x.strangers()); n >= MaxFailures {
		return fmt.Errorf("there are %d fail files of this test already, beginning with %s: at most %d; mend or remove some", n, x.strangers()[0], MaxFailures)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".wlmsim-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append([]byte(x.heading()+"\n"), text...))
	err = errors.Join(err, f.Chmod(0o666), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// remove removes a fail file and says why.
func (x *exploring) remove(path, why string) {
	text := fmt.Sprintf("simtest: the fail file %s %s; it is removed", path, why)
	if err := os.Remove(path); err != nil {
		text = fmt.Sprintf("simtest: the fail file %s %s, and should be removed: %v", path, why, err)
	}
	x.logf("%s", text)
}

// report says what did not hold, and how to see it again.
func (x *exploring) report(r *explore.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "simtest: %s, %d schedules by %s", r.Verdict, r.Schedules, r.Strategy)
	again := ""
	for _, c := range r.Checks {
		if c.Verdict == check.Held {
			continue
		}
		fmt.Fprintf(&b, "\n\t%s %s: %s", c.Name, c.Verdict, c.Message)
		if c.Line > 0 {
			fmt.Fprintf(&b, " (line %d of the scenario)", c.Line)
		}
		if c.Schedule != "" {
			fmt.Fprintf(&b, "\n\t\tschedule: %s", c.Schedule)
			if again == "" {
				again = ScheduleVariable + "='" + c.Schedule + "' "
			}
		}
	}
	return fmt.Sprintf("%s\n\trun it again: %sgo test -count=1 -run %s %s", &b, again, pattern(x.Name()), tested())
}
