package campaign

import (
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Task is one run to do.
type Task struct {
	Scenario string   `json:"scenario"`      // its name, for a run that has no result
	File     string   `json:"file"`          // path of the scenario file
	Set      []string `json:"set,omitempty"` // assignments to make in it
	Seed     uint64   `json:"seed"`
	Profile  string   `json:"profile"`
	Repeat   string   `json:"repeat"` // the command that repeats the run

	// History is the file that the worker writes the history to; "": none.
	History string `json:"history,omitempty"`

	// Out is the folder of the run; "": none.
	Out string `json:"-"`
}

// order is a line to a worker: one of the three.
type order struct {
	Run     *Task        `json:"run,omitempty"`
	Explore *Exploration `json:"explore,omitempty"`
	Shrink  *Shrinking   `json:"shrink,omitempty"`
}

// answer is a worker's line.
type answer struct {
	Result   *world.Result `json:"result,omitempty"`
	Explored []byte        `json:"explored,omitempty"` // see [explore.Result.MarshalBinary]
	Shrunk   *shrunkAnswer `json:"shrunk,omitempty"`
	// Error says why there is no result, and Misfit that this is so because the
	// file or the schedule cannot be explored.
	Error  string `json:"error,omitempty"`
	Misfit bool   `json:"misfit,omitempty"`
	// Last says that the worker takes no further task: what failed may have
	// left something behind.
	Last bool `json:"last,omitempty"`
}

// undecided is the result of a run that has none of its own.
func undecided(t *Task, why string) world.Result {
	return world.Result{
		Scenario: t.Scenario, File: t.File, Seed: t.Seed, Profile: t.Profile, Verdict: check.Undecided, Repeat: t.Repeat,
		Groups: map[string]world.Counters{},
		Checks: []check.Result{{Name: RunCheck, Verdict: check.Undecided, Message: why}},
	}
}

// Names of the checks that a campaign adds.
const (
	RunCheck   = "run"   // the run could be done
	TwiceCheck = "twice" // done twice, it went the same way
)
