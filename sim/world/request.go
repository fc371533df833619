package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// requestStep sends a request that is no search.
func (w *world) requestStep(a *scenario.Action, m *member) error {
	var work func(*life) any
	switch {
	case a.GetGroups != nil:
		work = func(l *life) any { return w.getGroups(a.GetGroups, l) }
	case a.GetStats != nil:
		work = func(l *life) any { return w.getStats(a.GetStats, l) }
	case a.OpenPit != nil:
		work = func(l *life) any { return w.openPit(a.OpenPit, l) }
	case a.ClosePit != nil:
		id, known := w.points.look(a.ClosePit.Pit)
		if !known {
			return fmt.Errorf("open_pit %s has not been answered with a point in time", a.ClosePit.Pit)
		}
		work = func(l *life) any { return w.closePit(id, l) }
	default:
		work = func(l *life) any { return explain(w.write(a, l)) }
	}
	id, x := a.ID(), w.send(m)
	asked := describe(a)
	w.event(history.Event{Kind: history.WriteBegin, Node: x.node, Detail: asked})
	w.client(func() {
		var full any
		plain := x.deliver(m, func(l *life) scenario.Answer {
			full = work(l)
			return *common(&full)
		})
		if full == nil || plain.Status == 0 {
			full = empty(a)
		}
		*common(&full) = plain
		w.event(history.Event{Kind: history.WriteEnd, Node: x.node, Status: plain.Status, Detail: asked})
		w.answers.set(id, deref(full))
	})
	return nil
}

// The answers of requests are handled as pointers, so that what all have in
// common can be filled in at one place.
func empty(a *scenario.Action) any {
	switch {
	case a.GetGroups != nil:
		return &scenario.GroupsAnswer{}
	case a.GetStats != nil:
		return &scenario.StatsAnswer{}
	case a.OpenPit != nil || a.ClosePit != nil:
		return &scenario.PointAnswer{}
	}
	return &scenario.Answer{}
}

func common(full *any) *scenario.Answer {
	switch v := (*full).(type) {
	case *scenario.GroupsAnswer:
		return &v.Answer
	case *scenario.StatsAnswer:
		return &v.Answer
	case *scenario.PointAnswer:
		return &v.Answer
	case scenario.Answer:
		*full = &v
		return &v
	case *scenario.Answer:
		return v
	}
	panic("world: an answer of an unknown type")
}

func deref(full any) any {
	switch v := full.(type) {
	case *scenario.GroupsAnswer:
		return *v
	case *scenario.StatsAnswer:
		return *v
	case *scenario.PointAnswer:
		return *v
	default:
		return *full.(*scenario.Answer)
	}
}

// write carries out a request that changes the state, as the node's HTTP API
// would.
func (w *world) write(a *scenario.Action, l *life) error {
	n := l.node
	now := n.Now().UnixMilli()
	switch {
	case a.PutGroup != nil:
		return w.putGroup(n, &a.PutGroup.Group)
	case a.DeleteGroup != nil:
		if err := managed(n, "delete"); err != nil {
			return err
		}
		return w.change(n, &cluster.DeleteGroup{Name: a.DeleteGroup.Name})
	case a.PutSettings != nil:
		change := a.PutSettings.Change()
		if err := change.Validate(true); err != nil {
			return err
		}
		return w.change(n, &cluster.PutSettings{SettingsChange: change})
	case a.PutRule != nil:
		return w.putRule(n, &a.PutRule.Rule)
	case a.DeleteRule != nil:
		return w.change(n, &cluster.DeleteRule{ID: w.ids.rule(a.DeleteRule.Name)})
	case a.CreateIndex != nil:
		x := a.CreateIndex
		return w.change(n, &cluster.CreateIndex{
			Name: x.Name, UUID: w.ids.next("index", x.Name), Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster(), CreatedAt: now,
		})
	case a.DeleteIndex != nil:
		return w.change(n, &cluster.DeleteIndex{Name: a.DeleteIndex.Name})
	}
	panic("world: " + a.Name() + " is no write")
}

// propose has a node carry out a command.
func (w *world) propose(n *node.Node, c cluster.Command) (*rest.Result, error) {
	call := time.Now()
	result, err := n.Propose(w.ctx, c)
	w.record.proposed(n.Name(), call, c, result, err)
	return result, err
}

// change is propose for who does not look at what was made.
func (w *world) change(n *node.Node, c cluster.Command) error {
	_, err := w.propose(n, c)
	return err
}

// describe says in a few words what a request asks for.
func describe(a *scenario.Action) string {
	words := a.Name()
	switch {
	case a.PutGroup != nil:
		words += " " + a.PutGroup.Name
	case a.DeleteGroup != nil:
		words += " " + a.DeleteGroup.Name
	case a.GetStats != nil:
		words += " " + a.GetStats.Group
	case a.PutRule != nil:
		words += " " + a.PutRule.Name
	case a.DeleteRule != nil:
		words += " " + a.DeleteRule.Name
	case a.CreateIndex != nil:
		words += " " + a.CreateIndex.Name
	case a.DeleteIndex != nil:
		words += " " + a.DeleteIndex.Name
	case a.OpenPit != nil:
		words += " " + a.OpenPit.ID
	case a.ClosePit != nil:
		words += " " + a.ClosePit.Pit
	}
	return words
}

