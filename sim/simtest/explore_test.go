package simtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/simtest"
	"github.com/wlmsim/wlmsim/sim/world"
)

// lag is the registration lag, and flawed plants its flaw.
const lag = `
explore:
  node: m1
  actors:
    update: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}]
    first:  [{search: {id: first, user: bob, group: late, hold: true}}]
    second: [{search: {id: second, user: bob, group: late}}]
  observe: {second: second.status, default: stats("DEFAULT_WORKLOAD_GROUP").total_throttled}
  forbid: [default > 0]
`
const flawed = "switches.missing_counters=default_group"

// tiny is one search, and told plants the flaw that it tells of its user.
const tiny = `explore: {node: m1, actors: {one: [{search: {id: one, user: bob}}]}, observe: {one: one.status}}`
const told = "switches.principal_carrier=header"

// failFile is the path of the fail file of a test that may fail.
func failFile(t *testing.T, name string, o simtest.Exploration) string {
	t.Helper()
	path, err := simtest.FailFile(&recorder{name: name}, o)
	require.NoError(t, err)
	return path
}

// Logf makes a recorder one that has a log.
func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }

// nameOfTests is the name of the tests that may fail.
const nameOfTests = "TestOf/it's (me)"

// exploredBy explores within a test that may fail.
func exploredBy(o simtest.Exploration) (*recorder, *explore.Result) {
	return exploredAs(nameOfTests, o)
}

func exploredAs(name string, o simtest.Exploration) (*recorder, *explore.Result) {
	r := &recorder{name: name}
	var result *explore.Result
	done := make(chan struct{})
	go func() {
		defer close(done)
		result = simtest.Explore(r, o)
	}()
	<-done
	return r, result
}

func TestAnExplorationThatHolds(t *testing.T) {
	failures := t.TempDir()
	r, result := exploredBy(simtest.Exploration{Scenario: lag, Failures: failures})
	require.Empty(t, r.text.String())
	require.Equal(t, check.Held, result.Verdict)
	require.True(t, result.Complete)
	entries, err := os.ReadDir(failures)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Promises 5 and 6: a failure tells its schedule and the command, is kept in
// its smallest form, and is executed first from then on.
func TestAFailureIsKeptAndExecutedFirst(t *testing.T) {
	o := simtest.Exploration{Scenario: lag, Set: []string{flawed}, Failures: filepath.Join(t.TempDir(), "a", "b")}
	r, result := exploredBy(o)
	require.False(t, r.ended, "it goes on, as after Errorf")
	require.False(t, result.Schedules == 1)
	text := r.text.String()
	require.Contains(t, text, "rejection_attribution broken: a rejection was counted on another group than its own")
	require.Contains(t, text, "(line 9 of the scenario)")
	path := failFile(t, nameOfTests, o)
	require.Regexp(t, `/a/b/TestOf_it_s_me_\.[0-9a-f]{8}\.yaml$`, filepath.ToSlash(path))
	require.Contains(t, text, "its smallest form is kept in "+path+", which is executed first from now on: wlmsim explore "+path+" --schedule '")

	// The line repeats it.
	line := regexp.MustCompile(`run it again: WLMSIM_SCHEDULE='(.*)' go test -count=1 -run '\^TestOf\$/\^it'\\''s \\\(me\\\)\$' github.com/wlmsim/wlmsim/sim/simtest\n`).FindStringSubmatch(text)
	require.NotNil(t, line, text)
	t.Setenv(simtest.ScheduleVariable, line[1])
	r, result = exploredBy(o)
	require.Equal(t, 1, result.Schedules)
	require.Contains(t, r.text.String(), "rejection_attribution broken")
	require.NotContains(t, r.text.String(), "kept")
	require.NoError(t, os.Unsetenv(simtest.ScheduleVariable))

	// So does the fail file, and to the same end each time.
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	r, result = exploredBy(o)
	require.Equal(t, explore.Replay, result.Strategy)
	require.Equal(t, 1, result.Schedules)
	require.Contains(t, r.text.String(), "rejection_attribution broken")
	require.Contains(t, r.text.String(), "by the fail file "+path)
	again, first := exploredBy(o)
	require.Equal(t, r.text.String(), again.text.String())
	require.Equal(t, first.Outcomes[0].Schedule, result.Outcomes[0].Schedule)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(now))
}

// keptText is the fail file of the flaw.
var keptText = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kept")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	o := simtest.Exploration{Scenario: lag, Set: []string{flawed}, Failures: dir}
	exploredBy(o)
	path, err := simtest.FailFile(&recorder{name: nameOfTests}, o)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
})

// mended changes the fail file of the flaw.
func mended(t *testing.T, change func(string) string) (o simtest.Exploration, path string) {
	t.Helper()
	text, err := keptText()
	require.NoError(t, err)
	changed := change(text)
	require.NotEqual(t, text, changed)
	o = simtest.Exploration{Scenario: lag, Failures: t.TempDir()} // the flaw is gone
	path = failFile(t, nameOfTests, o)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
	return o, path
}

