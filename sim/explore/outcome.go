package explore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Value is one observed value and its name.
type Value struct {
	Name  string
	Value any
}

// Observed is the observed values in the order of the file.
type Observed []Value

// MarshalJSON writes the values as one object.
func (o Observed) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, v := range o {
		b.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(v.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(plain(v.Value))
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain returns a number, a truth or a text.
func plain(v any) any {
	if _, ok := v.(fmt.Stringer); ok {
		return fmt.Sprint(v)
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.String:
		return v
	}
	return fmt.Sprintf("%+v", v)
}

// Outcome is one combination of observed values.
type Outcome struct {
	Observed    Observed `json:"observed"`
	Schedules   int      `json:"schedules"` // executed ones that lead to it
	Forbidden   bool     `json:"forbidden"`
	Required    bool     `json:"required"` // it shows what a line of require: asks for
	Schedule    string   `json:"schedule"` // the shortest that was met
	Preemptions int      `json:"preemptions"`

	trace []laneEvent
}

// Check is what was found out about a promise, a forbidden or a required
// outcome, over all executed schedules.
type Check struct {
	check.Result
	Schedule string `json:"schedule,omitempty"` // that shows it; "": none

	trace []laneEvent // of that schedule; nil if it is an outcome's, too
}

// Result is what can happen.
type Result struct {
	Scenario  string `json:"scenario"`
	File      string `json:"file"`
	Profile   string `json:"profile"`
	Strategy  string `json:"strategy"`
	Schedules int    `json:"schedules"` // executed to their ends
	Pruned    int    `json:"pruned"`    // cut short, since they led to nothing new
	Complete  bool   `json:"complete"`  // every order within the bounds was covered
	// TraceHash covers all that happened in the one schedule of a whole cluster
	// that was asked for, times included; "" but in the exact lane, where it
	// repeats.
	TraceHash   string        `json:"trace_hash,omitempty"`
	WallSeconds float64       `json:"wall_seconds"`
	Outcomes    []Outcome     `json:"outcomes"`
	Checks      []Check       `json:"checks"`
	Verdict     check.Verdict `json:"verdict"`
	Repeat      string        `json:"repeat"` // the command that explores again

	lanes []string
	set   []string          // assignments that were made to the file
	seed  uint64            // that schedules are drawn from
	names map[string]string // of groups, by id
}

// programs are the expressions of a file, ready to be worked out.
type programs struct {
	observe         []*scenario.Program
	forbid, require []*scenario.Program
}

func compile(f *scenario.File) (p programs, err error) {
	add := func(to *[]*scenario.Program, e scenario.Expression, scope scenario.Scope) {
		one, bad := f.Compile(e, scope)
		*to = append(*to, one)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("expression %q: %w", e, bad))
		}
	}
	for _, o := range f.Explore.Observe {
		add(&p.observe, o.Value, scenario.InExplore)
	}
	for _, e := range f.Explore.Forbid {
		add(&p.forbid, e, scenario.InOutcome)
	}
	for _, e := range f.Explore.Require {
		add(&p.require, e, scenario.InOutcome)
	}
	return p, err
}

// env is what expressions know of the world at this moment.
func (w *world) env() scenario.Env {
	here := func(node string) error {
		if node != "" && node != w.file.Explore.Node {
			return fmt.Errorf("node %s is not explored", node)
		}
		return nil
	}
	return scenario.Env{
		Stats: func(node, group string) (scenario.Stats, error) {
			if err := here(node); err != nil {
				return scenario.Stats{}, err
			}
			return w.statsOf(group)
		},
		Outcomes: func(node, group string) (scenario.Outcomes, error) {
			return w.outcomesOf(group), here(node)
		},
		Permits: func(node, group string) (scenario.Permits, error) {
			for _, p := range w.throttle.Permits() {
				if p.Group == w.group(group) {
					return scenario.Permits{Held: p.Held, Buckets: p.Buckets}, here(node)
				}
			}
			return scenario.Permits{}, here(node)
		},
		State: func(node string) (scenario.NodeState, error) {
			return scenario.NodeState{Version: int(w.State().Version()), RulesVersion: int(w.coordinator.RulesVersion()), Members: 1}, here(node)
		},
		BucketPeak: func(node, group string) (int, error) {
			peak := 0
			for _, id := range w.allGroups(group) {
				peak = max(peak, w.peaks[id])
			}
			return peak, here(node)
		},
	}
}

// allGroups returns every id that a group of a name has or had.
func (w *world) allGroups(name string) []string {
	if name == cluster.DefaultGroupID {
		return []string{name}
	}
	var ids []string
	for n := range w.made[name] {
		ids = append(ids, w.names.id("group", name, n+1))
	}
	return ids
}

func (w *world) outcomesOf(group string) scenario.Outcomes {
	ids := w.allGroups(group)
	var total scenario.Outcomes
	for _, o := range w.coordinator.Outcomes() {
		if group != "" && !slices.Contains(ids, o.Group) {
			continue
		}
		total.Completed += int(o.Completed)
		total.Failed += int(o.Failed)
		total.Throttled += int(o.Throttled)
		total.Cancelled += int(o.Cancelled)
		total.Uncounted += int(o.Uncounted)
	}
	return total
}

