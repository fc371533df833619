package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Bounds of the search for an order of the operations on the groups of one
// name. Beyond, the check is undecided. They count and do not time, so that the
// verdict does not depend on the machine.
const (
	// MaxOperations is how many operations on one name are looked at.
	MaxOperations = 10_000
	// MaxSearch is how often an operation is tried at some place, over all
	// names; under a second of work.
	MaxSearch = 100_000
)

// historyLinearizable: group writes and leader reads have an order that
// explains all answers, unknown ones either way.
//
// Names are looked at one by one, since a write is about one name; a read of
// all groups is one read of each name. What one name's groups do not explain,
// such as a refusal because of all groups together, surely changed nothing and
// is left out.
type historyLinearizable struct{ findings }

func (c *historyLinearizable) Name() scenario.Promise { return scenario.HistoryLinearizable }
func (c *historyLinearizable) Kinds() []string        { return nil }
func (c *historyLinearizable) Observe(*history.Event) {}

func (c *historyLinearizable) Finish(f *Facts) Result {
	if f.Operations == nil {
		c.lack("nobody noted the operations on groups")
	}
	tries := MaxSearch
	for _, name := range namesIn(f.Operations) {
		ops := about(name, f.Operations)
		if len(ops) > MaxOperations {
			c.lack("group %s has %d operations: an order is looked for up to %d", name, len(ops), MaxOperations)
			continue
		}
		ok, decided := linearizable(ops, &tries)
		switch {
		case !decided:
			c.lack("no order of the %d operations on group %s was found within %d tries", len(ops), name, MaxSearch)
		case !ok:
			c.add("no order of group writes and leader reads explains all answers", "group %s, %d operations; %s", name, len(ops), unexplained(ops))
		}
	}
	return c.result(c.Name())
}

