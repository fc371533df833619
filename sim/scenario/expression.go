package scenario

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/wlmsim/wlmsim/wlm"
)

// maxExpression bounds the text of one expression, so that parsing it cannot
// exhaust the stack.
const maxExpression = 2000

// Failure is an error as a client sees it: the type and reason of OpenSearch's
// error body. Both are "" if there was none.
type Failure struct {
	Type   string `expr:"type"`
	Reason string `expr:"reason"`
}

// Answer is what the client of a request saw, known by the request's id.
type Answer struct {
	Status int           `expr:"status"` // 0: no answer (yet), or the connection broke
	Error  Failure       `expr:"error"`
	Node   string        `expr:"node"` // that took the request
	Took   time.Duration `expr:"took"` // from sending to the answer, as the client saw it
}

// SearchAnswer is the answer to a search.
type SearchAnswer struct {
	Answer
	Permit   bool          `expr:"permit"` // it was admitted with a permit
	TimedOut bool          `expr:"timed_out"`
	Shards   ShardsSummary `expr:"shards"`
}

// MultiAnswer is the answer to an msearch: 200, whatever became of its searches.
type MultiAnswer struct {
	Answer
	Items []SearchAnswer `expr:"items"` // of its searches, in their order
}

// ShardsSummary counts the shards of a search.
type ShardsSummary struct {
	Total       int      `expr:"total"`
	Successful  int      `expr:"successful"`
	Failed      int      `expr:"failed"`
	FailedNodes []string `expr:"failed_nodes"` // sorted, each once
}

// GroupsAnswer is the answer to get_groups.
type GroupsAnswer struct {
	Answer
	Groups []string `expr:"groups"` // names, sorted
}

// StatsAnswer is the answer to get_stats.
type StatsAnswer struct {
	Answer
	Stats
}

// PointAnswer is the answer to open_pit and close_pit.
type PointAnswer struct {
	Answer
	Successful bool `expr:"successful"` // no shard lacks in the point, or it ended everywhere
}

// Stats are OpenSearch's counters of a group.
type Stats struct {
	TotalCompletions   int `expr:"total_completions"`
	TotalRejections    int `expr:"total_rejections"`
	TotalCancellations int `expr:"total_cancellations"`
	TotalThrottled     int `expr:"total_throttled"`
	TotalWouldThrottle int `expr:"total_would_throttle"` // 0 where the profile has no such counter
}

// StatsOf returns a node's counters of a group as expressions know them.
func StatsOf(s *wlm.GroupStats) Stats {
	stats := Stats{
		TotalCompletions: int(s.Completions), TotalRejections: int(s.Rejections),
		TotalCancellations: int(s.Cancellations), TotalThrottled: int(s.Throttled),
	}
	if s.WouldThrottle != nil {
		stats.TotalWouldThrottle = int(*s.WouldThrottle)
	}
	return stats
}

// Outcomes counts the searches of a coordinator by how they ended.
type Outcomes struct {
	Completed int `expr:"completed"`
	Failed    int `expr:"failed"`
	Throttled int `expr:"throttled"`
	Cancelled int `expr:"cancelled"`
	Uncounted int `expr:"uncounted"`
}

// Permits are what a node holds for a group.
type Permits struct {
	Held    int `expr:"held"`
	Buckets int `expr:"buckets"`
}

// NodeState is what a node knows of the cluster.
type NodeState struct {
	Version      int    `expr:"version"`
	Leader       string `expr:"leader"` // "" if it knows none
	RulesVersion int    `expr:"rules_version"`
	Members      int    `expr:"members"` // alive in its view, itself included
}

// LoadAnswer is what the clients of a load saw.
type LoadAnswer struct {
	Sent           int     `expr:"sent"` // requests, not attempts
	Attempts       int     `expr:"attempts"`
	Completed      int     `expr:"completed"`
	Failed         int     `expr:"failed"`
	Throttled      int     `expr:"throttled"` // the last attempt was a 429
	Cancelled      int     `expr:"cancelled"`
	ThrottledShare float64 `expr:"throttled_share"` // of those sent
	Latency        Latency `expr:"latency"`
}

// Latency holds percentiles of the time from a request to its last answer.
type Latency struct {
	P50 time.Duration `expr:"p50"`
	P90 time.Duration `expr:"p90"`
	P99 time.Duration `expr:"p99"`
	Max time.Duration `expr:"max"`
}

// Env is what expressions know. Groups go by name. A function that has nothing
// to tell, for a node that is down or a group that is gone, returns an error;
// the counters of a group that has none read 0. All functions must be set.
type Env struct {
	Answers    map[string]any // by id: Answer, SearchAnswer, MultiAnswer, GroupsAnswer, StatsAnswer or PointAnswer; those that lack read as no answer
	Loads      map[string]LoadAnswer
	Stats      func(node, group string) (Stats, error)    // node "": summed over all
	Outcomes   func(node, group string) (Outcomes, error) // group "": summed over all
	Permits    func(node, group string) (Permits, error)
	State      func(node string) (NodeState, error)
	BucketPeak func(node, group string) (int, error)
}

