package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// request is one action of an actor, or of before:.
type request struct {
	action *scenario.Action
	at     step   // where its lane parks before it
	text   string // for the history
	along  bool   // reaches the node with the version of the request before it
	more   bool   // the next one reaches the node with its version

	// Of a search.
	search  coordinator.Request
	ctx     context.Context // with its principal
	key     string          // of its principal, for the history
	cancels bool            // some action cancels it
}

// run carries the action out; a is nil for one of before:.
func (r *request) run(w *world, a *actor) {
	if a != nil {
		if w.control.free {
			return // the execution is cut short
		}
		if !r.along {
			w.control.lanes[a.index].park(r.at)
		}
		if w.control.free {
			return
		}
	}
	switch x := r.action; {
	case x.Search != nil:
		r.runSearch(w, a)
	case x.Cancel != nil:
		if leave, ok := w.leave[x.Cancel.Search]; ok {
			leave()
		}
	default:
		r.runOther(w, a)
	}
}

// note adds an event of the request to its lane.
func (r *request) note(w *world, a *actor, e history.Event) {
	e.Node = w.file.Explore.Node
	if a == nil {
		w.loose = append(w.loose, e)
		return
	}
	a.events = append(a.events, e)
}

func (r *request) runSearch(w *world, a *actor) {
	ctx, q := r.ctx, r.search
	if r.cancels {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		w.leave[q.ID] = leave
	}
	q.GroupHeader = w.group(r.action.Search.Group)
	r.note(w, a, history.Event{Kind: history.RequestSent, Search: q.ID, Detail: r.key})
	response, err := w.coordinator.Search(ctx, q)
	answer := scenario.SearchAnswer{Answer: w.explain(err)}
	if response != nil {
		answer.Permit, answer.TimedOut = response.Permit, response.TimedOut
	}
	answer.Shards = summary(response, err)
	if ctx.Err() != nil { // its client looks at no answer
		answer = scenario.SearchAnswer{Answer: scenario.Answer{Node: w.file.Explore.Node, Error: scenario.Failure{Reason: "the client gave up"}}}
	}
	if r.cancels {
		delete(w.leave, q.ID)
	}
	r.note(w, a, history.Event{Kind: history.RequestAnswered, Search: q.ID, Status: answer.Status, Detail: answer.Error.Type})
	r.answer(w, answer)
}

func (r *request) answer(w *world, answer any) {
	if id := r.action.ID(); id != "" {
		w.answers[id] = answer
	}
}

// summary is what an expression knows of the shards of a search.
func summary(r *coordinator.Response, err error) scenario.ShardsSummary {
	if r != nil {
		return scenario.ShardsSummary{
			Total: r.Shards.Total, Successful: r.Shards.Successful, Failed: r.Shards.Failed, FailedNodes: nodesOf(r.Shards.Failures),
		}
	}
	e, ok := errors.AsType[*coordinator.SearchError](err)
	if !ok {
		return scenario.ShardsSummary{}
	}
	return scenario.ShardsSummary{Total: len(e.Failures), Failed: len(e.Failures), FailedNodes: nodesOf(e.Failures)}
}

