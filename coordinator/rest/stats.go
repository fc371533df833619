package rest

import (
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// groupStats answers _wlm/stats in its four forms. The parameters of a page
// are checked and have no effect, as upstream.
func (c *call) groupStats() error {
	if _, err := c.page(); err != nil {
		return err
	}
	answers, failures := c.askStats()
	c.out.object(func() {
		c.out.nodesHead(len(answers), failures)
		c.out.name("cluster_name").text(c.config.ClusterName)
		for _, n := range answers {
			c.out.name(n.ID).object(func() { c.groupsOf(&n) })
		}
	})
	return nil
}

// groupsOf writes a node's groups, with the alias under their old name, too.
func (c *call) groupsOf(n *NodeStats) {
	c.out.name("workload_groups").object(func() {
		for i := range n.Groups {
			c.out.name(n.Groups[i].ID).counters(&n.Groups[i])
		}
	})
	if !c.config.QueryGroupAlias {
		return
	}
	c.out.name("query_groups").object(func() {
		for i := range n.Groups {
			c.out.name(oldGroupID(n.Groups[i].ID)).counters(&n.Groups[i])
		}
	})
}

// askStats asks the nodes that a path names for the groups that it names. Node
// ids may be names; _all, _local and _cluster_manager are understood. A node
// that is unknown is left out, as upstream.
func (c *call) askStats() (answers []NodeStats, failures []NodeFailure) {
	nodes, named := c.pickNodes(list(c.vars.get("node")))
	if named && len(nodes) == 0 {
		return nil, nil
	}
	groups := list(c.vars.get("group"))
	if slices.Contains(groups, "_all") {
		groups = nil
	}
	if c.config.QueryGroupAlias {
		groups = newGroupIDs(groups)
	}
	answers, failures = c.config.Cluster.NodeStats(c.r.Context(), nodes, groups)
	if c.query.Has("breach") {
		answers, failures = breachless(answers, failures)
	}
	return answers, failures
}

// breachless does what upstream's parameter breach does, whatever its value:
// it asks for groups that break no resource limit, which are all of them here,
// and fails where the default group is among them, which has no limits.
func breachless(answers []NodeStats, failures []NodeFailure) ([]NodeStats, []NodeFailure) {
	kept := answers[:0]
	for _, n := range answers {
		if slices.ContainsFunc(n.Groups, func(g wlm.GroupStats) bool { return g.ID == cluster.DefaultGroupID }) {
			failures = append(failures, NodeFailure{
				Node: n.Node, ID: n.ID, Err: cluster.Errorf(cluster.ResourceNotFound, "WorkloadGroup with id %s does not exist", cluster.DefaultGroupID),
			})
			continue
		}
		kept = append(kept, n)
	}
	slices.SortStableFunc(failures, func(a, b NodeFailure) int { return strings.Compare(a.Node, b.Node) })
	return kept, failures
}

// pickNodes turns what a path calls nodes into names; named is false where
// that means all of them.
func (c *call) pickNodes(asked []string) (names []string, named bool) {
	if len(asked) == 0 || slices.Contains(asked, "_all") {
		return nil, false
	}
	status := c.config.Cluster.Status()
	for _, m := range status.Members {
		for _, want := range asked {
			if want == m.Name || want == m.ID || (want == "_local" && m.Name == status.Node) ||
				(want == "_cluster_manager" && m.Name == status.Leader) {
				names = append(names, m.Name)
				break
			}
		}
	}
	return names, true
}

// nodesHead writes how many nodes answered, and why others did not.
func (e *encoder) nodesHead(successful int, failures []NodeFailure) {
	e.name("_nodes").object(func() {
		e.name("total").integer(int64(successful + len(failures)))
		e.name("successful").integer(int64(successful))
		e.name("failed").integer(int64(len(failures)))
		if len(failures) == 0 {
			return
		}
		e.name("failures").array(func() {
			for _, f := range failures {
				e.object(func() { e.failedNode(f) })
			}
		})
	})
}

func (e *encoder) failedNode(f NodeFailure) {
	e.name("type").text("failed_node_exception")
	e.name("reason").text("Failed node [" + f.ID + "]")
	e.name("node_id").text(f.ID)
	e.name("caused_by").object(func() { e.cause(f.Err) })
}

// counters writes a group's counters as OpenSearch does. Simulated nodes use no
// resource that could be measured.
func (e *encoder) counters(g *wlm.GroupStats) {
	e.object(func() {
		e.name("total_completions").natural(g.Completions)
		e.name("total_rejections").natural(g.Rejections)
		e.name("total_cancellations").natural(g.Cancellations)
		e.name("total_throttled").natural(g.Throttled)
		if g.WouldThrottle != nil {
			e.name("total_would_throttle").natural(*g.WouldThrottle)
		}
		for _, resource := range []string{"cpu", "memory"} {
			e.name(resource).object(func() {
				e.name("current_usage").double(0)
				e.name("cancellations").integer(0)
				e.name("rejections").integer(0)
			})
		}
	})
}

// state answers /_wlmsim/state: counts, never names of users.
func (c *call) state() error {
	c.config.Cluster.Refresh(c.r.Context())
	status := c.config.Cluster.Status()
	c.out.object(func() {
		c.out.name("node").text(status.Node)
		c.out.name("version").natural(status.Version)
		if status.Leader == "" {
			c.out.name("leader").null()
		} else {
			c.out.name("leader").text(status.Leader)
		}
		c.out.name("members").array(func() {
			for i := range status.Members {
				c.out.member(&status.Members[i])
			}
		})
		c.out.name("rules_version").natural(status.RulesVersion)
		c.out.name("permits").object(func() { c.out.permits(c.config.Permits()) })
		c.out.name("outcomes").object(func() { c.outcomes() })
	})
	return nil
}

func (e *encoder) member(m *Member) {
	e.object(func() {
		e.name("name").text(m.Name)
		e.name("address").text(m.Address)
		e.name("roles").texts(roleNames(m.Roles))
		e.name("applied_version").natural(m.AppliedVersion)
		e.name("alive").boolean(m.Alive)
	})
}

func (e *encoder) permits(groups []wlm.GroupPermits) {
	for _, p := range groups {
		e.name(p.Group).object(func() {
			e.name("buckets").integer(int64(p.Buckets))
			e.name("held").integer(int64(p.Held))
		})
	}
}

func (c *call) outcomes() {
	for _, o := range c.config.Outcomes() {
		c.out.name(o.Group).object(func() {
			c.out.name("completed").natural(o.Completed)
			c.out.name("failed").natural(o.Failed)
			c.out.name("throttled").natural(o.Throttled)
			c.out.name("cancelled").natural(o.Cancelled)
			c.out.name("uncounted").natural(o.Uncounted)
		})
	}
}
