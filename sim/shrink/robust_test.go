package shrink_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/shrink"
	"github.com/wlmsim/wlmsim/sim/simtest"
	"github.com/wlmsim/wlmsim/sim/world"
)

// fataler is what [testing.T] and [rapid.T] have in common.
type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

// fromDisk writes a shrunk file into a folder and returns what is read there.
func fromDisk(t fataler, s *shrink.Shrunk, dir string) *scenario.File {
	t.Helper()
	path := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(path, s.Text(path), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	f, err := scenario.Read(path)
	if err != nil {
		t.Fatalf("%v:\n%s", err, s.Text(path))
	}
	return f
}

// Promises 1 to 3 and 5, on drawn explorations with every flaw of the review in
// them: what is written parses, fails in the same way when it is read from disk
// and executed by its schedule, and no move from it fails in any order.
func TestADrawnFileShrinksToALeastOne(t *testing.T) {
	dir := t.TempDir()
	files := simtest.Explorations().Filter(func(f *scenario.File) bool { return brokenPromise(f) != nil })
	rapid.Check(t, func(t *rapid.T) {
		f := files.Draw(t, "file")
		r := brokenPromise(f)
		s, err := shrink.Explore(context.Background(), f, r, shrink.Limits{Time: time.Hour})
		if err != nil || !s.Least {
			t.Fatalf("%v: %v\n%s", err, s, scenario.Print(f))
		}
		read := fromDisk(t, s, dir)
		again, err := explore.Run(read, explore.Options{Schedule: s.Failure.Schedule})
		if err != nil || !shown(&s.Failure, plainChecks(again)) {
			t.Fatalf("%v: it does not fail again:\n%s", err, s.Text("small.yaml"))
		}
		for _, g := range shrink.Moves(read) {
			r, err := explore.Run(g, explore.Options{})
			if errors.Is(err, explore.ErrUsage) { // nothing is explored any more
				continue
			}
			if err != nil || !r.Complete || shown(&s.Failure, plainChecks(r)) {
				t.Fatalf("%v: one move further it fails as well:\n%s\nthan\n%s", err, scenario.Print(g), s.Text("small.yaml"))
			}
		}
	})
}

// brokenPromise explores a file as submitted, and returns nil if it holds.
func brokenPromise(f *scenario.File) *explore.Result {
	r, err := explore.Run(f, explore.Options{Profile: "submitted", Schedules: 200})
	if err != nil || r.Verdict != check.Broken {
		return nil
	}
	return r
}

// The same of drawn runs, of a flaw that does not depend on how a run goes.
func TestADrawnRunFailsAgainFromDisk(t *testing.T) {
	dir, enough := t.TempDir(), 1
	if soaked() {
		enough = 30
	}
	for seed := 0; enough > 0; seed++ {
		f, err := simtest.Scenarios().Example(seed).Set("switches.principal_carrier=header")
		require.NoError(t, err)
		r, err := world.Run(f, world.Options{})
		require.NoError(t, err)
		if r.Verdict != check.Broken { // no search of a user was sent to another node
			continue
		}
		enough--
		s, err := shrink.Run(t.Context(), f, r, shrink.InProcess, shrink.Limits{Time: time.Hour})
		require.NoError(t, err)
		require.True(t, s.Least)
		require.Equal(t, string(scenario.PrincipalStays), s.Failure.Check)
		again, err := world.Run(fromDisk(t, s, dir), world.Options{})
		require.NoError(t, err)
		require.True(t, shown(&s.Failure, again.Checks), string(s.Text("small.yaml")))
	}
}

const two = "version: 1\nname: f\nsteps: [{at: 1s, search: {id: a}}, {at: 2s, search: {id: b}}, {at: 3s, search: {id: c}}]\n"

// judged is a runner whose runs break what a function says of the file.
func judged(say func(f *scenario.File, seed uint64) []check.Result) shrink.Runner {
	return func(_ context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
		return &world.Result{Profile: f.Filled().Profile, Seed: seed, Checks: say(f, seed)}, nil
	}
}

// has says whether some step of a file makes the request of an id.
func has(f *scenario.File, id string) bool {
	return slices.ContainsFunc(f.Steps, func(s scenario.Step) bool { return s.ID() == id })
}

func breaks(p scenario.Promise, v check.Verdict, message string) check.Result {
	return check.Result{Name: string(p), Verdict: v, Message: message}
}

func shrunkBy(t *testing.T, text string, run shrink.Runner) (*shrink.Shrunk, error) {
	t.Helper()
	f, err := scenario.Parse("f", []byte(text))
	require.NoError(t, err)
	r, err := run(t.Context(), f, 3)
	require.NoError(t, err)
	return shrink.Run(t.Context(), f, r, run, shrink.Limits{})
}

// Of several promises that break one is kept, with its sentence: never another
// one, never the same with another sentence, never what is undecided.
func TestTheSameFailureIsKept(t *testing.T) {
	s, err := shrunkBy(t, two, judged(func(f *scenario.File, _ uint64) []check.Result {
		all := []check.Result{breaks(scenario.OneOutcome, check.Held, "")}
		switch {
		case has(f, "a") && has(f, "b"):
			all = append(all, breaks(scenario.PermitsReturn, check.Broken, "a permit is missing: of a"))
		case has(f, "a"):
			all = append(all, breaks(scenario.PermitsReturn, check.Broken, "a bucket is left: of a"))
		case has(f, "b"):
			all = append(all, breaks(scenario.PermitsReturn, check.Undecided, "a permit is missing: of b"))
		}
		return append(all, breaks(scenario.Settles, check.Broken, "no leader"))
	}))
	require.NoError(t, err)
	require.True(t, s.Least)
	require.Equal(t, []string{"search", "search"}, names(s.File))
	require.True(t, has(s.File, "a") && has(s.File, "b"))
	require.Equal(t, "permits_return", s.Failure.Check)
	require.Equal(t, "a permit is missing: of a", s.Failure.Message)
}

// A run that cannot be made, as one that crashed, does not fail; nor does one
// that fails once and not again with its seed.
func TestARunThatDoesNotFailTwiceDoesNotFail(t *testing.T) {
	seen := map[string]int{}
	flaky := func(ctx context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
		if !has(f, "a") {
			return nil, errors.New("the worker ended")
		}
		seen[string(scenario.Print(f))]++
		broken := has(f, "b") || seen[string(scenario.Print(f))]%2 == 1
		return &world.Result{Profile: "reviewed", Seed: seed, Checks: sometimes(seed, broken)}, nil
	}
	s, err := shrunkBy(t, two, flaky)
	require.NoError(t, err)
	require.True(t, s.Least)
	require.Equal(t, []string{"search", "search"}, names(s.File))
	require.True(t, has(s.File, "a") && has(s.File, "b"))
}

// Promise 6: who ends it early gets the smallest file that was found, and hears
// why it is not the least one.
func TestAnInterruptLeavesTheSmallestSoFar(t *testing.T) {
	f, err := scenario.Parse("f", []byte(two))
	require.NoError(t, err)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	always := judged(func(_ *scenario.File, seed uint64) []check.Result { return sometimes(seed, true) })
	var told []shrink.Progress
	s, err := shrink.Run(ctx, f, &world.Result{Seed: 3, Profile: "reviewed", Checks: sometimes(3, true)}, always, shrink.Limits{Told: func(p shrink.Progress) {
		if told = append(told, p); len(told) == 2 {
			cancel(enough)
		}
	}})
	require.ErrorIs(t, err, enough)
	require.False(t, s.Least)
	require.Len(t, told, 2)
	require.Equal(t, told[1].Size.Parts, shrink.SizeOf(s.File).Parts-1, "and the seed")
	require.Zero(t, s.Of, "there was no time to see how often it fails")
	_, _, err = shrink.Parse("small.yaml", s.Text("small.yaml"))
	require.NoError(t, err)
}

// The parts of a file that are not its steps go or stay like these.
func TestOtherPartsOfAFileShrink(t *testing.T) {
	const load = "load: [{name: l, group: g, arrive: {poisson: 100/s}, for: 10s}, {name: m, user: u, arrive: {closed: 5}, for: 10s}]\n"
	const groups = "groups: [{name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}]\n"
	head := func(rest string) string { return "version: 1\nname: f\n" + groups + rest }
	for name, row := range map[string]struct {
		text  string
		needs func(*scenario.File) bool
		want  string
	}{
		"load alone": {head(load), func(f *scenario.File) bool {
			return slices.ContainsFunc(f.Load, func(l scenario.Load) bool { return l.Name == "m" })
		},
			"load:\n  - {name: m, arrive: {closed: 1}, for: 1ms}\n"},
		"a load with its group": {head(load), func(f *scenario.File) bool { return len(f.Load) > 0 && f.Load[0].Group == "g" },
			"groups:\n  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}\nload:\n  - {name: l, group: g, arrive: {poisson: 1/s}, for: 1ms}\n"},
		"delays": {head("cluster: {delays: {applier.apply: 0s..5ms, applier.published: 1ms..2ms}}\n"),
			func(f *scenario.File) bool { return f.Cluster.Delays["applier.published"].Max > 0 },
			"  delays: {applier.published: 1ms}\n"},
		"under another profile": {head("under: {submitted: {breaks: [principal_stays], expect: ['1 == 1']}}\n"),
			func(f *scenario.File) bool { return len(f.Groups) > 0 },
			"  data: 1\ngroups:\n  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := shrunkBy(t, row.text, judged(func(f *scenario.File, seed uint64) []check.Result { return sometimes(seed, row.needs(f)) }))
			require.NoError(t, err)
			require.True(t, s.Least)
			text := string(scenario.Print(s.File))
			require.Contains(t, text, row.want)
			require.NotContains(t, text, "under")
			require.NotContains(t, text, "user")
		})
	}
}

