package node

import (
	"context"
	"encoding/json"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

type tasksAnswer struct {
	Tasks []task.Info `json:"tasks"`
}

// Tasks implements [rest.Cluster]: it asks nodes for their tasks, all at once.
// Nodes that cannot answer are failures, in order of their names.
func (n *Node) Tasks(ctx context.Context, nodes []string, q rest.TaskQuery) ([]rest.NodeTasks, []rest.NodeFailure) {
	asked, failures := askNodes(n, nodes, func(name string) ([]task.Info, error) { return n.tasksOf(ctx, name, q) })
	var tasks []rest.NodeTasks
	for _, a := range asked {
		tasks = append(tasks, rest.NodeTasks{Node: a.node.Name, ID: a.node.ID, Tasks: a.answer})
	}
	return tasks, failures
}

func (n *Node) tasksOf(ctx context.Context, name string, q rest.TaskQuery) ([]task.Info, error) {
	if name == n.config.Name {
		return n.answerTasks(ctx, q)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	answer, err := n.gossip.Request(ctx, name, append([]byte{byte(kindTasks)}, body...))
	if err != nil {
		return nil, cluster.Errorf(cluster.IllegalState, "node [%s] did not answer: %v", name, err)
	}
	a, err := openJSON[tasksAnswer](answer)
	return a.Tasks, err
}

// answerTasks lists or cancels tasks of this node.
func (n *Node) answerTasks(ctx context.Context, q rest.TaskQuery) ([]task.Info, error) {
	if err := q.Check(); err != nil {
		return nil, cluster.Errorf(cluster.IllegalArgument, "%v", err)
	}
	if !q.Cancel {
		return n.tasks.List(q.Filter), nil
	}
	return n.tasks.Cancel(ctx, q.Filter, q.Reason, q.Wait), nil
}

func (n *Node) handleTasks(ctx context.Context, body []byte) ([]byte, error) {
	var q rest.TaskQuery
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, cluster.Errorf(cluster.Parsing, "decode tasks request: %v", err)
	}
	tasks, err := n.answerTasks(ctx, q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tasksAnswer{tasks})
}