func nodesOf(failures []coordinator.ShardFailure) []string {
	var nodes []string
	for _, f := range failures {
		nodes = append(nodes, f.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// explain is what a client sees of the end of a request.
func (w *world) explain(err error) scenario.Answer {
	a := scenario.Answer{Status: 200, Node: w.file.Explore.Node}
	if err != nil {
		a.Status, a.Error.Type, a.Error.Reason = rest.Explain(err)
	}
	return a
}

// runOther carries out a request that is no search.
func (r *request) runOther(w *world, a *actor) {
	r.note(w, a, history.Event{Kind: history.WriteBegin, Detail: r.text})
	var full any
	var plain scenario.Answer
	switch x := r.action; {
	case x.GetGroups != nil:
		answer := w.getGroups(x.GetGroups.Local)
		full, plain = answer, answer.Answer
	case x.GetStats != nil:
		stats, err := w.statsOf(x.GetStats.Group)
		answer := scenario.StatsAnswer{Answer: w.explain(err), Stats: stats}
		full, plain = answer, answer.Answer
	default:
		op := w.begun(x)
		op.elsewhere = r.along || r.more
		err := w.write(x, op)
		if r.along && !r.more {
			err = errors.Join(err, w.arrive(w.head))
		}
		if a != nil && w.control.free {
			return // the execution was cut short meanwhile, and others may end at the same time
		}
		w.conclude(op, err)
		plain = w.explain(err)
		full = plain
	}
	r.note(w, a, history.Event{Kind: history.WriteEnd, Status: plain.Status, Detail: r.text})
	r.answer(w, full)
}

func (w *world) getGroups(local bool) scenario.GroupsAnswer {
	s := w.State()
	if !local {
		s = w.head
		now := time.Duration(w.turn)
		w.operation(check.Operation{Node: w.file.Explore.Node, Call: now, Return: now, Groups: s.Groups()}, nil, s.Version())
	}
	answer := scenario.GroupsAnswer{Answer: w.explain(nil)}
	for _, g := range s.Groups() {
		answer.Groups = append(answer.Groups, g.Name)
	}
	slices.Sort(answer.Groups)
	return answer
}

// statsOf returns the counters of a group, or zeros if it has none.
func (w *world) statsOf(group string) (scenario.Stats, error) {
	all := w.stats
	if all == nil {
		var err error
		if all, err = w.throttle.Stats(nil); err != nil {
			return scenario.Stats{}, err
		}
	}
	id := w.group(group)
	for _, s := range all {
		if s.ID == id {
			return scenario.StatsOf(&s), nil
		}
	}
	return scenario.Stats{}, nil
}

// write carries out a request that changes the state: it proposes what the
// node's HTTP API would, by the state that the node has published, and waits
// until the node has applied it. What it did is in op.
func (w *world) write(x *scenario.Action, op *writing) error {
	var err error
	switch {
	case x.PutGroup != nil:
		err = w.putGroup(&x.PutGroup.Group, op)
	case x.DeleteGroup != nil:
		err = w.managed("delete", op)
		if err == nil {
			err = w.propose(&cluster.DeleteGroup{Name: x.DeleteGroup.Name}, op)
		}
	case x.PutSettings != nil:
		change := x.PutSettings.Change()
		if err = change.Validate(true); err == nil {
			err = w.propose(&cluster.PutSettings{SettingsChange: change}, op)
		}
	case x.PutRule != nil:
		err = w.putRule(&x.PutRule.Rule, op)
	case x.DeleteRule != nil:
		err = w.propose(&cluster.DeleteRule{ID: w.rules[x.DeleteRule.Name]}, op)
	case x.CreateIndex != nil:
		i := x.CreateIndex
		err = w.propose(&cluster.CreateIndex{
			Name: i.Name, UUID: w.names.id("index", i.Name, int(w.head.Version())), Shards: i.Shards, ServiceTime: i.ServiceTime.Cluster(),
		}, op)
	case x.DeleteIndex != nil:
		err = w.propose(&cluster.DeleteIndex{Name: x.DeleteIndex.Name}, op)
	}
	if err == nil && w.applier != nil && !op.elsewhere {
		err = w.applier.Wait(context.Background(), op.version)
	}
	return err
}

// arrive hands a state to the applier and waits until it is applied.
func (w *world) arrive(s *cluster.State) error {
	if err := w.applier.Enqueue(s); err != nil {
		return err
	}
	return w.applier.Wait(context.Background(), s.Version())
}

// writing is a write under way and the version that it made.
type writing struct {
	check.Operation
	action  *scenario.Action
	version uint64 // 0: none yet
	// elsewhere: it is made at another node, and reaches this one with a later
	// version.
	elsewhere bool
}

// begun returns a write that begins now.
func (w *world) begun(x *scenario.Action) *writing {
	return &writing{Operation: check.Operation{Node: w.file.Explore.Node, Call: time.Duration(w.turn)}, action: x}
}

// conclude notes an operation, if it is on a group, and its outcome.
func (w *world) conclude(op *writing, err error) {
	op.Return, op.Err = time.Duration(w.turn), err
	switch op.Command.(type) {
	case *cluster.CreateGroup, *cluster.UpdateGroup, *cluster.DeleteGroup:
		w.operation(op.Operation, op.action, op.version)
	}
}

// propose applies a command to the newest state and hands it to the applier, as
// the replica does once it is committed.
func (w *world) propose(c cluster.Command, op *writing) error {
	op.Command = c
	if err := c.Validate(); err != nil {
		return err
	}
	next, err := cluster.Apply(w.head, c)
	if err != nil {
		return err
	}
	w.head, op.version = next, next.Version()
	op.Group = groupAfter(next, c)
	if w.applier == nil || op.elsewhere { // before the first execution, or the node hears of it later
		return nil
	}
	return w.applier.Enqueue(next)
}

func groupAfter(s *cluster.State, c cluster.Command) *cluster.Group {
	switch c := c.(type) {
	case *cluster.CreateGroup:
		return s.GroupNamed(c.Group.Name)
	case *cluster.UpdateGroup:
		return s.GroupNamed(c.Name)
	}
	return nil
}

// published is the state that the node which takes the request has published.
func (w *world) published(op *writing) *cluster.State {
	if w.applier == nil || op.elsewhere {
		return w.head
	}
	return w.State()
}

// managed refuses to change groups while the node's mode is not enabled, as
// the HTTP API does.
func (w *world) managed(operation string, op *writing) error {
	if w.published(op).Mode() == cluster.Enabled {
		return nil
	}
	return cluster.Errorf(cluster.IllegalState, "Cannot %s workload group because workload management mode is disabled or monitor_only."+
		"To enable this feature, set [%s] to 'enabled' in cluster settings.", operation, cluster.SettingMode)
}

// putGroup creates a group or updates the one of that name. Whichever it tries
// first, by what the node has published, a refusal because the other one was
// right makes it try that once.
func (w *world) putGroup(g *scenario.Group, op *writing) error {
	if w.published(op).GroupNamed(g.Name) != nil {
		err := w.update(g, op)
		if cluster.KindOf(err) != cluster.ResourceNotFound {
			return err
		}
		w.conclude(op, err)
		return w.create(g, op)
	}
	err := w.create(g, op)
	if err == nil || w.head.GroupNamed(g.Name) == nil {
		return err
	}
	w.conclude(op, err)
	return w.update(g, op)
}

func (w *world) create(g *scenario.Group, op *writing) error {
	if err := w.managed("create", op); err != nil {
		return err
	}
	return w.createAnyway(g, op)
}

func (w *world) createAnyway(g *scenario.Group, op *writing) error {
	made := g.Create()
	made.ID = w.names.id("group", g.Name, w.made[g.Name]+1)
	err := w.propose(w.switches.DimensionKey.Create(made), op)
	if err == nil {
		w.made[g.Name]++
	}
	return err
}

func (w *world) update(g *scenario.Group, op *writing) error {
	if err := w.managed("update", op); err != nil {
		return err
	}
	return w.propose(w.switches.DimensionKey.Update(g.Update()), op)
}

func (w *world) putRule(r *scenario.Rule, op *writing) error {
	rule := r.Cluster(w.group(r.WorkloadGroup))
	if id := w.rules[r.Name]; id != "" && w.published(op).Rule(id) != nil {
		return w.propose(&cluster.UpdateRule{
			ID: id, Description: rule.Description, WorkloadGroup: rule.WorkloadGroup,
			IndexPatterns: rule.IndexPatterns, Usernames: rule.Usernames, Roles: rule.Roles,
		}, op)
	}
	rule.ID = w.names.id("rule", r.Name, int(w.head.Version()))
	err := w.propose(&cluster.CreateRule{Rule: rule}, op)
	if err == nil {
		w.rules[r.Name] = rule.ID
	}
	return err
}

// touches returns what the first turn of an action touches.
func (w *world) touches(a *scenario.Action) touch {
	ofGroup := func(name string) touch {
		if w.deleted[name] { // which one is meant depends on what was created
			return readHead
		}
		return 0
	}
	switch {
	case a.Search != nil:
		return touch(probe.ReadState) | ofGroup(a.Search.Group)
	case a.GetStats != nil:
		return touch(probe.ReadMap|probe.ReadCounters) | ofGroup(a.GetStats.Group)
	case a.GetGroups != nil && a.GetGroups.Local:
		return touch(probe.ReadState)
	case a.GetGroups != nil:
		return readHead
	case a.Cancel != nil:
		return 0
	}
	return touch(probe.ReadState) | readHead | writeHead
}

// describe says in a few words what an action does.
func describe(a *scenario.Action) string {
	name := ""
	switch {
	case a.PutGroup != nil:
		name = a.PutGroup.Name
	case a.DeleteGroup != nil:
		name = a.DeleteGroup.Name
	case a.GetStats != nil:
		name = a.GetStats.Group
	case a.PutRule != nil:
		name = a.PutRule.Name
	case a.DeleteRule != nil:
		name = a.DeleteRule.Name
	case a.CreateIndex != nil:
		name = a.CreateIndex.Name
	case a.DeleteIndex != nil:
		name = a.DeleteIndex.Name
	case a.Search != nil:
		name = a.Search.ID
	case a.Cancel != nil:
		name = a.Cancel.Search
	}
	if name == "" {
		return a.Name()
	}
	return fmt.Sprintf("%s %s", a.Name(), name)
}
