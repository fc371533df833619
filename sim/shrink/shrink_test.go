package shrink_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/shrink"
	"github.com/wlmsim/wlmsim/sim/world"
)

func soaked() bool { return os.Getenv("WLMSIM_SOAK") != "" }

// spent is the time that this process took of the processors, in all.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed shrinks and logs what that took, as a row of docs/performance.md.
func timed(t *testing.T, f *flaw, found time.Duration, shrink func() (*shrink.Shrunk, error)) *shrink.Shrunk {
	t.Helper()
	begin, used := time.Now(), spent()
	s, err := shrink()
	require.NoError(t, err)
	t.Logf("| %s: %s | %v | %.1f s | %.1f s | %d | %s |", f.file, strings.Join(f.set, ", "), found.Round(time.Millisecond),
		time.Since(begin).Seconds(), (spent() - used).Seconds(), s.Tried, strings.Join(f.form, ", "))
	return s
}

// requireForm holds a shrunk file to the known form, and to being written and
// read again.
func (f *flaw) requireForm(t testing.TB, s *shrink.Shrunk) *scenario.File {
	t.Helper()
	require.Equal(t, f.failure, s.Failure.Check)
	require.True(t, s.Least)
	require.Equal(t, f.form, names(s.File), string(scenario.Print(s.File)))
	path := filepath.Join(t.TempDir(), "small.yaml")
	require.NoError(t, os.WriteFile(path, s.Text(path), 0o600))
	back, failure, err := shrink.Read(path)
	require.NoError(t, err)
	require.True(t, scenario.Equal(s.File, back))
	require.Equal(t, string(scenario.Print(s.File)), string(scenario.Print(back)))
	require.Equal(t, s.Failure.Check, failure.Check)
	require.Equal(t, s.Failure.Message, failure.Message)
	require.Equal(t, s.Failure.Schedule, failure.Schedule)
	return back
}

// shown says whether some check shows a failure.
func shown(failure *shrink.Failure, checks []check.Result) bool {
	for i := range checks {
		if failure.Is(&checks[i]) {
			return true
		}
	}
	return false
}

func plainChecks(r *explore.Result) []check.Result {
	var all []check.Result
	for _, c := range r.Checks {
		all = append(all, c.Result)
	}
	return all
}

// Promises 1 to 3 and 5 for explorations: each planted flaw shrinks to its
// known smallest form, which fails in the same way by its schedule alone.
func TestAnExplorationShrinksToItsSmallestForm(t *testing.T) {
	for _, f := range of(explored) {
		t.Run(filepath.Base(f.file), func(t *testing.T) {
			file := f.read(t)
			begin := time.Now()
			r, err := explore.Run(file, explore.Options{})
			require.NoError(t, err)
			s := timed(t, &f, time.Since(begin), func() (*shrink.Shrunk, error) {
				return shrink.Explore(t.Context(), file, r, shrink.Limits{Time: time.Hour})
			})
			written := f.requireForm(t, s)
			require.Contains(t, s.Repeat("a b.yaml"), "wlmsim explore 'a b.yaml' --schedule '"+s.Failure.Schedule.String()+"'")
			again, err := explore.Run(written, explore.Options{Schedule: s.Failure.Schedule})
			require.NoError(t, err)
			require.Equal(t, check.Broken, again.Verdict)
			require.True(t, shown(&s.Failure, plainChecks(again)))
			require.Equal(t, s.Failure.Schedule.String(), again.Outcomes[0].Schedule)
			for fewer := range again.Outcomes[0].Preemptions {
				calm, err := explore.Run(written, explore.Options{Preemptions: &fewer})
				require.NoError(t, err)
				require.True(t, calm.Complete)
				require.False(t, shown(&s.Failure, plainChecks(calm)), "%d preemptions do not show it", fewer)
			}
		})
	}
}

