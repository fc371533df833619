package rest

import (
	"context"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
)

// cancelReason is why a task ends that a client cancels, as upstream's.
const cancelReason = "by user request"

// taskQuery reads the parameters that choose tasks; found is false if no node
// is meant.
func (c *call) taskQuery() (q TaskQuery, nodes []string, found bool, err error) {
	q.Actions = list(c.query.Get("actions"))
	if err := q.Check(); err != nil {
		return q, nil, false, cluster.Errorf(cluster.IllegalArgument, "%v", err)
	}
	if c.query.Has("parent_task_id") {
		if q.Parent, err = task.ParseID(c.query.Get("parent_task_id")); err != nil {
			return q, nil, false, err
		}
	}
	nodes, named := c.pickNodes(list(c.query.Get("nodes")))
	return q, nodes, !named || len(nodes) > 0, nil
}

// taskPatience bounds a request about tasks unless it gives a timeout, as
// upstream.
const taskPatience = 30 * time.Second

// askTasks asks nodes, no longer than the request's timeout.
func (c *call) askTasks(nodes []string, q TaskQuery) ([]NodeTasks, []NodeFailure, error) {
	limit, err := c.duration("timeout", taskPatience)
	if err != nil {
		return nil, nil, err
	}
	ctx := c.r.Context()
	if limit >= 0 {
		bounded, stop := context.WithTimeout(ctx, limit)
		defer stop()
		ctx = bounded
	}
	answers, failures := c.config.Cluster.Tasks(ctx, nodes, q)
	return answers, failures, nil
}

// listTasks answers _tasks.
func (c *call) listTasks() error {
	detailed, err := c.flag("detailed", false)
	if err != nil {
		return err
	}
	q, nodes, found, err := c.taskQuery()
	if err != nil {
		return err
	}
	return c.answerTasks(q, nodes, found, detailed)
}

// cancelTasks cancels the tasks that parameters choose.
func (c *call) cancelTasks() error {
	q, nodes, found, err := c.taskQuery()
	if err != nil {
		return err
	}
	if len(q.Actions) == 0 && len(nodes) == 0 && q.Parent.IsZero() {
		return invalid("task(s) to cancel are not specified: use actions, nodes or parent_task_id")
	}
	q.Cancel, q.Reason = true, cancelReason
	if q.Wait, err = c.flag("wait_for_completion", false); err != nil {
		return err
	}
	return c.answerTasks(q, nodes, found, true)
}

// cancelTask cancels one task, wherever it runs.
func (c *call) cancelTask() error {
	wait, err := c.flag("wait_for_completion", false)
	if err != nil {
		return err
	}
	id, node, err := c.taskNode()
	if err != nil {
		return err
	}
	q := TaskQuery{Filter: task.Filter{Number: id.Number}, Cancel: true, Reason: cancelReason, Wait: wait}
	answers, failures, err := c.askTasks([]string{node}, q)
	if err != nil {
		return err
	}
	if len(failures) == 0 && countTasks(answers) == 0 {
		failures = []NodeFailure{{Node: node, ID: id.Node, Err: cluster.Errorf(cluster.ResourceNotFound, "task [%s] is not found", id)}}
		answers = nil
	}
	return c.writeTasks(answers, failures, "nodes", true)
}

func countTasks(answers []NodeTasks) (n int) {
	for _, a := range answers {
		n += len(a.Tasks)
	}
	return n
}

// taskNode reads the id in the path and finds its node's name.
func (c *call) taskNode() (id task.ID, node string, err error) {
	if id, err = task.ParseID(c.vars.get("task")); err != nil {
		return id, "", err
	}
	for _, m := range c.config.Cluster.Status().Members {
		if m.ID == id.Node {
			return id, m.Name, nil
		}
	}
	return id, "", cluster.Errorf(cluster.ResourceNotFound,
		"task [%s] belongs to the node [%s] which isn't part of the cluster and there is no record of the task", id, shorten(id.Node))
}

// getTask answers _tasks/{task}, waiting for its end if it is told to. Results
// of tasks are not stored, so one that has ended is not found.
func (c *call) getTask() error {
	wait, err := c.flag("wait_for_completion", false)
	if err != nil {
		return err
	}
	limit, err := c.duration("timeout", taskPatience)
	if err != nil {
		return err
	}
	id, node, err := c.taskNode()
	if err != nil {
		return err
	}
	q := TaskQuery{Filter: task.Filter{Number: id.Number}}
	for until := time.Now().Add(limit); ; {
		answers, failures := c.config.Cluster.Tasks(c.r.Context(), []string{node}, q)
		switch {
		case len(failures) > 0:
			return failures[0].Err
		case countTasks(answers) == 0:
			return cluster.Errorf(cluster.ResourceNotFound, "task [%s] isn't running and hasn't stored its results", id)
		case wait && time.Now().Before(until):
			if !c.pause(healthPoll) {
				return c.r.Context().Err()
			}
			continue
		}
		c.out.object(func() {
			c.out.name("completed").boolean(false)
			c.out.name("task").task(&answers[0].Tasks[0], true)
		})
		return nil
	}
}

