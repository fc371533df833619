package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/world"
)

const workerVariable = "CAMPAIGN_TEST_WORKER"

// The test binary serves as the worker: a task's scenario says what becomes of
// its run.
func TestMain(m *testing.M) {
	switch os.Getenv(workerVariable) {
	case "fake":
		if err := campaign.Serve(os.Stdin, os.Stdout, &fake{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "real":
		_ = campaign.Serve(os.Stdin, os.Stdout, &campaign.Doer{})
	default:
		goleak.VerifyTestMain(m)
	}
}

// fake is a worker that does as the names of scenarios say.
type fake struct {
	campaign.Doer
	runs int
}

func (w *fake) Do(t campaign.Task) (*world.Result, error) {
	w.runs++
	r := &world.Result{Scenario: t.Scenario, Seed: t.Seed, Verdict: check.Held, TraceHash: "same", Repeat: "by the run"}
	word, argument, _ := strings.Cut(t.Scenario, " ")
	switch word {
	case "break":
		r.Verdict = check.Broken
	case "await":
		for _, err := os.Stat(argument); err != nil; _, err = os.Stat(argument) {
			time.Sleep(time.Millisecond)
		}
	case "panic":
		panic("the worker's own words")
	case "hang":
		select {}
	case "garbage":
		fmt.Println("this is no answer")
	case "exit":
		os.Exit(7)
	case "refuse":
		return nil, errors.New("it could not be built")
	case "count":
		r.Searches.Sent = w.runs
	case "differ":
		r.TraceHash = strconv.Itoa(os.Getpid())
		events := []history.Event{{Seq: 1, Kind: history.Healed}, {Seq: 2, Kind: history.Settled, Detail: filepath.Base(t.History)}}
		f, err := os.Create(t.History)
		if err != nil {
			return nil, err
		}
		return r, errors.Join(history.Write(f, history.Header{Events: len(events)}, events), f.Close())
	}
	return r, nil
}

func start(kind string) func() *exec.Cmd {
	return func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), workerVariable+"="+kind)
		return c
	}
}

func tasks(scenarios ...string) []campaign.Task {
	var all []campaign.Task
	for i, s := range scenarios {
		all = append(all, campaign.Task{Scenario: s, File: "f.yaml", Seed: uint64(i), Profile: "reviewed", Repeat: "again " + s})
	}
	return all
}

// run runs tasks of the fake worker.
func run(t *testing.T, c campaign.Config, scenarios ...string) []world.Result {
	t.Helper()
	if c.Start == nil {
		c.Start = start("fake")
	}
	results, err := campaign.Run(t.Context(), c, tasks(scenarios...))
	require.NoError(t, err)
	return results
}

func verdicts(results []world.Result) []check.Verdict {
	var all []check.Verdict
	for _, r := range results {
		all = append(all, r.Verdict)
	}
	return all
}

// Promise 1. The first task waits until the second one has been told of.
func TestResultsComeInTheOrderOfTheTasks(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	var done []uint64
	results := run(t, campaign.Config{Jobs: 3, Done: func(r campaign.Finished) {
		if done = append(done, r.Seed); r.Seed == 1 {
			require.NoError(t, os.WriteFile(flag, nil, 0o666))
		}
	}}, "await "+flag, "hold", "hold", "break", "hold")
	require.Equal(t, []check.Verdict{check.Held, check.Held, check.Held, check.Broken, check.Held}, verdicts(results))
	for i, r := range results {
		require.Equal(t, uint64(i), r.Seed)
		require.Equal(t, "again "+r.Scenario, r.Repeat)
	}
	require.ElementsMatch(t, []uint64{0, 1, 2, 3, 4}, done)
	require.NotEqual(t, uint64(0), done[0])
}

// Promise 2.
func TestAWorkerThatDiesMakesItsOwnRunUndecidedAndNoOther(t *testing.T) {
	t.Parallel()
	results := run(t, campaign.Config{Jobs: 1}, "hold", "panic", "hold", "garbage", "exit", "refuse", "hold")
	require.Equal(t, []check.Verdict{
		check.Held, check.Undecided, check.Held, check.Undecided, check.Undecided, check.Undecided, check.Held,
	}, verdicts(results))
	for i, want := range map[int]string{
		1: "the worker's own words",
		3: `it wrote "this is no answer", which is no answer`,
		4: "exit status 7",
		5: "it could not be built",
	} {
		require.Equal(t, campaign.RunCheck, results[i].Checks[0].Name)
		require.Contains(t, results[i].Checks[0].Message, want)
		require.Equal(t, "again "+results[i].Scenario, results[i].Repeat)
	}
}

func TestAWorkerThatFailedIsReplaced(t *testing.T) {
	t.Parallel()
	results := run(t, campaign.Config{Jobs: 1}, "count", "count", "refuse", "count")
	require.Equal(t, []int{1, 2, 0, 1}, sent(results))
	results = run(t, campaign.Config{Jobs: 1, Fresh: true}, "count", "count", "count")
	require.Equal(t, []int{1, 1, 1}, sent(results))
}

func sent(results []world.Result) []int {
	var all []int
	for _, r := range results {
		all = append(all, r.Searches.Sent)
	}
	return all
}

func TestAWorkerThatCannotBeStartedIsToldOf(t *testing.T) {
	results := run(t, campaign.Config{Start: func() *exec.Cmd { return exec.Command("/is/not/there") }}, "hold")
	require.Equal(t, []check.Verdict{check.Undecided}, verdicts(results))
	require.Contains(t, results[0].Checks[0].Message, "/is/not/there")
}