// namesIn returns the names that commands are about or reads show, sorted.
func namesIn(ops []Operation) []string {
	seen := map[string]bool{}
	var names []string
	note := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range ops {
		if ops[i].Command != nil {
			note(nameOf(ops[i].Command))
		}
		for _, g := range ops[i].Groups {
			note(g.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nameOf returns the name of the group that a command is about. A command on
// something else is a mistake of the caller's.
func nameOf(c cluster.Command) string {
	switch c := c.(type) {
	case *cluster.CreateGroup:
		return c.Group.Name
	case *cluster.UpdateGroup:
		return c.Name
	case *cluster.DeleteGroup:
		return c.Name
	}
	panic("check: command " + cluster.KindName(c) + " is not about a group")
}

// answer is how much an operation's answer says.
type answer uint8

const (
	done    answer = iota // it was carried out
	refused               // it was refused because the group is there, or is not
	unknown               // it was carried out or not, perhaps later
	useless               // it says nothing of this name
)

// step is one operation as seen from one name.
type step struct {
	*Operation
	answer answer
	shown  string // encoded group that a read or an answer showed; "": none
}

// about returns the operations as seen from one name, without those that say
// nothing of it, in order of their calls.
func about(name string, ops []Operation) []step {
	var steps []step
	for i := range ops {
		o := &ops[i]
		if o.Command != nil && nameOf(o.Command) != name {
			continue
		}
		s := step{Operation: o, answer: answerOf(o)}
		if s.answer == useless {
			continue
		}
		s.shown = shownOf(o, name)
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.Call, b.Call) })
	return steps
}

func answerOf(o *Operation) answer {
	refusal, isRefusal := errors.AsType[*cluster.Error](o.Err)
	switch {
	case o.Err == nil:
		return done
	case o.Command == nil:
		return useless
	case !isRefusal || refusal.Kind == cluster.OutcomeUnknown:
		return unknown
	case *refusal == *refusalWithout(o.Command) || *refusal == *refusalWith(o.Command):
		return refused
	}
	return useless
}

// refusalWithout and refusalWith are how a command is refused because there is
// no group of its name, and because there is one; an empty error if it is not.
func refusalWithout(c cluster.Command) *cluster.Error { return refusalBy(cluster.Empty(), c) }

func refusalWith(c cluster.Command) *cluster.Error {
	create, ok := c.(*cluster.CreateGroup)
	if !ok {
		return &cluster.Error{}
	}
	with, err := cluster.Apply(cluster.Empty(), create)
	if err != nil {
		return &cluster.Error{}
	}
	return refusalBy(with, c)
}

func refusalBy(s *cluster.State, c cluster.Command) *cluster.Error {
	_, err := cluster.Apply(s, c)
	if refusal, ok := errors.AsType[*cluster.Error](err); ok {
		return refusal
	}
	return &cluster.Error{}
}

func shownOf(o *Operation, name string) string {
	if o.Command != nil {
		return encode(o.Group)
	}
	for _, g := range o.Groups {
		if g.Name == name {
			return encode(g)
		}
	}
	return ""
}

// encode writes a group in the way in which equal ones are equal texts.
func encode(g *cluster.Group) string {
	if g == nil {
		return ""
	}
	text, err := json.Marshal(g)
	if err != nil { // a share that is not a number, which no command can carry
		return err.Error()
	}
	return string(text)
}

// named is what there is under one name: a state of one group or none, and the
// group's text.
type named struct {
	state *cluster.State
	text  string
}

// after returns what is there after a step at this place, and whether the step
// can have had its answer here.
func (n named) after(s *step, name string) (named, bool) {
	if s.Command == nil {
		return n, n.text == s.shown
	}
	state, err := cluster.Apply(n.state, s.Command)
	if err != nil {
		refusal, _ := errors.AsType[*cluster.Error](err)
		given, _ := errors.AsType[*cluster.Error](s.Err)
		return n, s.answer == unknown || s.answer == refused && refusal != nil && *refusal == *given
	}
	next := named{state, encode(state.GroupNamed(name))}
	return next, s.answer == unknown || s.answer == done && (s.Group == nil || next.text == s.shown)
}

// forever is when the answer of an operation without one is there: it may be
// carried out at any time later, which includes never.
const forever = time.Duration(1<<63 - 1)

// linearizable looks for an order of operations on one name, with so many
// tries, which it uses up.
func linearizable(steps []step, tries *int) (ok, decided bool) {
	if len(steps) == 0 {
		return true, true
	}
	name := ""
	ops := make([]porcupine.Operation, len(steps))
	for i := range steps {
		s := &steps[i]
		if s.Command != nil {
			name = nameOf(s.Command)
		}
		back := s.Return
		if s.answer == unknown {
			back = forever
		}
		ops[i] = porcupine.Operation{Input: s, Call: int64(s.Call), Return: int64(max(back, s.Call))}
	}
	model := porcupine.Model{
		Init: func() any { return named{state: cluster.Empty()} },
		Step: func(state, input, _ any) (bool, any) {
			if *tries == 0 {
				return false, state
			}
			*tries--
			next, ok := state.(named).after(input.(*step), name)
			return ok, next
		},
		Equal: func(a, b any) bool { return a.(named).text == b.(named).text },
	}
	ok = porcupine.CheckOperations(model, ops)
	return ok, ok || *tries > 0
}

// unexplained says which answer is the first that no order explains.
func unexplained(steps []step) string {
	ends := make([]time.Duration, 0, len(steps))
	for i := range steps {
		if steps[i].answer != unknown {
			ends = append(ends, steps[i].Return)
		}
	}
	slices.Sort(ends)
	tries := MaxSearch
	i := sort.Search(len(ends), func(i int) bool {
		ok, decided := linearizable(until(steps, ends[i]), &tries)
		return !ok && decided
	})
	if i == len(ends) {
		return "all of them together"
	}
	for j := range steps {
		if s := &steps[j]; s.answer != unknown && s.Return == ends[i] {
			return fmt.Sprintf("the first that nothing explains is %v", s)
		}
	}
	return "all of them together"
}

// until returns the history up to a moment: what was called by then, and the
// answers that were there.
func until(steps []step, at time.Duration) []step {
	var early []step
	for _, s := range steps {
		switch {
		case s.Call > at, s.Return > at && (s.Command == nil || s.answer == refused):
			continue
		case s.Return > at:
			s.answer = unknown
		}
		early = append(early, s)
	}
	return early
}

// String returns the operation and its answer.
func (s *step) String() string {
	what, got := "a read of the groups", s.shown
	if s.Command != nil {
		what = cluster.KindName(s.Command)
	}
	switch {
	case s.answer == refused:
		got = s.Err.Error()
	case got == "" && s.Command != nil:
		got = "done"
	case got == "":
		got = "no such group"
	}
	return fmt.Sprintf("%s on node %s from %v to %v: %s", what, s.Node, s.Call, s.Return, got)
}