// A trace goes with its file, whose folder it is looked for in. Its rows stay.
func TestATraceShrinksWithItsFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.csv"), []byte("time,user,roles,index,service_time\n0s,alice,analyst,logs,5ms\n10ms,bob,,logs,\n"), 0o600))
	path := filepath.Join(dir, "f.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`version: 1
name: f
switches: {principal_carrier: header}
cluster: {managers: 1, data: 2}
groups: [{name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}]
load: [{name: l, group: g, arrive: {trace: t.csv}, from: 1s}, {name: m, arrive: {closed: 2}, for: 1s}]
steps: [{at: 1s, search: {}}]
`), 0o600))
	f, err := scenario.Read(path)
	require.NoError(t, err)
	r, err := world.Run(f, world.Options{})
	require.NoError(t, err)
	s, err := shrink.Run(t.Context(), f, r, shrink.InProcess, shrink.Limits{Time: time.Hour})
	require.NoError(t, err)
	require.True(t, s.Least)
	require.Empty(t, names(s.File))
	require.Len(t, s.File.Load, 1)
	require.Equal(t, "t.csv", s.File.Load[0].Arrive.Trace)
	again, err := world.Run(fromDisk(t, s, dir), world.Options{})
	require.NoError(t, err)
	require.True(t, shown(&s.Failure, again.Checks))
}
