package campaign

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Files in the folder of a run.
const (
	HistoryFile       = "history.jsonl"   // see package history
	SecondHistoryFile = "history-2.jsonl" // of the second time, if it was done twice
	ResultFile        = "result.json"     // as `wlmsim run --format json` writes it
	NoiseFile         = "stderr.txt"      // what the run's process wrote before it crashed, or its goroutines when it hung
	ScenarioFile      = "scenario.yaml"   // the file as it was; Repeat in the result names what was set
)

// keep writes the result into the task's folder, and copies the scenario and
// its traces.
func keep(t *Task, r *world.Result) error {
	var text bytes.Buffer
	if err := report.JSON(&text, []world.Result{*r}); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(t.Out, ResultFile), text.Bytes(), 0o666),
		copyFile(t.File, filepath.Join(t.Out, ScenarioFile)),
		copyTraces(t),
	)
}

// copyTraces copies the traces that a file names, under the same names.
func copyTraces(t *Task) error {
	f, err := scenario.Read(t.File, t.Set...)
	if err != nil {
		return err
	}
	var errs []error
	for i := range f.Load {
		name := filepath.FromSlash(f.Load[i].Arrive.Trace)
		if name == "" || !filepath.IsLocal(name) {
			continue
		}
		to := filepath.Join(t.Out, name)
		errs = append(errs, os.MkdirAll(filepath.Dir(to), 0o777), copyFile(filepath.Join(filepath.Dir(t.File), name), to))
	}
	return errors.Join(errs...)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o666)
}
