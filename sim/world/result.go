package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Verdict is the answer to whether something held; only check.Held is good.
type Verdict = check.Verdict

// Check is one thing that was judged: a promise, an expectation, or a step that
// could not be done.
type Check = check.Result

// Searches counts requests by how they ended for their clients; attempts of one
// request are one.
type Searches struct {
	Sent      int `json:"sent"`
	Completed int `json:"completed"`
	Throttled int `json:"throttled"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// Counters are a group's, summed over the nodes and over all their lives.
type Counters struct {
	Completions   uint64 `json:"total_completions"`
	Rejections    uint64 `json:"total_rejections"`
	Cancellations uint64 `json:"total_cancellations"`
	Throttled     uint64 `json:"total_throttled"`
	WouldThrottle uint64 `json:"total_would_throttle,omitempty"` // 0, too, where the profile has no such counter
}

// LatencyMS holds percentiles of the time from a request to its last answer, in
// milliseconds.
type LatencyMS struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Result is what came of a run.
type Result struct {
	Scenario       string              `json:"scenario"`
	File           string              `json:"file"`
	Seed           uint64              `json:"seed"`
	Profile        string              `json:"profile"`
	Verdict        Verdict             `json:"verdict"`
	VirtualSeconds float64             `json:"virtual_seconds"`
	WallSeconds    float64             `json:"wall_seconds"`
	TraceHash      string              `json:"trace_hash"`
	Searches       Searches            `json:"searches"`
	Groups         map[string]Counters `json:"groups"` // by name
	LatencyMS      LatencyMS           `json:"latency_ms"`
	Checks         []Check             `json:"checks"`
	Repeat         string              `json:"repeat"` // the command that repeats the run

	// Loads and Answers are what expressions knew at the end.
	Loads   map[string]scenario.LoadAnswer `json:"-"`
	Answers map[string]any                 `json:"-"`
	// History is what happened, up to Options.Keep events; nil if Options.Bare.
	History *history.Log `json:"-"`
}

// judge decides on a run. A promise that the file says must break, and that
// did, is no reason to call the run broken; one that held is.
func judge(checks []Check, breaks []scenario.Promise) ([]Check, Verdict) {
	must := map[string]bool{}
	for _, p := range breaks {
		must[string(p)] = true
	}
	verdict := check.Held
	worse := func(v Verdict) {
		if v == check.Broken || verdict == check.Held {
			verdict = v
		}
	}
	for i := range checks {
		c := &checks[i]
		switch {
		case !must[c.Name]:
			worse(c.Verdict)
		case c.Verdict == check.Broken:
			c.Message = check.AsTold + c.Message
		case c.Verdict == check.Held:
			c.Message = check.ButHeld
			worse(check.Broken)
		default:
			worse(check.Undecided)
		}
		delete(must, c.Name)
	}
	for _, p := range breaks { // a promise that was not looked at
		if must[string(p)] {
			checks = append(checks, Check{Name: string(p), Verdict: check.Undecided, Message: "the file says that this breaks, but it was not checked"})
			worse(check.Undecided)
		}
	}
	return checks, verdict
}

// repeat returns the command that runs a scenario again in the same way.
func repeat(o *Options, file, profile string, seed uint64) string {
	words := []string{"wlmsim run", quoted(file), fmt.Sprintf("--seed %d", seed), "--profile " + profile}
	for _, set := range o.Set {
		words = append(words, "--set "+quoted(set))
	}
	return strings.Join(words, " ")
}

// quoted writes a word as a POSIX shell takes it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
