package simtest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// SeedVariable is the environment variable that sets the seed of every Run.
const SeedVariable = "WLMSIM_SEED"

// TB is what Run needs of a test. *testing.T, *testing.B and a rapid.T are
// ones, and [Example] is one.
type TB interface {
	Helper()
	Name() string
	Errorf(format string, args ...any)
	FailNow()
}

// Example is the TB of an Example function, by its name. What fails is printed
// on standard output, so that the output is not the expected one; FailNow
// panics.
type Example string

// Helper does nothing.
func (e Example) Helper() {}

// Name returns the name.
func (e Example) Name() string { return string(e) }

// Errorf prints.
func (e Example) Errorf(format string, args ...any) { fmt.Printf("FAIL: "+format+"\n", args...) }

// FailNow panics.
func (e Example) FailNow() { panic(string(e) + " failed") }

// Options say what cluster a test gets. The zero value is three managers, three
// data nodes, and an index logs of one shard.
type Options struct {
	// Scenario is the text of a scenario file: cluster, users, groups, rules,
	// load, steps, expectations. version and name may be left out. The test's
	// function runs beside its steps and load.
	Scenario string
	// File is the path of a scenario file, in place of Scenario.
	File string
	// Set makes assignments to the scenario, such as
	// "groups.analytics.throttling.node_limit=5".
	Set []string

	// Seed of everything that is drawn. 0: the scenario's.
	Seed uint64
	// Profile to run under. "": the scenario's.
	Profile string
	// Limit is how much virtual time the function may take; 0: a day.
	Limit time.Duration
	// Log gets what the nodes log; nil: nothing does.
	Log *slog.Logger
}

// Run builds the cluster, calls f inside its bubble once every node is ready,
// and judges what happened. It returns what came of the run, for those who want
// to know more than that nothing broke; nil if the test ended it.
func Run(t TB, o Options, f func(*Cluster)) *world.Result {
	t.Helper()
	file, wo, err := o.prepare(t.Name())
	if err != nil {
		return stop(t, "%v", err)
	}
	result, err := world.Drive(file, wo, func(inner *world.Cluster) {
		c := &Cluster{Cluster: inner, t: t}
		defer c.closeTransports()
		f(c)
	})
	switch {
	case errors.Is(err, world.ErrExited): // whoever did that has told why
		if s, ok := t.(interface{ Skipped() bool }); ok && s.Skipped() {
			runtime.Goexit()
		}
		t.FailNow()
		return nil
	case err != nil:
		return stop(t, "%v\n%s", err, repeat(t.Name(), seedOf(file, &wo)))
	}
	if result.Verdict != check.Held {
		t.Errorf("%s", report(result, t.Name()))
	}
	return result
}

// stop fails the test and ends it.
func stop(t TB, format string, args ...any) *world.Result {
	t.Helper()
	t.Errorf("simtest: "+format, args...)
	t.FailNow()
	return nil
}

// prepare reads the scenario and the seed.
func (o *Options) prepare(test string) (*scenario.File, world.Options, error) {
	wo := world.Options{Profile: o.Profile, Path: o.File, Set: o.Set, Limit: o.Limit, Log: o.Log}
	if o.Seed != 0 {
		wo.Seed = &o.Seed
	}
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, wo, fmt.Errorf("%s is %q: a number from 0 to 2^64-1 is wanted", SeedVariable, text)
		}
		wo.Seed = &seed
	}
	if o.File != "" && o.Scenario != "" {
		return nil, wo, errors.New("options have both Scenario and File: give one")
	}
	if o.File != "" {
		file, err := scenario.Read(o.File, o.Set...)
		return file, wo, err
	}
	file, err := scenario.Parse("scenario", []byte(complete(o.Scenario, test)), o.Set...)
	return file, wo, err
}

// complete adds the keys that a text in a test may do without. They go to the
// end, so that every line keeps its number.
func complete(text, test string) string {
	for _, line := range [][2]string{{"version", strconv.Itoa(scenario.Version)}, {"name", strconv.Quote(test)}} {
		if !regexp.MustCompile(`(?m)^` + line[0] + `\s*:`).MatchString(text) {
			text += "\n" + line[0] + ": " + line[1] + "\n"
		}
	}
	return text
}

func seedOf(f *scenario.File, o *world.Options) uint64 {
	if o.Seed != nil {
		return *o.Seed
	}
	return f.Seed
}

// report says what did not hold, and how to see it again.
func report(r *world.Result, test string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "simtest: %s", r.Verdict)
	for _, c := range r.Checks {
		if c.Verdict == check.Held {
			continue
		}
		fmt.Fprintf(&b, "\n\t%s %s: %s", c.Name, c.Verdict, c.Message)
		if c.Line > 0 {
			fmt.Fprintf(&b, " (line %d of the scenario)", c.Line)
		}
	}
	return b.String() + "\n" + repeat(test, r.Seed)
}

// repeat returns the seed and the commands that run a test with it again.
func repeat(test string, seed uint64) string {
	again := fmt.Sprintf("%s=%d go test -count=1 -run %s", SeedVariable, seed, pattern(test))
	return fmt.Sprintf("\tseed %d; run it again: %s %s\n\tto the bit: %s -tags exact -overlay \"$(wlmsim overlay)\" %s", seed, again, tested(), again, tested())
}

// pattern is what go test -run takes for one test, quoted for a shell.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return "'" + strings.ReplaceAll(strings.Join(parts, "/"), "'", `'\''`) + "'"
}

// tested is the package whose tests run, as go test takes it.
func tested() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return path
		}
	}
	return "."
}