// managed refuses to change groups while the node's mode is not enabled, or
// while the node has not caught up and so does not know the mode, as the HTTP
// API does.
func managed(n *node.Node, operation string) error {
	if err := caughtUp(n); err != nil {
		return err
	}
	if n.State().Mode() == cluster.Enabled {
		return nil
	}
	return cluster.Errorf(cluster.IllegalState, "Cannot %s workload group because workload management mode is disabled or monitor_only."+
		"To enable this feature, set [%s] to 'enabled' in cluster settings.", operation, cluster.SettingMode)
}

// putGroup creates a group or updates the one of that name. Whichever it tries
// first, by what the node has published, a refusal because the other one was
// right makes it try that once.
func (w *world) putGroup(n *node.Node, g *scenario.Group) error {
	if n.State().GroupNamed(g.Name) != nil {
		err := w.update(n, g)
		if cluster.KindOf(err) != cluster.ResourceNotFound {
			return err
		}
		return w.create(n, g)
	}
	err := w.create(n, g)
	if !alreadyThere(err, g.Name) {
		return err
	}
	return w.update(n, g)
}

// alreadyThere says whether a creation was refused because of the name.
func alreadyThere(err error, name string) bool {
	refusal, ok := errors.AsType[*cluster.Error](err)
	return ok && *refusal == *cluster.Errorf(cluster.IllegalArgument, "WorkloadGroup with name %s already exists. Not creating a new one.", name)
}

func (w *world) create(n *node.Node, g *scenario.Group) error {
	if err := managedAt(w, n, "create"); err != nil {
		return err
	}
	made := g.Create()
	made.ID, made.UpdatedAt = w.ids.newGroup(g.Name), n.Now().UnixMilli()
	err := w.change(n, w.switches.DimensionKey.Create(made))
	if err != nil && !unknown(err) {
		w.ids.refused(g.Name, made.ID)
	}
	return err
}

func (w *world) update(n *node.Node, g *scenario.Group) error {
	if err := managedAt(w, n, "update"); err != nil {
		return err
	}
	change := g.Update()
	change.UpdatedAt = n.Now().UnixMilli()
	return w.change(n, w.switches.DimensionKey.Update(change))
}

// managedAt is [managed], but for the groups of the file itself, which a
// cluster may have from a time when it was managed.
func managedAt(w *world, n *node.Node, operation string) error {
	if w.zero.IsZero() {
		return nil
	}
	return managed(n, operation)
}

// unknown says whether a write may have happened although it failed.
func unknown(err error) bool {
	return cluster.KindOf(err) == cluster.OutcomeUnknown || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (w *world) putRule(n *node.Node, r *scenario.Rule) error {
	now := n.Now().UnixMilli()
	rule := r.Cluster(w.ids.group(r.WorkloadGroup))
	if id := w.ids.rule(r.Name); id != "" && n.State().Rule(id) != nil {
		return w.change(n, &cluster.UpdateRule{
			ID: id, Description: rule.Description, WorkloadGroup: rule.WorkloadGroup,
			IndexPatterns: rule.IndexPatterns, Usernames: rule.Usernames, Roles: rule.Roles, UpdatedAt: now,
		})
	}
	rule.ID, rule.UpdatedAt = w.ids.next("rule", r.Name), now
	err := w.change(n, &cluster.CreateRule{Rule: rule})
	if err == nil || unknown(err) {
		w.ids.setRule(r.Name, rule.ID)
	}
	return err
}

// getGroups reads the groups, as the leader or as the node itself has them.
func (w *world) getGroups(g *scenario.GetGroups, l *life) any {
	if err := caughtUp(l.node); err != nil {
		return &scenario.GroupsAnswer{Answer: explain(err)}
	}
	groups, err := l.node.State().Groups(), error(nil)
	if !g.Local {
		call := time.Now()
		groups, err = l.node.Groups(w.ctx)
		w.record.operation(call, check.Operation{Node: l.m.name, Groups: groups, Err: err})
	}
	answer := &scenario.GroupsAnswer{Answer: explain(err)}
	for _, group := range groups {
		answer.Groups = append(answer.Groups, group.Name)
	}
	slices.Sort(answer.Groups)
	return answer
}

func caughtUp(n *node.Node) error {
	if n.CaughtUp() {
		return nil
	}
	return cluster.Errorf(cluster.ClusterBlock, "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];")
}

// getStats reads a group's counters on the node. Those of a group that has none
// read 0.
func (w *world) getStats(g *scenario.GetStats, l *life) any {
	stats, err := statsOf(l.node, w.ids.group(g.Group))
	return &scenario.StatsAnswer{Answer: explain(err), Stats: stats}
}

// statsOf returns the counters of a group on a node, or zeros if it has none.
func statsOf(n *node.Node, id string) (scenario.Stats, error) {
	all, err := n.Throttle().Stats(nil)
	if err != nil {
		return scenario.Stats{}, err
	}
	i := slices.IndexFunc(all, func(s wlm.GroupStats) bool { return s.ID == id })
	if i < 0 {
		return scenario.Stats{}, nil
	}
	return scenario.StatsOf(&all[i]), nil
}
