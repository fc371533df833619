package world

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// programs are the expressions of a file, ready to be worked out.
type programs struct {
	expect []*scenario.Program
	steps  [][]*scenario.Program // by step
}

func compile(f *scenario.File) (*programs, error) {
	all := func(list []scenario.Expression) ([]*scenario.Program, error) {
		var made []*scenario.Program
		for _, e := range list {
			p, err := f.Compile(e, scenario.InRun)
			if err != nil {
				return nil, fmt.Errorf("expression %q: %w", e, err)
			}
			made = append(made, p)
		}
		return made, nil
	}
	var p programs
	var err error
	if p.expect, err = all(f.Expect); err != nil {
		return nil, err
	}
	p.steps = make([][]*scenario.Program, len(f.Steps))
	for i := range f.Steps {
		if p.steps[i], err = all(f.Steps[i].Expect); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// expectation works an expression out and judges it.
func expectation(text scenario.Expression, p *scenario.Program, vars map[string]any, line int, when string) Check {
	c := Check{Name: "expect " + string(text), Verdict: check.Held, Line: line}
	holds, err := p.Holds(vars)
	switch {
	case err != nil:
		c.Verdict, c.Message = check.Undecided, fmt.Sprintf("an expectation cannot be worked out%s: %v", when, err)
	case !holds:
		c.Verdict, c.Message = check.Broken, fmt.Sprintf("an expectation is not true%s: %s", when, text)
	}
	return c
}

// expectNow judges the expressions of a step at this moment. Only what does not
// hold is kept, since a step may be repeated.
func (w *world) expectNow(s start) {
	vars := w.file.Vars(scenario.InRun, w.env())
	for i, p := range w.programs.steps[s.number] {
		c := expectation(s.step.Expect[i], p, vars, w.file.Line(fmt.Sprintf("%s.expect[%d]", s.path, i)), fmt.Sprintf(" at %v", s.at))
		if c.Verdict != check.Held {
			w.failed.add(c)
		}
	}
}

// judge fills in what came of the run.
func (w *world) judge(r *Result, facts *check.Facts) {
	env := w.env()
	vars := w.file.Vars(scenario.InRun, env)
	w.record.end()
	checks := w.record.checks.Finish(facts)
	checks = append(checks, w.failed.list()...)
	for i, p := range w.programs.expect {
		checks = append(checks, expectation(w.file.Expect[i], p, vars, w.file.Line(fmt.Sprintf("expect[%d]", i)), ""))
	}
	r.Checks, r.Verdict = judge(checks, w.file.Breaks)
	r.Loads, r.Answers = env.Loads, env.Answers
	if x := w.options.explored; x != nil {
		x.End(env)
	}
	if w.record.on() {
		r.History, r.TraceHash = w.record.log, w.record.log.Hash()
	}
	w.count(r, facts)
}

// count sums up what clients saw and what nodes counted.
func (w *world) count(r *Result, facts *check.Facts) {
	tallies := []*tally{&w.tally}
	for _, l := range w.loads {
		tallies = append(tallies, &l.tally)
	}
	total := sum(tallies)
	a := total.answer()
	r.Searches = Searches{Sent: a.Sent, Completed: a.Completed, Throttled: a.Throttled, Failed: a.Failed, Cancelled: a.Cancelled}
	r.LatencyMS = LatencyMS{
		P50: milliseconds(a.Latency.P50), P90: milliseconds(a.Latency.P90), P99: milliseconds(a.Latency.P99), Max: milliseconds(a.Latency.Max),
	}
	r.Groups = map[string]Counters{}
	for _, l := range facts.Lives {
		for _, s := range l.Stats {
			name := w.ids.nameOf(s.ID)
			c := r.Groups[name]
			c.Completions += s.Completions
			c.Rejections += s.Rejections
			c.Cancellations += s.Cancellations
			c.Throttled += s.Throttled
			if s.WouldThrottle != nil {
				c.WouldThrottle += *s.WouldThrottle
			}
			r.Groups[name] = c
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
