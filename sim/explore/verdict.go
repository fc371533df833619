package explore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// result judges what the executions showed.
func (t *table) result(o Options) *Result {
	f := t.file
	r := &Result{
		Scenario: f.Name, File: o.Path, Profile: f.Profile, Strategy: o.Strategy, Schedules: t.schedules, Pruned: t.pruned,
		Complete: t.complete, Outcomes: []Outcome{}, Checks: []Check{}, Verdict: check.Held, Repeat: repeat(&o, f.Profile), lanes: t.lanes, set: o.Set, seed: f.Seed,
	}
	if exact.Enabled && o.Strategy == Replay {
		r.TraceHash = t.hash
	}
	if t.names != nil {
		r.names = t.names()
	}
	for _, key := range t.keys() {
		one := t.outcomes[key]
		one.Schedule = t.schedule(one.turns)
		r.Outcomes = append(r.Outcomes, one.Outcome)
	}
	r.Checks = append(r.Checks, t.promises()...)
	for i, p := range t.programs.forbid {
		r.Checks = append(r.Checks, r.forbid(f, i, p))
	}
	for i, p := range t.programs.require {
		r.Checks = append(r.Checks, r.require(f, i, p, o.Strategy))
	}
	if t.unsteady > 0 {
		r.Checks = append(r.Checks, Check{Result: check.Result{
			Name: "explore", Verdict: check.Held, Message: fmt.Sprintf("%d schedules took another course when they were tried again: time passes in them, and they repeat in the exact lane alone", t.unsteady),
		}})
	}
	if t.trouble != "" {
		r.Checks = append(r.Checks, Check{Result: check.Result{Name: "explore", Verdict: check.Undecided, Message: t.trouble}})
	}
	for i := range r.Checks {
		r.Checks[i].Message = r.named(r.Checks[i].Message)
		r.worsen(r.Checks[i].Verdict)
	}
	return r
}

// named writes the names of groups in place of their ids.
func (r *Result) named(text string) string {
	for _, id := range slices.Sorted(maps.Keys(r.names)) {
		text = strings.ReplaceAll(text, id, r.names[id])
	}
	return text
}

// instant finds the times of events, which are the numbers of turns here.
var instant = regexp.MustCompile(`at (\d+)ns`)

func (r *Result) worsen(v check.Verdict) {
	if v == check.Broken || r.Verdict == check.Held {
		r.Verdict = v
	}
}

// promises judges the promises: one that the file says must break, and that
// did, counts as held.
func (t *table) promises() []Check {
	must := map[string]bool{}
	for _, p := range t.file.Breaks {
		must[string(p)] = true
	}
	var checks []Check
	for _, m := range scenario.Promises() {
		c := Check{Result: check.Result{Name: string(m.Promise), Verdict: check.Held}}
		if b := t.breaches[c.Name]; b != nil {
			c.Result, c.Schedule, c.trace = b.Result, t.schedule(b.turns), b.trace
			c.Message = instant.ReplaceAllString(c.Message, "in turn $1")
		}
		switch {
		case !must[c.Name]:
		case c.Verdict == check.Broken:
			c.Verdict, c.Message = check.Held, check.AsTold+c.Message
		case c.Verdict == check.Held && t.complete:
			c.Verdict, c.Message = check.Broken, "the file says that this breaks, but it held in every order"
		case c.Verdict == check.Held:
			c.Verdict, c.Message = check.Undecided, "the file says that this breaks, but it held in the orders that were tried"
		}
		checks = append(checks, c)
	}
	return checks
}

// holds works an expression out over an outcome.
func (o *Outcome) holds(p *scenario.Program) (bool, error) {
	vars := map[string]any{}
	for _, v := range o.Observed {
		vars[v.Name] = v.Value
	}
	return p.Holds(vars)
}

// shown returns the first outcome for which an expression is true, and marks
// all of them.
func (r *Result) shown(p *scenario.Program, mark func(*Outcome)) (*Outcome, error) {
	var best *Outcome
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		holds, err := o.holds(p)
		if err != nil {
			return nil, err
		}
		if !holds {
			continue
		}
		mark(o)
		if best == nil {
			best = o
		}
	}
	return best, nil
}

func (r *Result) forbid(f *scenario.File, i int, p *scenario.Program) Check {
	text := f.Explore.Forbid[i]
	c := Check{Result: check.Result{Name: "forbid " + string(text), Verdict: check.Held, Line: f.Line(fmt.Sprintf("explore.forbid[%d]", i))}}
	o, err := r.shown(p, func(o *Outcome) { o.Forbidden = true })
	switch {
	case err != nil:
		c.Verdict, c.Message = check.Undecided, fmt.Sprintf("a forbidden outcome cannot be worked out: %v", err)
	case o != nil:
		c.Verdict, c.Message, c.Schedule = check.Broken, fmt.Sprintf("a forbidden outcome can happen: %s; it has %s", text, o.values()), o.Schedule
	}
	return c
}

func (r *Result) require(f *scenario.File, i int, p *scenario.Program, strategy string) Check {
	text := f.Explore.Require[i]
	c := Check{Result: check.Result{Name: "require " + string(text), Verdict: check.Held, Line: f.Line(fmt.Sprintf("explore.require[%d]", i))}}
	o, err := r.shown(p, func(o *Outcome) { o.Required = true })
	switch {
	case err != nil:
		c.Verdict, c.Message = check.Undecided, fmt.Sprintf("a required outcome cannot be worked out: %v", err)
	case o != nil:
		c.Schedule = o.Schedule
	case strategy == Replay: // one schedule is not asked to show everything
		c.Message = "the one schedule that was executed does not show it"
	case r.Complete:
		c.Verdict, c.Message = check.Broken, fmt.Sprintf("a required outcome cannot happen: %s", text)
	default:
		c.Verdict, c.Message = check.Undecided, fmt.Sprintf("a required outcome was not met in the orders that were tried: %s", text)
	}
	return c
}

// values writes the observed values in one line.
func (o *Outcome) values() string {
	var parts []string
	for _, v := range o.Observed {
		parts = append(parts, fmt.Sprintf("%s %v", v.Name, plain(v.Value)))
	}
	return strings.Join(parts, ", ")
}

// repeat returns the command that explores a file again in the same way.
func repeat(o *Options, profile string) string {
	words := []string{"wlmsim explore", quoted(o.Path), "--profile " + profile}
	switch o.Strategy {
	case Replay:
		words = append(words, "--schedule "+quoted(o.Schedule.String()))
	case DFS, "":
	default:
		words = append(words, "--strategy "+o.Strategy)
	}
	if o.Schedules > 0 {
		words = append(words, fmt.Sprintf("--schedules %d", o.Schedules))
	}
	if o.Preemptions != nil {
		words = append(words, fmt.Sprintf("--preemptions %d", *o.Preemptions))
	}
	if o.NoReduction {
		words = append(words, "--no-reduction")
	}
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