// Scope says where an expression stands, and so what it knows.
type Scope int

// The scopes.
const (
	InRun     Scope = iota // expect: ids of steps, loads, functions
	InExplore              // observe: ids of the explore block, functions
	InOutcome              // forbid and require: the observed names
)

// Program is an expression that was checked against a file.
type Program struct {
	text Expression
	vm   *vm.Program
	kind reflect.Type
}

// Compile checks an expression in a scope and makes it ready. In [InRun] and
// for forbid and require it must be true or false; observed values are free.
func (f *File) Compile(e Expression, scope Scope) (*Program, error) {
	p, _, err := compile(e, f.zeroVars(scope), scope != InExplore)
	return p, err
}

// Eval works the expression out over [File.Vars], or over the observed values.
// It may be called from several goroutines at once.
func (p *Program) Eval(vars map[string]any) (any, error) {
	v, err := expr.Run(p.vm, vars)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.text, plainError(err))
	}
	return v, nil
}

// Holds works out an expression that is true or false.
func (p *Program) Holds(vars map[string]any) (bool, error) {
	v, err := p.Eval(vars)
	holds, _ := v.(bool)
	return holds, err
}

func plainError(err error) error {
	var at *file.Error
	if errors.As(err, &at) {
		return errors.New(at.Message)
	}
	return err
}

// Vars returns what the expressions of a scope of this file are worked out
// over. In [InOutcome] that is the observed values themselves, not this.
func (f *File) Vars(scope Scope, env Env) map[string]any {
	vars := f.answers(scope)
	for id := range vars {
		if a, ok := env.Answers[id]; ok {
			vars[id] = a
		}
	}
	if scope == InRun {
		vars["load"] = f.loads(env.Loads)
	}
	env.functions(vars)
	return vars
}

func (e Env) functions(vars map[string]any) {
	vars["stats"] = func(at ...string) (Stats, error) {
		if len(at) == 1 {
			return e.Stats("", at[0])
		}
		return e.Stats(at[0], at[1])
	}
	vars["outcomes"] = func(at ...string) (Outcomes, error) {
		if len(at) == 1 {
			return e.Outcomes(at[0], "")
		}
		return e.Outcomes(at[0], at[1])
	}
	vars["permits"] = e.Permits
	vars["state"] = e.State
	vars["bucket_peak"] = e.BucketPeak
}

// calls lists what the functions of expressions take, each in one or two ways.
func calls() map[string][][]string {
	return map[string][][]string{
		"stats":       {{"group"}, {"node", "group"}},
		"outcomes":    {{"node"}, {"node", "group"}},
		"permits":     {{"node", "group"}},
		"state":       {{"node"}},
		"bucket_peak": {{"node", "group"}},
	}
}

// answers returns an empty answer for each id of a scope.
func (f *File) answers(scope Scope) map[string]any {
	vars := map[string]any{}
	for _, a := range f.actions(scope) {
		if id := a.ID(); id != "" {
			vars[id] = a.answer()
		}
	}
	return vars
}

func (a *Action) answer() any {
	switch {
	case a.Search != nil:
		return SearchAnswer{}
	case a.MultiSearch != nil:
		return MultiAnswer{}
	case a.GetGroups != nil:
		return GroupsAnswer{}
	case a.GetStats != nil:
		return StatsAnswer{}
	case a.OpenPit != nil || a.ClosePit != nil:
		return PointAnswer{}
	}
	return Answer{}
}

// actions lists all actions of a scope, in file order.
func (f *File) actions(scope Scope) []*Action {
	var all []*Action
	if scope == InRun {
		for i := range f.Steps {
			all = append(all, &f.Steps[i].Action)
		}
	}
	if scope == InExplore && f.Explore != nil {
		for i := range f.Explore.Before {
			all = append(all, &f.Explore.Before[i])
		}
		for _, actor := range f.Explore.Actors {
			for i := range actor.Value {
				all = append(all, &actor.Value[i])
			}
		}
	}
	return all
}

// loads returns a struct with a field a load, since the fields of a struct,
// unlike the keys of a map, are checked when an expression is compiled.
func (f *File) loads(answers map[string]LoadAnswer) any {
	names := f.loadNames()
	fields := make([]reflect.StructField, len(names))
	for i, name := range names {
		tag := reflect.StructTag(fmt.Sprintf("expr:%q", name))
		fields[i] = reflect.StructField{Name: fmt.Sprintf("L%d", i), Type: reflect.TypeFor[LoadAnswer](), Tag: tag}
	}
	v := reflect.New(reflect.StructOf(fields)).Elem()
	for i, name := range names {
		v.Field(i).Set(reflect.ValueOf(answers[name]))
	}
	return v.Interface()
}

