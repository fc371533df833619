package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/wlm"
)

// Status implements [rest.Cluster]: what the node knows of the cluster.
func (n *Node) Status() rest.Status {
	leader, _, _ := n.replica.Leader()
	s := rest.Status{
		Node: n.config.Name, ID: n.config.ID, Version: n.State().Version(), RulesVersion: n.coordinator.RulesVersion(),
		Leader: leader, Ready: n.ready.Load(),
		PendingTasks: int(n.pending.Load()),
	}
	n.heard.set(n.config.Name, n.applier.Applied())
	for _, m := range n.gossip.Members() {
		s.Members = append(s.Members, rest.Member{
			Name: m.Name, ID: m.ID, Address: m.Address, HTTP: m.HTTP, Raft: m.Raft, Roles: rolesOf(m.Roles),
			AppliedVersion: n.heard.get(m.Name), Alive: m.Alive,
		})
	}
	return s
}

// NodeStats implements [rest.Cluster]: it asks nodes for their counters, all
// at once. Nodes that cannot answer are failures, in order of their names.
func (n *Node) NodeStats(ctx context.Context, nodes, groups []string) ([]rest.NodeStats, []rest.NodeFailure) {
	asked, failures := askNodes(n, nodes, func(name string) ([]wlm.GroupStats, error) { return n.statsOf(ctx, name, groups) })
	var stats []rest.NodeStats
	for _, a := range asked {
		stats = append(stats, rest.NodeStats{Node: a.node.Name, ID: a.node.ID, Groups: a.answer})
	}
	return stats, failures
}

// answered is what one node said.
type answered[A any] struct {
	node   gossip.Member
	answer A
}

// askNodes asks the nodes of these names or ids, or all live ones if there are
// none, all at once, and waits for them. Answers and failures are in order of
// the nodes' names.
func askNodes[A any](n *Node, nodes []string, ask func(name string) (A, error)) ([]answered[A], []rest.NodeFailure) {
	var targets []gossip.Member
	for _, m := range n.gossip.Members() {
		if len(nodes) == 0 && m.Alive || slices.Contains(nodes, m.Name) || slices.Contains(nodes, m.ID) {
			targets = append(targets, m)
		}
	}
	answers := make([]A, len(targets))
	errs := make([]error, len(targets))
	var asked sync.WaitGroup
	for i, m := range targets {
		asked.Go(func() { answers[i], errs[i] = ask(m.Name) })
	}
	asked.Wait()
	var all []answered[A]
	var failures []rest.NodeFailure
	for i, m := range targets {
		if errs[i] != nil {
			failures = append(failures, rest.NodeFailure{Node: m.Name, ID: m.ID, Err: refusalOf(errs[i])})
			continue
		}
		all = append(all, answered[A]{m, answers[i]})
	}
	return all, failures
}

func (n *Node) statsOf(ctx context.Context, name string, groups []string) ([]wlm.GroupStats, error) {
	if name == n.config.Name {
		return n.throttle.Stats(groups)
	}
	body, err := json.Marshal(statsRequest{groups})
	if err != nil {
		return nil, err
	}
	answer, err := n.gossip.Request(ctx, name, append([]byte{byte(kindStats)}, body...))
	if err != nil {
		return nil, cluster.Errorf(cluster.IllegalState, "node [%s] did not answer: %v", name, err)
	}
	a, err := openJSON[statsAnswer](answer)
	return a.Groups, err
}

// pool says how busy the data node's workers are.
func (n *Node) pool() rest.Pool {
	s, c := n.data.Stats(), n.config.DataNode
	return rest.Pool{
		Workers: cmp.Or(c.Workers, datanode.DefaultWorkers), Queue: cmp.Or(c.Queue, datanode.DefaultQueue),
		Active: s.Active, Queued: s.Queued, Rejected: s.Rejected, Completed: s.Completed,
	}
}