func withoutFlaw(text string) string {
	return strings.Replace(text, "switches: {missing_counters: default_group}\n", "", 1)
}

var scheduled = regexp.MustCompile(`(?m)^# schedule: .*$`)

// A fail file that does not fail any more is removed, and the test goes on.
func TestAFailFileThatHoldsIsRemoved(t *testing.T) {
	o, path := mended(t, withoutFlaw)
	r, result := exploredBy(o)
	require.Empty(t, r.text.String())
	require.True(t, result.Complete, "the whole was explored")
	require.Contains(t, r.log.String(), "the fail file "+path+" does not fail any more; it is removed")
	require.NoFileExists(t, path)
}

// A schedule that does not fit any more is no pass: it is said to be stale, and
// its scenario is explored anew.
func TestAStaleScheduleIsNoPass(t *testing.T) {
	for schedule, why := range map[string]string{
		"# schedule: update": "is stale: it goes on as update",
		"# schedule: nobody": `lane "nobody", which is unknown`,
	} {
		o, path := mended(t, func(text string) string { return scheduled.ReplaceAllLiteralString(text, schedule) })
		r, result := exploredBy(o)
		require.Contains(t, r.text.String(), "by the fail file "+path+", whose schedule is stale: ")
		require.Contains(t, r.text.String(), strings.TrimPrefix(why, "is stale: "))
		require.Contains(t, r.text.String(), "rejection_attribution broken", "it still fails by another one")
		require.NotEqual(t, 1, result.Schedules)
		require.Contains(t, r.text.String(), "its smallest form is kept")
		r, result = exploredBy(o)
		require.Equal(t, 1, result.Schedules, "which was written in its place")
		require.NotContains(t, r.text.String(), "stale")
	}
	o, path := mended(t, func(text string) string {
		return withoutFlaw(scheduled.ReplaceAllLiteralString(text, "# schedule: update"))
	})
	r, _ := exploredBy(o)
	require.Empty(t, r.text.String())
	require.Contains(t, r.log.String(), "is stale (it goes on as ")
	require.Contains(t, r.log.String(), "and fails in no order any more; it is removed")
	require.NoFileExists(t, path)

	o, path = mended(t, func(text string) string {
		return withoutFlaw(scheduled.ReplaceAllLiteralString(text, "# schedule: update"))
	})
	o.Schedules = 1
	r, _ = exploredBy(o)
	require.Contains(t, r.text.String(), "it was not seen to fail, nor to hold in every order: mend or remove it")
	require.FileExists(t, path)
}

// A schedule of which nothing can be said is no pass: its fail file stays.
func TestAnUndecidedScheduleIsNoPass(t *testing.T) {
	o, path := mended(t, func(text string) string { return withoutFlaw(text) + "breaks: [counters_add_up]\n" })
	o.Schedules = 1
	r, _ := exploredBy(o)
	require.Contains(t, r.text.String(), "the fail file "+path+" is stale: its schedule is undecided; it was not seen to fail, nor to hold in every order")
	require.FileExists(t, path)
}

// Promise 6: the fail file of another program is not executed, which the log
// says: neither that of one that the test had before, nor that of another one
// that it has.
func TestAFailFileBelongsToItsProgram(t *testing.T) {
	before := simtest.Exploration{Scenario: tiny, Set: []string{told}, Failures: t.TempDir()}
	exploredBy(before)
	path := failFile(t, nameOfTests, before)
	require.FileExists(t, path)

	now := before
	now.Set = nil // the test was changed
	r, result := exploredBy(now)
	require.Empty(t, r.text.String())
	require.True(t, result.Complete)
	require.Contains(t, r.log.String(), "not executed: fail files of other programs of this test, to be removed if it explores them no more: "+path)
	require.FileExists(t, path, "the test may explore both")

	other := before
	other.Set = append([]string{"groups=[{name: more, resiliency_mode: soft, resource_limits: {cpu: 0.1}}]"}, before.Set...)
	exploredBy(other)
	for _, o := range []simtest.Exploration{before, other} {
		r, result = exploredBy(o)
		require.Equal(t, 1, result.Schedules)
		require.Contains(t, r.text.String(), "by the fail file "+failFile(t, nameOfTests, o))
		require.Contains(t, r.log.String(), "not executed: ")
	}
	require.NoError(t, os.Remove(path))
	r, _ = exploredBy(other)
	require.Empty(t, r.log.String())
}

// Tests whose names are written alike have fail files of their own, and so have
// subtests that stand side by side.
func TestTestsWithSimilarNamesShareNoFailFile(t *testing.T) {
	o := simtest.Exploration{Scenario: tiny, Set: []string{told}, Failures: t.TempDir()}
	long := "Test" + strings.Repeat("Long", 100)
	names := []string{"TestA/b", "TestA_b", "TestA/b#01", long + "/x", long + "/y"}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { exploredAs(name, o) })
	}
	all.Wait()
	entries, err := os.ReadDir(o.Failures)
	require.NoError(t, err)
	require.Len(t, entries, len(names))
	for _, name := range names {
		r, result := exploredAs(name, o)
		require.Equal(t, 1, result.Schedules, name)
		require.Contains(t, r.text.String(), "by the fail file "+failFile(t, name, o))
		require.Empty(t, r.log.String(), "the others are of other tests")
	}
}

