package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/report"
)

const (
	holds  = "version: 1\nname: It holds\ncluster: {managers: 1, data: 1}\n"
	breaks = holds + "expect: [\"1 == 2\"]\n"
)

// command runs the command line in the test's process.
func command(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = execute(streams{in: &bytes.Buffer{}, out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

func TestRunsExitCodeIsThatOfTheWorstRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	held, broken, bad := file("held", holds), file("broken", breaks), file("bad", "version: 2\n")
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"all held", []string{"run", held}, exitHeld},
		{"one broke", []string{"run", held, broken}, exitBroken},
		{"a run was too slow", []string{"run", held, "--limit", "1ns"}, exitUndecided},
		{"a file is bad, and nothing runs", []string{"run", held, broken, bad}, exitUsage},
		{"a file is bad", []string{"validate", bad}, exitUsage},
		{"all are sound", []string{"validate", held, broken}, exitHeld},
		{"a file is there", []string{"init", held}, exitUsage},
		{"no results", []string{"merge", held}, exitUsage},
		{"an unknown flag", []string{"run", held, "--sed", "1"}, exitUsage},
	} {
		code, out, errs := command(c.args...)
		require.Equal(t, c.want, code, "%s: %s%s", c.name, out, errs)
	}
}

func TestMergesExitCodeIsThatOfTheWorstRun(t *testing.T) {
	dir := t.TempDir()
	scenarios := map[string]string{"held": holds, "broken": breaks}
	results := map[string]string{}
	for name, text := range scenarios {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, out, _ := command("run", path, "--format", "json")
		results[name] = filepath.Join(dir, name+".json")
		require.NoError(t, os.WriteFile(results[name], []byte(out), 0o666))
	}
	code, _, errs := command("merge", results["held"])
	require.Equal(t, exitHeld, code, errs)
	code, out, errs := command("merge", results["held"], results["broken"])
	require.Equal(t, exitBroken, code, errs)
	require.Equal(t, 1, strings.Count(out, "held  "), out)
}

func TestAnInterruptedCampaignReportsWhatIsFinished(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(path, []byte(breaks), 0o666))
	wlmsim, err := exec.LookPath("wlmsim")
	require.NoError(t, err)
	c := exec.Command(wlmsim, "run", path, "--seeds", "1..100000", "--format", "json")
	var out bytes.Buffer
	c.Stdout = &out
	errs, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(errs)
	require.True(t, lines.Scan(), "a run that broke is told of when it ends")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, errs)
	require.NoError(t, err)
	_ = c.Wait() // it exits with 130
	require.Equal(t, exitInterrupted, c.ProcessState.ExitCode())
	results, err := report.Read(&out)
	require.NoError(t, err)
	require.NotEmpty(t, results)
	require.Less(t, len(results), 100000)
}

const (
	forbidden = `version: 1
name: It breaks
explore:
  node: m1
  actors: {a: [{search: {id: a}}]}
  observe: {a: a.status}
  forbid: [a == 200]
`
	endless = `version: 1
name: It has more orders than anybody waits for
explore:
  node: m1
  actors:
    a: [{search: {user: bob}}, {search: {user: bob}}, {search: {user: bob}}]
    b: [{search: {user: bob}}, {search: {user: bob}}, {search: {user: bob}}]
    c: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}}}]
  observe: {held: outcomes("m1").completed}
`
)

// What was seen until the interrupt is written, and is never taken for all.
func TestAnInterruptedExplorationReportsWhatItHasSeen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"broken.yaml": forbidden, "endless.yaml": endless} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	wlmsim, err := exec.LookPath("wlmsim")
	require.NoError(t, err)
	c := exec.Command(wlmsim, "explore", dir, "--no-reduction", "--jobs", "1", "--format", "json")
	var out bytes.Buffer
	c.Stdout = &out
	errs, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(errs)
	require.True(t, lines.Scan(), "what broke is told of when it ends")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, errs)
	require.NoError(t, err)
	_ = c.Wait() // it exits with 130
	require.Equal(t, exitInterrupted, c.ProcessState.ExitCode())
	var document struct {
		Results []struct {
			File, Verdict string
			Complete      bool
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &document))
	require.NotEmpty(t, document.Results)
	require.Equal(t, "broken", document.Results[0].Verdict)
	for _, r := range document.Results[1:] { // none if the worker had not begun
		require.Equal(t, "undecided", r.Verdict)
		require.False(t, r.Complete)
	}
}