// Promise 3.
func TestARunThatHangsPrintsItsGoroutines(t *testing.T) {
	t.Parallel()
	all := tasks("hang")
	all[0].Out = filepath.Join(t.TempDir(), "run")
	results, err := campaign.Run(t.Context(), campaign.Config{Start: start("fake"), Jobs: 1, Limit: 5 * time.Second}, all)
	require.NoError(t, err)
	require.Equal(t, []check.Verdict{check.Undecided}, verdicts(results))
	require.Contains(t, results[0].Checks[0].Message, "the run did not end within 5s of wall time")
	noise, err := os.ReadFile(filepath.Join(all[0].Out, campaign.NoiseFile))
	require.NoError(t, err)
	require.Contains(t, string(noise), "campaign_test.(*fake).Do")
}

// Promise 4. The second task waits until the third one, which breaks, has been
// told of.
func TestTheFirstBrokenRunEndsTheCampaign(t *testing.T) {
	t.Parallel()
	for jobs := 2; jobs <= 4; jobs++ {
		flag := filepath.Join(t.TempDir(), "flag")
		c := campaign.Config{Jobs: jobs, Done: func(r campaign.Finished) {
			if r.Seed == 2 {
				require.NoError(t, os.WriteFile(flag, nil, 0o666))
			}
		}}
		scenarios := []string{"hold", "await " + flag, "break", "hold", "break", "hold", "hold", "hold"}
		require.Len(t, run(t, c, scenarios...), len(scenarios))
		require.NoError(t, os.Remove(flag))
		c.StopAtFirst = true
		results := run(t, c, scenarios...)
		require.Equal(t, []check.Verdict{check.Held, check.Held, check.Broken}, verdicts(results), "%d workers", jobs)
	}
}

// Promise 5.
func TestAnInterruptReturnsWhatIsFinished(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	results, err := campaign.Run(ctx, campaign.Config{Start: start("fake"), Jobs: 2, Done: func(campaign.Finished) { stop() }},
		tasks("hang", "hold", "hang", "hang"))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []check.Verdict{check.Held}, verdicts(results))
}

// Promise 6: a worker whose parent is gone ends although its run does not.
func TestAWorkerEndsWithItsParent(t *testing.T) {
	c := start("fake")()
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = in.Write([]byte(`{"run":{"scenario":"hang"}}` + "\n"))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.NoError(t, c.Wait())
}

func TestAWorkerRefusesWhatIsNoTask(t *testing.T) {
	in, input := io.Pipe() // stays open: a worker whose input ends during a task has no parent
	defer input.Close()
	go func() { _, _ = input.Write([]byte("what?\n")) }()
	require.ErrorContains(t, campaign.Serve(in, io.Discard, &fake{}), "a task: invalid character 'w'")
}

func TestDoneTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, scenario string
		mustRepeat     bool
		want           check.Verdict
		message        string
	}{
		{"the same way", "hold", true, check.Held, ""},
		{"two ways, in the plain lane", "differ", false, check.Held, "the histories differ from event 2 on"},
		{"two ways, in the exact lane", "differ", true, check.Broken, "the histories differ from event 2 on"},
	} {
		results := run(t, campaign.Config{Twice: true, MustRepeat: c.mustRepeat}, c.scenario)
		require.Equal(t, []check.Verdict{c.want}, verdicts(results), c.name)
		last := results[0].Checks[len(results[0].Checks)-1]
		require.Equal(t, campaign.TwiceCheck, last.Name, c.name)
		require.Contains(t, last.Message, c.message, c.name)
		require.Equal(t, c.message == "", last.Message == "", c.name)
	}
	results := run(t, campaign.Config{Twice: true, Jobs: 1}, "count")
	require.Equal(t, []int{1}, sent(results), "each time has a process of its own")
}

func TestAConfigIsCheckedWhole(t *testing.T) {
	_, err := campaign.Run(t.Context(), campaign.Config{Jobs: -1, Limit: -1}, nil)
	for _, want := range []string{"needs a command", "not -1", "over 0, not -1ns"} {
		require.ErrorContains(t, err, want)
	}
}

const small = `version: 1
name: One search
cluster: {managers: 1, data: 1, indices: {logs: {}}}
load:
  - {name: traced, arrive: {trace: traces/one.csv}}
expect: [load.traced.completed == 1]
`

func TestTheFolderOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "out", "small")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "traces"), 0o777))
	require.NoError(t, os.WriteFile(file, []byte(small), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "traces", "one.csv"), []byte("time,user,roles,index,service_time\n1s,,,,\n"), 0o666))
	task := campaign.Task{Scenario: "One search", File: file, Seed: 3, Profile: "reviewed", Repeat: "again", Out: out}
	results, err := campaign.Run(t.Context(), campaign.Config{Start: start("real"), Twice: true}, []campaign.Task{task})
	require.NoError(t, err)
	require.Equal(t, []check.Verdict{check.Held}, verdicts(results), "%+v", results)

	for _, name := range []string{campaign.HistoryFile, campaign.SecondHistoryFile} {
		f, err := os.Open(filepath.Join(out, name))
		require.NoError(t, err)
		header, events, err := history.Read(f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.Equal(t, uint64(3), header.Seed)
		require.NotEmpty(t, events)
	}
	f, err := os.Open(filepath.Join(out, campaign.ResultFile))
	require.NoError(t, err)
	kept, err := report.Read(f)
	require.NoError(t, errors.Join(err, f.Close()))
	require.Equal(t, results[0].TraceHash, kept[0].TraceHash)
	for name, want := range map[string]string{campaign.ScenarioFile: small, "traces/one.csv": "time,user,roles,index,service_time\n1s,,,,\n"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}