// Promises 1 to 4 for runs.
func TestARunShrinksToItsSmallestForm(t *testing.T) {
	for _, f := range of(run) {
		t.Run(filepath.Base(f.file), func(t *testing.T) {
			file := f.read(t)
			begin := time.Now()
			r, err := world.Run(file, world.Options{})
			require.NoError(t, err)
			s := timed(t, &f, time.Since(begin), func() (*shrink.Shrunk, error) {
				return shrink.Run(t.Context(), file, r, shrink.InProcess, shrink.Limits{Time: time.Hour})
			})
			written := f.requireForm(t, s)
			require.Equal(t, s.Failure.Seed, written.Seed)
			require.Equal(t, managers(f.failure), written.Filled().Cluster.Managers)
			require.Equal(t, 1, written.Filled().Cluster.Data)
			require.Contains(t, s.Repeat("small.yaml"), "wlmsim run small.yaml --seed ")
			require.Equal(t, s.Of, s.Again, "it fails every time with its seed")
			again, err := world.Run(written, world.Options{})
			require.NoError(t, err)
			require.Equal(t, check.Broken, again.Verdict)
			require.True(t, shown(&s.Failure, again.Checks))
		})
	}
}

// Promise 1: a search of a point in time that is closed fails otherwise than one
// of a point that is not open yet, whose step cannot be done.
func TestARunDoesNotShrinkToStepsThatCannotBeDone(t *testing.T) {
	file, err := scenario.Parse("file.yaml", []byte(`version: 1
name: A point in time ends
seed: 3
cluster: {managers: 1, data: 1}
steps:
  - {at: 1s, open_pit: {id: point, keep_alive: 1m}}
  - {at: 2s, close_pit: {pit: point}}
  - {at: 3s, search: {id: over, pit: point}}
expect: [over.status == 200]
`))
	require.NoError(t, err)
	r, err := world.Run(file, world.Options{})
	require.NoError(t, err)
	s, err := shrink.Run(t.Context(), file, r, shrink.InProcess, shrink.Limits{Time: time.Hour})
	require.NoError(t, err)
	again, err := world.Run(s.File, world.Options{})
	require.NoError(t, err)
	require.True(t, shown(&s.Failure, again.Checks))
	for _, c := range again.Checks {
		require.NotEqual(t, check.Undecided, c.Verdict, "%s: %s\n%s", c.Name, c.Message, scenario.Print(s.File))
	}
	require.Less(t, len(s.File.Steps), len(file.Steps), "a point in time that is kept for a moment is gone without close_pit")
}

// managers is how many it takes to break something that names them.
func managers(failure string) int {
	if strings.Contains(failure, `"m2"`) {
		return 2
	}
	return 1
}

// wholes are flaws that explorations of a whole cluster find. The first two are
// shown by one node as well; the others, which are outcomes that a file takes
// for bad ones, take a leader that loses the lead, a crash or a cut.
var wholes = []struct {
	flaw
	nodes int // of the smallest form; 1: one node alone is explored
}{
	{flaw{"clusters/the-lag-race-of-three-nodes", []string{"switches.missing_counters=default_group"}, "rejection_attribution",
		[]string{"update: put_group", "first: search", "second: search"}, false}, 1},
	{flaw{"clusters/the-lag-race-of-three-nodes", []string{"switches.principal_carrier=header"}, "principal_stays", []string{"second: search"}, true}, 1},
	{flaw{"clusters/leadership-moves-during-an-update", []string{"explore.forbid=[put == 503]"}, "forbid put == 503",
		[]string{"update: put_group", "move: transfer_leadership"}, false}, 3},
	{flaw{"clusters/a-data-node-crashes-under-a-search", []string{"explore.forbid=[failed > 0]"}, "forbid failed > 0",
		[]string{"first: search", "second: search", "crash: crash"}, false}, 2},
	{flaw{"clusters/a-leader-is-read-behind-a-cut", []string{"explore.forbid=[read == 503]"}, "forbid read == 503",
		[]string{"cut: partition", "client: get_groups"}, false}, 3},
}

// A whole cluster shrinks to one node, if that shows the failure, or else to the
// fewest nodes.
func TestAWholeClusterShrinksToItsSmallestForm(t *testing.T) {
	for _, f := range wholes {
		if !f.cheap && !soaked() {
			continue
		}
		t.Run(filepath.Base(f.file), func(t *testing.T) {
			file := f.read(t)
			begin := time.Now()
			r := broken(t, file)
			s := timed(t, &f.flaw, time.Since(begin), func() (*shrink.Shrunk, error) {
				return shrink.Explore(t.Context(), file, r, shrink.Limits{Time: time.Hour})
			})
			written := f.requireForm(t, s)
			nodes := 1
			if cluster := written.Filled().Cluster; explore.Whole(written) {
				nodes = cluster.Managers + cluster.Data
			}
			require.Equal(t, f.nodes, nodes)
			again, err := explore.Run(written, explore.Options{Schedule: s.Failure.Schedule})
			require.NoError(t, err)
			require.True(t, shown(&s.Failure, plainChecks(again)))
		})
	}
}