// loadNames lists the loads that an expression can name, each once, sorted.
func (f *File) loadNames() []string {
	var names []string
	for _, l := range f.Load {
		if identifier.MatchString(l.Name) {
			names = append(names, l.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// zeroVars returns values of the right types for what a scope knows.
func (f *File) zeroVars(scope Scope) map[string]any {
	if scope != InOutcome {
		return f.Vars(scope, Env{})
	}
	vars := map[string]any{}
	if f.Explore == nil {
		return vars
	}
	known := f.zeroVars(InExplore)
	for _, o := range f.Explore.Observe {
		if p, _, err := compile(o.Value, known, false); err == nil {
			vars[o.Name] = reflect.Zero(p.kind).Interface()
		}
	}
	return vars
}

// identifier is what an expression can name.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the words that no id can be.
func reserved() []string {
	words := []string{"load", "true", "false", "nil", "not", "in", "and", "or", "let", "if", "else", "matches", "contains", "startsWith", "endsWith"}
	return append(words, slices.Sorted(maps.Keys(calls()))...)
}

// compile returns the program, or what is wrong and at which character of the
// text, from 0.
func compile(e Expression, vars map[string]any, truth bool) (*Program, int, error) {
	text := string(e)
	if len(text) > maxExpression {
		return nil, 0, fmt.Errorf("the expression has %d bytes: at most %d", len(text), maxExpression)
	}
	options := []expr.Option{expr.Env(vars)}
	if truth {
		options = append(options, expr.AsBool())
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		col, why := explain(err, vars)
		return nil, col, errors.New(why)
	}
	kind := program.Node().Type()
	if kind == nil || kind.Kind() == reflect.Interface {
		return nil, 0, errors.New("the value has no fixed type")
	}
	return &Program{text: e, vm: program, kind: kind}, 0, nil
}

var (
	unknownName  = regexp.MustCompile(`^unknown name (\w+)`)
	unknownField = regexp.MustCompile(`^type (.+) has no field (\w+)`)
)

// explain turns an error of the expression language into the words of faults.
func explain(err error, vars map[string]any) (col int, why string) {
	var at *file.Error
	if !errors.As(err, &at) {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if strings.HasPrefix(first, "expected bool") {
			first = "must be true or false: " + first
		}
		return 0, first
	}
	if m := unknownName.FindStringSubmatch(at.Message); m != nil {
		return at.Column, unknown("name", m[1], slices.Sorted(maps.Keys(vars)))
	}
	if m := unknownField.FindStringSubmatch(at.Message); m != nil {
		return at.Column, fieldFault(m[1], m[2], vars)
	}
	return at.Column, at.Message
}

// fieldFault finds the type that lacks a field among the types of the values.
func fieldFault(kind, name string, vars map[string]any) string {
	found := typesOf(vars)[kind]
	if found == nil {
		return fmt.Sprintf("unknown field %q", name)
	}
	if load, ok := vars["load"]; ok && reflect.TypeOf(load) == found {
		return unknown("load", name, exprFields(found))
	}
	return unknown("field", name, exprFields(found))
}

func typesOf(vars map[string]any) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		addTypes(reflect.TypeOf(vars[name]), found)
	}
	return found
}

func addTypes(t reflect.Type, found map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Func:
		addTypes(t.Out(0), found)
	case reflect.Slice:
		addTypes(t.Elem(), found)
	case reflect.Struct:
		found[t.String()] = t
		for i := range t.NumField() {
			addTypes(t.Field(i).Type, found)
		}
	}
}

func exprFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			names = append(names, exprFields(f.Type)...)
		} else {
			names = append(names, f.Tag.Get("expr"))
		}
	}
	return names
}

// call is a function of an expression and where its name stands.
type call struct {
	name string
	args []ast.Node
	col  int
}

// callsIn lists the calls of an expression that parses.
func callsIn(e Expression) []call {
	tree, err := parser.Parse(string(e))
	if err != nil {
		return nil
	}
	var v collector
	ast.Walk(&tree.Node, &v)
	return v.calls
}

type collector struct{ calls []call }

// Visit implements [ast.Visitor].
func (v *collector) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			v.calls = append(v.calls, call{name.Value, n.Arguments, name.Location().From})
		}
	case *ast.BuiltinNode:
		v.calls = append(v.calls, call{n.Name, n.Arguments, n.Location().From})
	}
}

// literal returns an argument that is text written out.
func literal(args []ast.Node, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	s, ok := args[i].(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}