// found is an outcome with the turns of its shortest schedule.
type found struct {
	Outcome
	turns []uint8
}

// breach is a promise that did not hold in every schedule.
type breach struct {
	check.Result
	turns []uint8 // of the shortest schedule that shows it
	key   string  // of the outcome
	trace []laneEvent
}

// table collects what executions show.
type table struct {
	file     *scenario.File
	programs programs
	lanes    []string
	// run executes one schedule and leaves what it shows in key, values and
	// results; traced says that its events are asked for.
	run func(c chooser, taken []uint8, traced bool) (turns []uint8, whole bool, events []laneEvent, err error)
	// names returns the names of groups by id; nil: they are not known.
	names func() map[string]string
	// misfit is what a schedule that was asked for means when it does not fit.
	misfit error
	// spare is how many executions of a schedule may take another course than
	// before. With lenient, more may, which is said and no more.
	spare    int
	lenient  bool
	whole    bool // it is of a whole cluster
	unsteady int  // outcomes whose schedules took another course too often

	vars     map[string]any // of the expressions of observe
	blank    map[string]any // the answers that nobody gave
	outcomes map[string]*found
	breaches map[string]*breach

	schedules, pruned int
	news              int // how often something new was seen
	complete          bool
	trouble           string // why nothing can be said
	longest           int    // turns of an execution
	linears           map[string]check.Result
	hash              string // of the first execution of a whole cluster

	// within calls a function where schedules can be executed; the error is
	// also that of the place.
	within func(func() error) error
	// hire returns another table to execute schedules with, side by side; number
	// is one that no other has meanwhile.
	hire func(number int) (*table, error)
	// portion is how many schedules a worker executes before it reports them.
	portion int

	// Of the execution under way.
	last      record
	counting  counting
	key       []byte
	linearKey []byte
	values    []any
	results   []check.Result
}

func newTable(f *scenario.File, p programs, lanes []string) *table {
	return &table{
		file: f, programs: p, lanes: lanes, misfit: ErrUsage,
		within: func(f func() error) error { return f() }, portion: 1,
		outcomes: map[string]*found{}, breaches: map[string]*breach{}, linears: map[string]check.Result{}, blank: map[string]any{},
	}
}

// nodePortion is the portion of one node: a few milliseconds' work.
const nodePortion = 32

// tableOf returns the table of one node.
func tableOf(w *world, most int) *table {
	var lanes []string
	for _, l := range w.control.lanes {
		lanes = append(lanes, l.name)
	}
	t := newTable(w.file, w.programs, lanes)
	t.vars = w.file.Vars(scenario.InExplore, w.env())
	for name, v := range t.vars {
		if reflect.TypeOf(v).Kind() == reflect.Struct {
			t.blank[name] = v
		}
	}
	t.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		if traced {
			w.based.events = []laneEvent{}
			defer func() { w.based.events = nil }()
		}
		turns, whole, err := play(w, most, c, taken)
		return turns, whole, w.events, err
	}
	w.judge, t.names = t.judge, w.names.groups
	t.within, t.portion = w.within, nodePortion
	return t
}

// judge looks at an execution that came to its end, before the node is closed.
func (t *table) judge(w *world) {
	if lane := w.stuck(); lane != "" {
		t.stuck(lane)
		return
	}
	facts := w.facts()
	t.results = append(w.checks.AppendFinish(t.results[:0], facts), t.linear(w, facts))
	for name, empty := range t.blank {
		t.vars[name] = empty
		if answer, ok := w.answers[name]; ok {
			t.vars[name] = answer
		}
	}
	t.observe()
}

// stuck notes that a lane cannot go on.
func (t *table) stuck(lane string) {
	t.trouble = fmt.Sprintf("lane %s waits for what never comes", lane)
}

// observe works the observed values out.
func (t *table) observe() {
	t.key, t.values = t.key[:0], t.values[:0]
	for _, p := range t.programs.observe {
		v, err := p.Eval(t.vars)
		if err != nil {
			t.trouble = fmt.Sprintf("a value cannot be observed: %v", err)
			return
		}
		t.values = append(t.values, v)
		t.key = appendValue(t.key, v)
	}
}

func appendValue(key []byte, v any) []byte {
	switch v := v.(type) {
	case int:
		key = strconv.AppendInt(key, int64(v), 10)
	case bool:
		key = strconv.AppendBool(key, v)
	case string:
		key = strconv.AppendQuote(key, v)
	case time.Duration:
		key = strconv.AppendInt(key, int64(v), 10)
	default:
		key = fmt.Appendf(key, "%+v", v)
	}
	return append(key, ' ')
}

