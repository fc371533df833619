package shrink

import (
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Failure is how a file fails.
type Failure struct {
	Check    string // a promise, or "expect ..." or "forbid ..." with the expression
	Message  string
	Schedule explore.Schedule // that shows it, of an exploration; nil: it is a run's
	Seed     uint64           // that shows it, of a run

	needed int // how many seeds were tried until one showed it
}

// Sentence is the part of a message that is the same for the same fault: what
// stands before the first colon.
func Sentence(message string) string {
	constant, _, _ := strings.Cut(message, ":")
	return constant
}

// Is says whether a check shows this failure: the same promise broke with the
// same sentence, or the same expression.
func (f *Failure) Is(c *check.Result) bool {
	if c.Verdict != check.Broken || oneLine(c.Name) != oneLine(f.Check) {
		return false
	}
	return strings.Contains(f.Check, " ") || Sentence(c.Message) == Sentence(f.Message)
}

// oneLine writes every white space of a text as one blank.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// failureOf returns the first thing that broke of a file and that less of it
// may break as well.
func failureOf(f *scenario.File, checks []check.Result) (Failure, bool) {
	must := map[string]bool{}
	for _, p := range f.Breaks {
		must[string(p)] = true
	}
	for _, c := range checks {
		if c.Verdict == check.Broken && !must[c.Name] && !strings.HasPrefix(c.Name, requires) {
			return Failure{Check: c.Name, Message: c.Message}, true
		}
	}
	return Failure{}, false
}

// The beginnings of the names of checks that judge an expression.
const (
	expects  = "expect "
	forbids  = "forbid "
	requires = "require "
)

// alone takes out of a file what judges something else than a failure, and what
// only people read.
func (f *Failure) alone(g *scenario.File) {
	g.About, g.Breaks, g.Under = "", nil, nil
	g.Expect = f.own(expects, g.Expect)
	for i := range g.Steps {
		if a := &g.Steps[i].Action; a.Expect != nil {
			a.Expect = f.own(expects, a.Expect)
		}
	}
	g.Steps = without(g.Steps)
	if e := g.Explore; e != nil {
		e.Forbid, e.Require = f.own(forbids, e.Forbid), nil
	}
}

// own keeps the expression that the failure is about.
func (f *Failure) own(kind string, all []scenario.Expression) []scenario.Expression {
	for _, e := range all {
		if oneLine(f.Check) == oneLine(kind+string(e)) {
			return []scenario.Expression{e}
		}
	}
	return nil
}

// without takes out steps that do nothing any more.
func without(steps []scenario.Step) []scenario.Step {
	var kept []scenario.Step
	for _, s := range steps {
		if len(s.Action.Names()) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}