// broken explores a file with one seed after the other until it breaks.
func broken(t *testing.T, file *scenario.File) *explore.Result {
	for {
		r, err := explore.Run(file, explore.Options{Until: func(r *explore.Result) bool { return r.Verdict == check.Broken }})
		require.NoError(t, err)
		if r.Verdict == check.Broken {
			return r
		}
		file, err = file.Changed(func(g *scenario.File) { g.Seed++ })
		require.NoError(t, err)
	}
}

// Drawn schedules shrink as well, and the file has the seed that draws one.
func TestADrawnExplorationShrinks(t *testing.T) {
	f, strategies := explored[4], []string{explore.Random}
	if soaked() {
		f, strategies = explored[0], []string{explore.Random, explore.PCT}
	}
	file := f.read(t)
	for _, strategy := range strategies {
		r, err := explore.Run(file, explore.Options{Strategy: strategy, Schedules: 1000})
		require.NoError(t, err)
		s, err := shrink.Explore(t.Context(), file, r, shrink.Limits{Time: time.Hour})
		require.NoError(t, err)
		written := f.requireForm(t, s)
		again, err := explore.Run(written, explore.Options{Schedule: s.Failure.Schedule})
		require.NoError(t, err)
		require.True(t, shown(&s.Failure, plainChecks(again)))
	}
}

// A flaw that only some seeds meet shrinks too: seeds are tried anew.
func TestARunThatFailsWithSomeSeedsShrinks(t *testing.T) {
	if !soaked() { // the same in small: a runner that fails with every seventh seed
		f, err := scenario.Parse("f", []byte("version: 1\nname: f\nsteps: [{at: 1s, search: {}}, {at: 2s, search: {}}]\n"))
		require.NoError(t, err)
		broken := &world.Result{Seed: 3, Profile: "reviewed", Checks: sometimes(3, true)}
		s, err := shrink.Run(t.Context(), f, broken, seventh, shrink.Limits{Time: time.Hour})
		require.NoError(t, err)
		require.True(t, s.Least)
		require.Equal(t, []string{"search"}, names(s.File))
		require.Zero(t, s.Failure.Seed%7)
		require.Equal(t, 3, s.Again)
		return
	}
	file, err := scenario.Read("../shipped/testdata/a-rejection-comes-before-the-counters.yaml")
	require.NoError(t, err)
	for seed := uint64(0); ; seed++ {
		r, err := world.Run(file, world.Options{Profile: "submitted", Seed: &seed})
		require.NoError(t, err)
		if r.Verdict != check.Broken {
			continue
		}
		s, err := shrink.Run(t.Context(), file, r, shrink.InProcess, shrink.Limits{Time: time.Hour})
		require.NoError(t, err)
		t.Logf("%d files, fails %d of %d times:\n%s", s.Tried, s.Again, s.Of, s.Text("small.yaml"))
		require.Equal(t, map[string]string{"missing_counters": "default_group"}, s.File.Switches)
		return
	}
}

// Nothing is shrunk where less in the file would show less.
func TestWhatDoesNotShrink(t *testing.T) {
	for name, set := range map[string][]string{
		"it held":                     nil,
		"it should have broken":       {"breaks=[permits_return]"},
		"a required outcome is not":   {"explore.require=[second == 500]"},
		"the broken promise is meant": {"switches.missing_counters=default_group", "breaks=[rejection_attribution]", "explore.forbid=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := scenario.Read("../../scenarios/explore/the-registration-lag.yaml", set...)
			require.NoError(t, err)
			r, err := explore.Run(file, explore.Options{})
			require.NoError(t, err)
			_, err = shrink.Explore(t.Context(), file, r, shrink.Limits{})
			require.ErrorIs(t, err, shrink.ErrNothing)
		})
	}
	f, err := scenario.Parse("f", []byte("version: 1\nname: f\n"))
	require.NoError(t, err)
	_, err = shrink.Run(t.Context(), f, &world.Result{Profile: "reviewed", Checks: sometimes(0, true)}, shrink.InProcess, shrink.Limits{Seeds: 1})
	require.ErrorIs(t, err, shrink.ErrNothing, "it does not break again")
	_, err = shrink.Run(t.Context(), f, &world.Result{Profile: "reviewed"}, shrink.InProcess, shrink.Limits{Time: -1})
	require.ErrorContains(t, err, "limits of shrinking")
}

