package rest

import (
	"net"
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
)

// Pool is a node's pool of workers that search its shards.
type Pool struct {
	Workers, Queue      int // bounds
	Active, Queued      int // at the moment
	Rejected, Completed uint64
}

// processors is how many a node would have whose search pool, by OpenSearch's
// rule of 3/2 of them and one, has as many workers.
func (p *Pool) processors() int { return max(1, (p.Workers-1)*2/3) }

// infoMetrics are the parts of a node that _nodes can be asked for, and
// statMetrics those that its statistics have. Simulated nodes have something
// to say on few of them.
var (
	infoMetrics = []string{
		"settings", "os", "process", "jvm", "thread_pool", "transport", "http", "plugins", "ingest", "aggregations", "indices", "search_pipelines",
	}
	statMetrics = []string{
		"_all", "adaptive_selection", "admission_control", "breaker", "cluster_manager_throttling", "discovery", "file_cache", "fs", "http",
		"indexing_pressure", "indices", "ingest", "jvm", "os", "process", "repositories", "resource_usage_stats", "script", "script_cache",
		"search_backpressure", "search_pipeline", "segment_replication_backpressure", "shard_indexing_pressure", "task_cancellation",
		"thread_pool", "transport", "weighted_routing",
	}
)

// nodes answers _nodes with the live nodes. A path with one part more names
// nodes, or metrics if all of its words are such; unknown metrics are
// disregarded, as upstream.
func (c *call) nodes() error {
	if _, err := c.flag("flat_settings", false); err != nil {
		return err
	}
	if _, err := c.duration("timeout", 0); err != nil {
		return err
	}
	asked, metrics := list(c.vars.get("node")), list(c.vars.get("metric"))
	if metrics == nil && allIn(asked, infoMetrics) {
		asked, metrics = nil, asked
	}
	if slices.Contains(metrics, "_all") {
		metrics = nil
	}
	live := c.liveNodes(asked)
	c.out.object(func() {
		c.out.nodesHead(len(live), nil)
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("nodes").object(func() {
			for i := range live {
				c.out.name(live[i].ID).object(func() { c.nodeInfo(&live[i], metrics) })
			}
		})
	})
	return nil
}

func allIn(words, known []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) })
}

// liveNodes returns the live nodes that a path names, all for none.
func (c *call) liveNodes(asked []string) []Member {
	names, named := c.pickNodes(asked)
	return slices.DeleteFunc(slices.Clone(c.config.Cluster.Status().Members), func(m Member) bool {
		return !m.Alive || named && !slices.Contains(names, m.Name)
	})
}

// nodeInfo writes what a client's sniffer asks for. The operating system and
// the pool are those of the node that is asked, which knows no other's.
func (c *call) nodeInfo(m *Member, metrics []string) {
	e := &c.out
	e.nodeHead(m)
	e.name("version").text(c.config.Version)
	e.name("build_type").text(buildType)
	e.name("build_hash").text(buildHash)
	e.nodeTail(m)
	wanted := func(metric string) bool { return metrics == nil || slices.Contains(metrics, metric) }
	pool := c.poolOf(m)
	if wanted("os") && pool != nil {
		e.name("os").object(func() {
			e.name("refresh_interval_in_millis").integer(1000)
			e.name("name").text("wlmsim")
			e.name("available_processors").integer(int64(pool.processors()))
			e.name("allocated_processors").integer(int64(pool.processors()))
		})
	}
	if wanted("thread_pool") && pool != nil {
		e.name("thread_pool").object(func() {
			e.name("search").object(func() {
				e.name("type").text("resizable")
				e.name("size").integer(int64(pool.Workers))
				e.name("queue_size").integer(int64(pool.Queue))
			})
		})
	}
	if wanted("http") {
		e.name("http").object(func() {
			e.name("bound_address").texts([]string{m.HTTP})
			e.name("publish_address").text(m.HTTP)
			e.name("max_content_length_in_bytes").integer(MaxBody)
		})
	}
}

func (e *encoder) nodeHead(m *Member) {
	e.name("name").text(m.Name)
	e.name("transport_address").text(m.Address)
	e.name("host").text(host(m.HTTP))
	e.name("ip").text(host(m.HTTP))
}

func (e *encoder) nodeTail(m *Member) {
	e.name("roles").texts(roleNames(m.Roles))
	e.name("attributes").object(func() { e.name("raft_address").text(m.Raft) })
}

// poolOf returns the pool of the node that is asked, nil for another.
func (c *call) poolOf(m *Member) *Pool {
	if c.config.Pool == nil || m.Name != c.config.Cluster.Status().Node {
		return nil
	}
	pool := c.config.Pool()
	return &pool
}

// nodeStats answers _nodes/stats: how busy the pool is of the node that is
// asked.
func (c *call) nodeStats() error {
	if _, err := c.duration("timeout", 0); err != nil {
		return err
	}
	metrics := list(c.vars.get("metric"))
	unknown := slices.DeleteFunc(slices.Clone(metrics), func(m string) bool { return slices.Contains(statMetrics, m) })
	if len(unknown) > 0 {
		return unrecognized(c.r.URL.Path, "metric", unknown, statMetrics)
	}
	wanted := metrics == nil || slices.Contains(metrics, "_all") || slices.Contains(metrics, "thread_pool")
	live := c.liveNodes(list(c.vars.get("node")))
	c.out.object(func() {
		c.out.nodesHead(len(live), nil)
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("nodes").object(func() {
			for i := range live {
				c.out.name(live[i].ID).object(func() { c.nodeStat(&live[i], wanted) })
			}
		})
	})
	return nil
}

func (c *call) nodeStat(m *Member, pools bool) {
	c.out.name("timestamp").integer(c.config.Cluster.Now().UnixMilli())
	c.out.nodeHead(m)
	c.out.nodeTail(m)
	pool := c.poolOf(m)
	if !pools || pool == nil {
		return
	}
	c.out.name("thread_pool").object(func() {
		c.out.name("search").object(func() {
			c.out.name("threads").integer(int64(pool.Workers))
			c.out.name("queue").integer(int64(pool.Queued))
			c.out.name("active").integer(int64(pool.Active))
			c.out.name("rejected").natural(pool.Rejected)
			c.out.name("largest").integer(int64(pool.Workers))
			c.out.name("completed").natural(pool.Completed)
		})
	})
}

// host returns the host of host:port, or all of a text that is none.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

func roleNames(roles []cluster.Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}
