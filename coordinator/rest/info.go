package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// What a node says that it was built from. Clients expect to be told.
const (
	buildType = "wlmsim"
	buildHash = "unknown"
	noUUID    = "_na_" // of the cluster and of its states, which have none
)

// info answers /.
func (c *call) info() error {
	c.out.object(func() {
		c.out.name("name").text(c.config.Cluster.Status().Node)
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("cluster_uuid").text(noUUID)
		c.out.name("version").object(func() {
			c.out.name("distribution").text("opensearch")
			c.out.name("number").text(c.config.Version)
			c.out.name("build_type").text(buildType)
			c.out.name("build_hash").text(buildHash)
			c.out.name("build_date").text(instant(0))
			c.out.name("build_snapshot").boolean(false)
			c.out.name("lucene_version").text("0.0.0")
			c.out.name("minimum_wire_compatibility_version").text("2.19.0")
			c.out.name("minimum_index_compatibility_version").text("2.0.0")
		})
		c.out.name("tagline").text("wlmsim: simulated search nodes that throttle like OpenSearch")
	})
	return nil
}

// shardCount counts shards by whether their node lives.
type shardCount struct {
	active, unassigned int
}

func (n shardCount) percent() float64 {
	if n.active+n.unassigned == 0 {
		return 100
	}
	return 100 * float64(n.active) / float64(n.active+n.unassigned)
}

func countShards(state *cluster.State, status *Status, indices ...*cluster.Index) (n shardCount) {
	for _, x := range indices {
		for _, node := range x.ShardNodes {
			if m := memberNamed(status, node); m != nil && m.Alive && state.Node(node) != nil {
				n.active++
			} else {
				n.unassigned++
			}
		}
	}
	return n
}

func memberNamed(status *Status, name string) *Member {
	i := slices.IndexFunc(status.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &status.Members[i]
}

// snapshot is the cluster's health at one moment, as this node sees it.
type snapshot struct {
	status    Status
	shards    shardCount
	color     string
	alive     int
	aliveData int
}

// look takes a snapshot. A shard has one copy, so that a lost one makes the
// cluster red and nothing makes it yellow; so do an unknown leader and a node,
// the one that is asked, that has not caught up.
func (c *call) look() *snapshot {
	s, state := &snapshot{status: c.config.Cluster.Status(), color: "green"}, c.config.Cluster.State()
	s.shards = countShards(state, &s.status, state.Indices()...)
	for _, m := range s.status.Members {
		if m.Alive {
			s.alive++
			if slices.Contains(m.Roles, cluster.Data) {
				s.aliveData++
			}
		}
	}
	if s.shards.unassigned > 0 || s.status.Leader == "" || !s.status.Ready {
		s.color = "red"
	}
	return s
}

// healthPoll is how often a health request that waits looks again.
const healthPoll = 20 * time.Millisecond

// health answers _cluster/health from this node's view, with or without
// ?local, waiting for a status or a number of nodes if it is told to.
func (c *call) health() error {
	if _, err := c.flag("local", true); err != nil {
		return err
	}
	wanted, err := c.healthWanted()
	if err != nil {
		return err
	}
	timeout, err := c.duration("timeout", 30*time.Second)
	if err != nil {
		return err
	}
	s := c.look()
	ticker := time.NewTicker(healthPoll)
	defer ticker.Stop()
	for end := time.Now().Add(timeout); !wanted(s) && time.Now().Before(end); s = c.look() {
		select {
		case <-ticker.C:
		case <-c.r.Context().Done():
			return c.r.Context().Err()
		}
	}
	timedOut := !wanted(s)
	if timedOut {
		c.status = http.StatusRequestTimeout
	}
	human, err := c.flag("human", false)
	if err != nil {
		return err
	}
	c.out.health(c.config.ClusterName, s, timedOut, human)
	return nil
}

// healthWanted reads wait_for_status and wait_for_nodes.
func (c *call) healthWanted() (func(*snapshot) bool, error) {
	status := c.query.Get("wait_for_status")
	if !slices.Contains([]string{"", "green", "yellow", "red"}, status) {
		return nil, cluster.Errorf(cluster.IllegalArgument, "unknown cluster health status [%s]", shorten(status))
	}
	text := c.query.Get("wait_for_nodes")
	digits := strings.TrimLeft(text, "<>=")
	compare := text[:len(text)-len(digits)]
	n, ok := plainInteger(digits)
	if text != "" && (!ok || !slices.Contains([]string{"", ">=", "<=", ">", "<"}, compare)) {
		return nil, cluster.Errorf(cluster.IllegalArgument, "wait_for_nodes must be N, >=N, <=N, >N or <N but was [%s]", shorten(text))
	}
	return func(s *snapshot) bool {
		good := status == "" || status == "red" || s.color == "green"
		alive := int64(s.alive)
		switch {
		case text == "":
			return good
		case compare == ">=":
			return good && alive >= n
		case compare == "<=":
			return good && alive <= n
		case compare == ">":
			return good && alive > n
		case compare == "<":
			return good && alive < n
		}
		return good && alive == n
	}, nil
}

// health writes a snapshot, with human also as people read figures.
func (e *encoder) health(clusterName string, s *snapshot, timedOut, human bool) {
	e.object(func() {
		e.name("cluster_name").text(clusterName)
		e.name("status").text(s.color)
		e.name("timed_out").boolean(timedOut)
		e.name("number_of_nodes").integer(int64(s.alive))
		e.name("number_of_data_nodes").integer(int64(s.aliveData))
		e.name("discovered_master").boolean(s.status.Leader != "")
		e.name("discovered_cluster_manager").boolean(s.status.Leader != "")
		e.name("active_primary_shards").integer(int64(s.shards.active))
		e.name("active_shards").integer(int64(s.shards.active))
		e.name("relocating_shards").integer(0)
		e.name("initializing_shards").integer(0)
		e.name("unassigned_shards").integer(int64(s.shards.unassigned))
		e.name("delayed_unassigned_shards").integer(0)
		e.name("number_of_pending_tasks").integer(int64(s.status.PendingTasks))
		e.name("number_of_in_flight_fetch").integer(0)
		if human {
			e.name("task_max_waiting_in_queue").text("0s")
		}
		e.name("task_max_waiting_in_queue_millis").integer(0)
		if human {
			e.name("active_shards_percent").text(s.shards.percentText())
		}
		e.name("active_shards_percent_as_number").double(s.shards.percent())
	})
}