// When the time is over, what was found so far is whole, and that is said.
func TestTheTimeIsOver(t *testing.T) {
	f, err := scenario.Parse("f", []byte("version: 1\nname: f\nsteps: [{at: 1s, search: {}}, {at: 2s, search: {}}]\n"))
	require.NoError(t, err)
	broken := &world.Result{Seed: 7, Profile: "reviewed", Checks: sometimes(7, true)}
	synctest.Test(t, func(t *testing.T) {
		var told []shrink.Progress
		slow := func(ctx context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
			if len(told) > 0 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return seventh(ctx, f, seed)
		}
		began := time.Now()
		s, err := shrink.Run(t.Context(), f, broken, slow, shrink.Limits{Told: func(p shrink.Progress) { told = append(told, p) }})
		require.NoError(t, err)
		require.Equal(t, shrink.DefaultTime*5/4, time.Since(began).Truncate(time.Second))
		require.Zero(t, s.Of)
		require.False(t, s.Least)
		require.Len(t, told, 1)
		require.Positive(t, told[0].Tried)
		require.Equal(t, told[0].Size.Parts, shrink.SizeOf(s.File).Parts-1, "and the seed")
		_, err = shrink.Run(t.Context(), f, broken, slow, shrink.Limits{Time: time.Second})
		require.ErrorContains(t, err, "1s were over before it failed again")
	})
}

// A failure of an expression that its switches bring about stays one: an
// expectation is easily made false by taking away what it is about.
func TestAFlawIsNotShrunkToAnotherOne(t *testing.T) {
	file, err := scenario.Read("../../scenarios/explore/exact-permits-refuse-nobody-needlessly.yaml", "switches.acquire=rollback")
	require.NoError(t, err)
	r, err := explore.Run(file, explore.Options{})
	require.NoError(t, err)
	s, err := shrink.Explore(t.Context(), file, r, shrink.Limits{Time: time.Hour})
	require.NoError(t, err)
	plain, err := s.File.Changed(func(g *scenario.File) { g.Switches = nil })
	require.NoError(t, err)
	held, err := explore.Run(plain, explore.Options{})
	require.NoError(t, err)
	require.Equal(t, check.Held, held.Verdict)
	require.True(t, held.Complete)
}

func TestTheCommentsAboveAFileAreChecked(t *testing.T) {
	const head = "# check: x\n# message: m\n# schedule: a b×2\n"
	const body = "version: 1\nname: f\n"
	f, failure, err := shrink.Parse("f.yaml", []byte(head+body))
	require.NoError(t, err)
	require.Equal(t, "f", f.Name)
	require.Equal(t, shrink.Failure{Check: "x", Message: "m", Schedule: explore.Schedule{"a", "b", "b"}}, failure)
	for text, want := range map[string]string{
		body:                        "do not say how it fails",
		"# check: x\n" + body:       "do not say how it fails",
		head + "# seed: 1\n" + body: "do not say how it fails",
		strings.Replace(head, "b×2", "b×0", 1) + body:      "schedule: ",
		"# check: x\n# message: m\n# seed: minus\n" + body: "seed: ",
		head + "version: 2\n":                              "f.yaml:4",
	} {
		_, _, err := shrink.Parse("f.yaml", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
	_, _, err = shrink.Read(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Promise 3: any text is a shrunk file or an error, and prints as it parses.
func FuzzParse(f *testing.F) {
	f.Add("# check: x\n# message: m\n# schedule: a b×2\nversion: 1\nname: f\n")
	f.Add("# check: x\n# message: m\n# seed: 7\n# repeat: y\nversion: 1\nname: f\n")
	f.Add("# check: \n# seed: 18446744073709551616\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, failure, err := shrink.Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		s := shrink.Shrunk{File: file, Failure: failure}
		back, again, err := shrink.Parse("f.yaml", s.Text("f.yaml"))
		require.NoError(t, err, text)
		require.Equal(t, strings.Fields(failure.Check), strings.Fields(again.Check))
		require.Equal(t, strings.Fields(failure.Message), strings.Fields(again.Message))
		require.Equal(t, failure.Schedule, again.Schedule)
		require.Equal(t, failure.Seed, again.Seed)
		require.True(t, scenario.Equal(file, back))
	})
}
