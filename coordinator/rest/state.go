package rest

import (
	"slices"
	"strconv"

	"github.com/wlmsim/wlmsim/cluster"
)

// stateMetrics are the parts of the cluster's state, in OpenSearch's order.
var stateMetrics = []string{
	"version", "master_node", "cluster_manager_node", "blocks", "nodes", "metadata", "routing_table", "routing_nodes", "customs",
}

// clusterView is what _cluster/state is written from: one state and what the
// node knows of the members at that moment.
type clusterView struct {
	state   *cluster.State
	status  Status
	homes   map[string]string // the ids of the nodes that serve shards, by name
	indices []*cluster.Index  // that are asked for
}

// clusterView finds each node's place once, since shards are many.
func (c *call) clusterView() *clusterView {
	v := &clusterView{state: c.config.Cluster.State(), status: c.config.Cluster.Status(), homes: map[string]string{}}
	for i := range v.status.Members {
		if m := &v.status.Members[i]; m.Alive && v.state.Node(m.Name) != nil {
			v.homes[m.Name] = m.ID
		}
	}
	return v
}

// clusterState answers _cluster/state as this node has it, with or without
// ?local: what it shows is what the node's searches go by. As upstream, words
// that are no metric are disregarded, and names of no index, too, unless
// ?ignore_unavailable=false. What no simulated node has is left out: ephemeral
// ids, coordination, allocation ids and versions of indices.
func (c *call) clusterState() error {
	if err := c.stateParams(); err != nil {
		return err
	}
	options, err := c.indexOptions()
	if err != nil {
		return err
	}
	if !c.query.Has("ignore_unavailable") {
		options.IgnoreUnavailable = true
	}
	if err := c.ready(); err != nil {
		return err
	}
	v := c.clusterView()
	if v.indices, err = v.state.MatchIndicesBy(c.vars.get("index"), options); err != nil {
		return err
	}
	metrics := list(c.vars.get("metric"))
	wanted := func(metric string) bool {
		return metrics == nil || slices.Contains(metrics, "_all") || slices.Contains(metrics, metric)
	}
	c.out.object(func() {
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("cluster_uuid").text(noUUID)
		for _, metric := range stateMetrics {
			if wanted(metric) {
				c.out.stateMetric(metric, v)
			}
		}
	})
	return nil
}

// stateParams reads the parameters that have no effect: the answer is this
// node's, so there is nothing to wait for.
func (c *call) stateParams() error {
	for _, name := range []string{"local", "flat_settings"} {
		if _, err := c.flag(name, false); err != nil {
			return err
		}
	}
	for _, name := range []string{"cluster_manager_timeout", "master_timeout"} {
		if _, err := c.duration(name, 0); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) stateMetric(metric string, v *clusterView) {
	switch metric {
	case "version":
		e.name("version").natural(v.state.Version())
		e.name("state_uuid").text(noUUID)
	case "master_node", "cluster_manager_node":
		e.name(metric).textOrNull(v.idOf(v.status.Leader))
	case "blocks":
		e.name("blocks").object(func() { e.blocks(v) })
	case "nodes":
		e.name("nodes").object(func() { e.stateNodes(v) })
	case "metadata":
		e.name("metadata").object(func() { e.metadata(v) })
	case "routing_table":
		e.name("routing_table").object(func() {
			e.name("indices").object(func() { e.routingTable(v) })
		})
	case "routing_nodes":
		e.name("routing_nodes").object(func() { e.routingNodes(v) })
	}
}

// idOf returns the id of a node that lives, else "".
func (v *clusterView) idOf(name string) string {
	if m := memberNamed(&v.status, name); m != nil && m.Alive {
		return m.ID
	}
	return ""
}

func (e *encoder) textOrNull(s string) {
	if s == "" {
		e.null()
		return
	}
	e.text(s)
}

// blocks writes the one block that there ever is.
func (e *encoder) blocks(v *clusterView) {
	if v.status.Leader != "" {
		return
	}
	e.name("global").object(func() {
		e.name("2").object(func() {
			e.name("description").text("no cluster-manager")
			e.name("retryable").boolean(true)
			e.name("levels").texts([]string{"metadata_write"})
		})
	})
}

func (e *encoder) stateNodes(v *clusterView) {
	for i := range v.status.Members {
		m := &v.status.Members[i]
		if !m.Alive {
			continue
		}
		e.name(m.ID).object(func() {
			e.name("name").text(m.Name)
			e.name("transport_address").text(m.Address)
			e.name("attributes").object(func() { e.name("raft_address").text(m.Raft) })
		})
	}
}

// metadata writes the indices that were asked for, and every workload group by
// its id, under the name by which OpenSearch's cluster state has them.
func (e *encoder) metadata(v *clusterView) {
	e.name("cluster_uuid").text(noUUID)
	e.name("cluster_uuid_committed").boolean(true)
	e.name("templates").object(func() {})
	e.name("indices").object(func() {
		for _, x := range v.indices {
			e.name(x.Name).object(func() {
				e.name("state").text("open")
				e.name("settings").object(func() { e.indexSettings(x, false) })
				e.name("mappings").object(func() {})
				e.name("aliases").array(func() {})
			})
		}
	})
	e.name("workloadGroups").object(func() {
		for _, g := range v.state.Groups() {
			e.name(g.ID).group(g)
		}
	})
}

func (e *encoder) routingTable(v *clusterView) {
	for _, x := range v.indices {
		e.name(x.Name).object(func() {
			e.name("shards").object(func() {
				for shard, node := range x.ShardNodes {
					e.name(strconv.Itoa(shard)).array(func() { e.routedShard(x, shard, v.homes[node]) })
				}
			})
		})
	}
}

// routingNodes writes the same shards by node; those of a node that is gone
// are unassigned.
func (e *encoder) routingNodes(v *clusterView) {
	shardsOf := func(node string) {
		for _, x := range v.indices {
			for shard, name := range x.ShardNodes {
				if home := v.homes[name]; home == node {
					e.routedShard(x, shard, home)
				}
			}
		}
	}
	e.name("unassigned").array(func() { shardsOf("") })
	e.name("nodes").object(func() {
		for _, m := range v.status.Members {
			if m.Alive && slices.Contains(m.Roles, cluster.Data) {
				e.name(m.ID).array(func() { shardsOf(m.ID) })
			}
		}
	})
}

func (e *encoder) routedShard(x *cluster.Index, shard int, node string) {
	e.object(func() {
		e.name("state").text(shardState(node))
		e.name("primary").boolean(true)
		e.name("node").textOrNull(node)
		e.name("relocating_node").null()
		e.name("shard").integer(int64(shard))
		e.name("index").text(x.Name)
	})
}

func shardState(node string) string {
	if node == "" {
		return "UNASSIGNED"
	}
	return "STARTED"
}