// pause waits, and says whether the client is still there.
func (c *call) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.r.Context().Done():
		return false
	}
}

func (c *call) answerTasks(q TaskQuery, nodes []string, found, detailed bool) error {
	by := c.query.Get("group_by")
	switch by {
	case "":
		by = "nodes"
	case "nodes", "parents", "none":
	default:
		return cluster.Errorf(cluster.IllegalArgument, "[group_by] must be one of [nodes], [parents] or [none] but was [%s]", shorten(by))
	}
	var answers []NodeTasks
	var failures []NodeFailure
	if found {
		var err error
		if answers, failures, err = c.askTasks(nodes, q); err != nil {
			return err
		}
	}
	return c.writeTasks(answers, failures, by, detailed)
}

// writeTasks writes tasks by their nodes, below their parents, or one after the
// other.
func (c *call) writeTasks(answers []NodeTasks, failures []NodeFailure, by string, detailed bool) error {
	c.out.object(func() {
		if len(failures) > 0 {
			c.out.name("node_failures").array(func() {
				for _, f := range failures {
					c.out.object(func() { c.out.failedNode(f) })
				}
			})
		}
		switch by {
		case "nodes":
			c.out.name("nodes").object(func() { c.tasksByNode(answers, detailed) })
		case "parents":
			c.out.name("tasks").object(func() { c.out.tasksByParent(answers, detailed) })
		default:
			c.out.name("tasks").array(func() {
				for _, a := range answers {
					for i := range a.Tasks {
						c.out.task(&a.Tasks[i], detailed)
					}
				}
			})
		}
	})
	return nil
}

func (c *call) tasksByNode(answers []NodeTasks, detailed bool) {
	status := c.config.Cluster.Status()
	for _, a := range answers {
		if len(a.Tasks) == 0 {
			continue
		}
		c.out.name(a.ID).object(func() {
			c.out.name("name").text(a.Node)
			if m := memberNamed(&status, a.Node); m != nil {
				host, _, _ := strings.Cut(m.Address, ":")
				c.out.name("transport_address").text(m.Address)
				c.out.name("host").text(host)
				c.out.name("ip").text(m.Address)
				c.out.name("roles").array(func() {
					for _, r := range m.Roles {
						c.out.text(string(r))
					}
				})
			}
			c.out.name("tasks").object(func() {
				for i := range a.Tasks {
					c.out.name(a.Tasks[i].ID.String()).task(&a.Tasks[i], detailed)
				}
			})
		})
	}
}

// tasksByParent writes each task below its parent; one whose parent is not in
// the list stands on top.
func (e *encoder) tasksByParent(answers []NodeTasks, detailed bool) {
	known, children := map[task.ID]bool{}, map[task.ID][]*task.Info{}
	var all []*task.Info
	for _, a := range answers {
		for i := range a.Tasks {
			t := &a.Tasks[i]
			all, known[t.ID] = append(all, t), true
		}
	}
	for _, t := range all {
		if known[t.Parent] {
			children[t.Parent] = append(children[t.Parent], t)
		}
	}
	for _, t := range all {
		if !known[t.Parent] {
			e.name(t.ID.String()).family(t, children, detailed)
		}
	}
}

func (e *encoder) family(t *task.Info, children map[task.ID][]*task.Info, detailed bool) {
	e.object(func() {
		e.taskMembers(t, detailed)
		if below := children[t.ID]; len(below) > 0 {
			e.name("children").array(func() {
				for _, child := range below {
					e.family(child, children, detailed)
				}
			})
		}
	})
}

func (e *encoder) task(t *task.Info, detailed bool) {
	e.object(func() { e.taskMembers(t, detailed) })
}

func (e *encoder) taskMembers(t *task.Info, detailed bool) {
	e.name("node").text(t.ID.Node)
	e.name("id").natural(t.ID.Number)
	e.name("type").text("transport")
	e.name("action").text(t.Action)
	if detailed {
		e.name("description").text(t.Description)
	}
	e.name("start_time_in_millis").integer(t.Started)
	e.name("running_time_in_nanos").integer(t.Running.Nanoseconds())
	e.name("cancellable").boolean(true)
	e.name("cancelled").boolean(t.Cancelled)
	if !t.Parent.IsZero() {
		e.name("parent_task_id").text(t.Parent.String())
	}
	e.name("headers").object(func() {
		if t.OpaqueID != "" {
			e.name("X-Opaque-Id").text(t.OpaqueID)
		}
	})
}
