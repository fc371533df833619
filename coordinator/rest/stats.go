package rest

import (
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// groupStats answers _wlm/stats in its four forms. Node ids may be names;
// _all, _local and _cluster_manager are understood. A node that is unknown is
// left out, as upstream.
func (c *call) groupStats() error {
	nodes, named := c.pickNodes(list(c.vars.get("node")))
	var answers []NodeStats
	var failures []NodeFailure
	if len(nodes) > 0 || !named {
		answers, failures = c.config.Cluster.NodeStats(c.r.Context(), nodes, list(c.vars.get("group")))
	}
	c.out.object(func() {
		c.out.nodesHead(len(answers), failures)
		c.out.name("cluster_name").text(c.config.ClusterName)
		for _, n := range answers {
			c.out.name(n.ID).object(func() {
				c.out.name("workload_groups").object(func() {
					for i := range n.Groups {
						c.out.name(n.Groups[i].ID).counters(&n.Groups[i])
					}
				})
			})
		}
	})
	return nil
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

func roleNames(roles []cluster.Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}