// take enters an execution that came to its end.
func (t *table) take(r *record) {
	o := t.outcomes[string(r.key)]
	switch {
	case o != nil:
		if shorter(r.turns, o.turns) {
			o.turns, o.Preemptions = append(o.turns[:0], r.turns...), r.preempt
		}
	case len(t.outcomes) == MaxOutcomes:
		t.trouble = fmt.Sprintf("there are more than %d outcomes: observe less", MaxOutcomes)
		return
	default:
		o = &found{turns: slices.Clone(r.turns)}
		o.Preemptions = r.preempt
		for i, v := range r.values {
			o.Observed = append(o.Observed, Value{t.file.Explore.Observe[i].Name, v})
		}
		t.outcomes[string(r.key)] = o
		t.news++
	}
	o.Schedules++
	for _, one := range r.results {
		t.breach(one, r)
	}
}

// breach keeps the worst verdict of a promise, with its shortest schedule.
func (t *table) breach(one check.Result, r *record) {
	b := t.breaches[one.Name]
	if b == nil || b.Verdict != check.Broken && one.Verdict == check.Broken || b.Verdict == one.Verdict && shorter(r.turns, b.turns) {
		t.breaches[one.Name] = &breach{Result: one, turns: slices.Clone(r.turns), key: string(r.key)}
		t.news++
	}
}

// shorter says whether a schedule has fewer switches than another, or then
// fewer turns, or then comes first.
func shorter(a, b []uint8) bool {
	return cmp.Or(cmp.Compare(entries(a), entries(b)), cmp.Compare(len(a), len(b)), slices.Compare(a, b)) < 0
}

func entries(turns []uint8) int {
	n := 0
	for i := range turns {
		if i == 0 || turns[i] != turns[i-1] {
			n++
		}
	}
	return n
}

func (t *table) schedule(turns []uint8) string {
	s := make(Schedule, len(turns))
	for i, lane := range turns {
		s[i] = t.lanes[lane]
	}
	return s.String()
}

// maxConfirmed bounds the outcomes whose schedules are executed again.
const maxConfirmed = 100

// confirm executes the schedule of each outcome again, twice, and compares.
func (t *table) confirm(ctx context.Context) error {
	for n, key := range t.keys() {
		if t.trouble != "" {
			return nil
		}
		if n == maxConfirmed {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.confirmOne(key, t.outcomes[key]); err != nil {
			return err
		}
	}
	return t.retrace(ctx)
}

// retrace executes the schedules of what did not hold again, for their events,
// but for those that are an outcome's. One that takes another course has none.
func (t *table) retrace(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(t.breaches)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := t.breaches[name]
		if o := t.outcomes[b.key]; o != nil && o.trace != nil && slices.Equal(o.turns, b.turns) {
			continue
		}
		events, trouble, err := t.again(b.key, b.turns)
		if err != nil || t.trouble != "" {
			return err
		}
		if trouble == "" {
			b.trace = events
		}
	}
	return nil
}

// confirmOne executes the schedule of an outcome until two executions have the
// same events.
func (t *table) confirmOne(key string, o *found) error {
	var seen [][]laneEvent
	for amiss := 0; ; {
		events, trouble, err := t.again(key, o.turns)
		if err != nil || t.trouble != "" {
			return err
		}
		if trouble == "" {
			for _, before := range seen {
				if slices.Equal(events, before) {
					o.trace = events
					return nil
				}
			}
			if seen = append(seen, events); len(seen) == 1 {
				continue
			}
			trouble = "the same schedule gave other events"
		}
		amiss++
		switch {
		case amiss > t.spare && t.lenient:
			t.unsteady++
			o.trace = events
			return nil
		case amiss > t.spare:
			t.trouble = fmt.Sprintf("%s: %s; schedule: %s", trouble, uncontrolled, t.schedule(o.turns))
			return nil
		}
	}
}

// uncontrolled is what it means that a schedule does not repeat.
const uncontrolled = "something runs that the controller does not control"

// again executes a schedule and returns its events, or how it went another way.
func (t *table) again(key string, turns []uint8) (events []laneEvent, trouble string, err error) {
	var lanes []int
	for _, lane := range turns {
		lanes = append(lanes, int(lane))
	}
	c := &replay{lanes: lanes, names: t.name, wrong: errDiverged}
	taken, _, events, err := t.run(c, nil, true)
	switch {
	case errors.Is(err, errDiverged):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case t.trouble == "" && (!slices.Equal(taken, turns) || string(t.key) != key):
		return nil, fmt.Sprintf("%v or gave another outcome", errDiverged), nil
	}
	return events, "", nil
}

// name returns the name of a lane.
func (t *table) name(lane int) string { return t.lanes[lane] }

// counting counts the preemptions of another chooser.
type counting struct {
	chooser
	preemptions *int
}

func (c *counting) choose(turn int, enabled uint64, steps []step, last int) (int, error) {
	next, err := c.chooser.choose(turn, enabled, steps, last)
	if err == nil && preempts(enabled, last, next) {
		*c.preemptions++
	}
	return next, err
}

// keys returns the outcomes, those with more schedules first.
func (t *table) keys() []string {
	var keys []string
	for key := range t.outcomes {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.outcomes[b].Schedules, t.outcomes[a].Schedules), cmp.Compare(a, b))
	})
	return keys
}