// A test that explores many programs keeps few fail files.
func TestTheFailFilesOfATestAreBounded(t *testing.T) {
	o := simtest.Exploration{Scenario: tiny, Set: []string{told}, Failures: t.TempDir()}
	for i := range simtest.MaxFailures {
		path := filepath.Join(o.Failures, fmt.Sprintf("TestOf_it_s_me_.%d.yaml", i))
		require.NoError(t, os.WriteFile(path, []byte("# test: "+nameOfTests+"\n"), 0o600))
	}
	r, _ := exploredBy(o)
	require.Contains(t, r.text.String(), "principal_stays broken")
	require.Contains(t, r.text.String(), "not kept: there are 10 fail files of this test already, beginning with ")
	require.NoFileExists(t, failFile(t, nameOfTests, o))
}

func TestWhatEndsAnExploration(t *testing.T) {
	bad := func(text string) simtest.Exploration {
		o, _ := mended(t, func(string) string { return text })
		return o
	}
	for name, row := range map[string]struct {
		o    simtest.Exploration
		want string
	}{
		"bad scenario":          {simtest.Exploration{Scenario: "groups: [{nmae: x}]"}, `unknown key "nmae"`},
		"nothing to explore":    {simtest.Exploration{}, "the file has no explore: block"},
		"both":                  {simtest.Exploration{Scenario: lag, File: "x"}, "both Scenario and File"},
		"unknown strategy":      {simtest.Exploration{Scenario: lag, Strategy: "guess"}, `strategy "guess" is unknown`},
		"no file":               {simtest.Exploration{File: "none.yaml"}, "none.yaml"},
		"a fail file of a run":  {bad("# check: x\n# message: m\n# seed: 1\nversion: 1\nname: x\n"), "has no schedule"},
		"a fail file of nobody": {bad("version: 1\nname: x\n"), "mend or remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			r, result := exploredBy(row.o)
			require.True(t, r.ended)
			require.Nil(t, result)
			require.Contains(t, r.text.String(), row.want)
		})
	}
	t.Setenv(simtest.ScheduleVariable, "update×0")
	r, _ := exploredBy(simtest.Exploration{Scenario: lag})
	require.Contains(t, r.text.String(), "WLMSIM_SCHEDULE: schedule: entry 1")
}

// A required outcome that cannot happen fails the test and leaves no file.
func TestWhatCannotHappenLeavesNoFailFile(t *testing.T) {
	o := simtest.Exploration{Scenario: lag + "  require: [second == 500]\n", Failures: t.TempDir()}
	r, _ := exploredBy(o)
	require.Contains(t, r.text.String(), "a required outcome cannot happen: second == 500")
	require.NotContains(t, r.text.String(), "kept")
	entries, err := os.ReadDir(o.Failures)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Promise 7: what is drawn is sound, runs, and keeps every promise.
func TestDrawnScenariosAreSoundAndHold(t *testing.T) {
	for seed := range draws(3, 300) {
		f := simtest.Scenarios().Example(int(seed))
		r, err := world.Run(f, world.Options{})
		require.NoError(t, err, string(scenario.Print(f)))
		for _, c := range r.Checks {
			require.Equal(t, check.Held, c.Verdict, "%+v\n%s", c, scenario.Print(f))
		}
	}
	for seed := range draws(20, 1000) {
		f := simtest.Explorations().Example(int(seed))
		r, result := exploredBy(simtest.Exploration{Scenario: string(scenario.Print(f)), Schedules: 50, Failures: t.TempDir()})
		require.Empty(t, r.text.String(), string(scenario.Print(f)))
		require.NotEmpty(t, result.Outcomes)
	}
}

func draws(few, all uint64) uint64 {
	if os.Getenv("WLMSIM_SOAK") != "" {
		return all
	}
	return few
}

// Parts of a file that are drawn for it go together.
func TestDrawnPartsGoTogether(t *testing.T) {
	for seed := range int(draws(50, 5000)) {
		f := &scenario.File{Version: 1, Name: "x", Groups: simtest.Groups().Example(seed), Users: simtest.Users().Example(seed)}
		f.Steps = simtest.Steps(f).Example(seed)
		require.NotEmpty(t, f.Groups)
		require.LessOrEqual(t, len(f.Groups), simtest.MaxDrawn)
		require.NotEmpty(t, f.Users)
		require.NotEmpty(t, f.Steps)
		_, err := scenario.Parse("x", scenario.Print(f))
		require.NoError(t, err, string(scenario.Print(f)))
	}
}
