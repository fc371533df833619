package rest

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// info answers /.
func (c *call) info() error {
	c.out.object(func() {
		c.out.name("name").text(c.config.Cluster.Status().Node)
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("cluster_uuid").text("_na_")
		c.out.name("version").object(func() {
			c.out.name("distribution").text("opensearch")
			c.out.name("number").text(c.config.Version)
			c.out.name("build_type").text("wlmsim")
			c.out.name("build_snapshot").boolean(false)
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

func countShards(state *cluster.State, status *Status) (n shardCount) {
	for _, x := range state.Indices() {
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
	s := &snapshot{status: c.config.Cluster.Status(), color: "green"}
	s.shards = countShards(c.config.Cluster.State(), &s.status)
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
	c.out.health(c.config.ClusterName, s, timedOut)
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

func (e *encoder) health(clusterName string, s *snapshot, timedOut bool) {
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
		e.name("task_max_waiting_in_queue_millis").integer(0)
		e.name("active_shards_percent_as_number").double(s.shards.percent())
	})
}

// nodes answers _nodes with the live nodes, with what a client's sniffer asks
// for.
func (c *call) nodes() error {
	status := c.config.Cluster.Status()
	live := slices.DeleteFunc(slices.Clone(status.Members), func(m Member) bool { return !m.Alive })
	c.out.object(func() {
		c.out.nodesHead(len(live), nil)
		c.out.name("cluster_name").text(c.config.ClusterName)
		c.out.name("nodes").object(func() {
			for i := range live {
				c.out.name(live[i].ID).object(func() { c.out.node(&live[i], c.config.Version) })
			}
		})
	})
	return nil
}

func (e *encoder) node(m *Member, version string) {
	e.name("name").text(m.Name)
	e.name("transport_address").text(m.Address)
	e.name("host").text(host(m.HTTP))
	e.name("ip").text(host(m.HTTP))
	e.name("version").text(version)
	e.name("roles").texts(roleNames(m.Roles))
	e.name("attributes").object(func() { e.name("raft_address").text(m.Raft) })
	e.name("http").object(func() {
		e.name("bound_address").texts([]string{m.HTTP})
		e.name("publish_address").text(m.HTTP)
	})
}

// host returns the host of host:port, or all of a text that is none.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// catParams are the parameters of all _cat routes: v prints the names of the
// columns, h chooses columns, format is text or json.
var catParams = []string{"v", "h", "format"}

// catTable is an answer of _cat. Columns after shown appear only if asked for.
type catTable struct {
	columns []string
	shown   int
	rows    [][]string
}

func (c *call) catNodes() error {
	t := &catTable{columns: []string{"ip", "node.role", "node.roles", "cluster_manager", "name", "id", "http_address", "applied_version"}, shown: 5}
	c.config.Cluster.Refresh(c.r.Context())
	status := c.config.Cluster.Status()
	for _, m := range status.Members {
		if !m.Alive {
			continue
		}
		leader, letters := "-", ""
		if m.Name == status.Leader {
			leader = "*"
		}
		names := roleNames(m.Roles)
		slices.Sort(names)
		for _, name := range names {
			letters += map[string]string{string(cluster.Manager): "m", string(cluster.Data): "d"}[name]
		}
		t.rows = append(t.rows, []string{host(m.HTTP), sortLetters(letters), strings.Join(names, ","), leader, m.Name, m.ID, m.HTTP, strconv.FormatUint(m.AppliedVersion, 10)})
	}
	return c.cat(t)
}

func sortLetters(s string) string {
	letters := []byte(s)
	slices.Sort(letters)
	return string(letters)
}

func (c *call) catShards() error {
	if err := c.ready(); err != nil {
		return err
	}
	t := &catTable{columns: []string{"index", "shard", "prirep", "state", "ip", "node"}, shown: 6}
	status, state := c.config.Cluster.Status(), c.config.Cluster.State()
	for _, x := range state.Indices() {
		for shard, node := range x.ShardNodes {
			row := []string{x.Name, strconv.Itoa(shard), "p", "UNASSIGNED", "", ""}
			if m := memberNamed(&status, node); m != nil && m.Alive && state.Node(node) != nil {
				row[3], row[4], row[5] = "STARTED", host(m.HTTP), node
			}
			t.rows = append(t.rows, row)
		}
	}
	return c.cat(t)
}

// cat writes a table as text or JSON.
func (c *call) cat(t *catTable) error {
	heading, err := c.flag("v", false)
	if err != nil {
		return err
	}
	picked, err := t.pick(list(c.query.Get("h")))
	if err != nil {
		return err
	}
	switch format := c.query.Get("format"); format {
	case "", "text":
		c.text = true
		c.out.b = t.appendText(c.out.b, picked, heading)
	case "json":
		c.out.array(func() { t.json(&c.out, picked) })
	default:
		return cluster.Errorf(cluster.IllegalArgument, "format [%s] is unknown: one of [text, json]", shorten(format))
	}
	return nil
}

// pick returns the places of the columns asked for.
func (t *catTable) pick(names []string) ([]int, error) {
	if names == nil {
		names = t.columns[:t.shown]
	}
	picked := make([]int, len(names))
	for i, name := range names {
		if picked[i] = slices.Index(t.columns, name); picked[i] < 0 {
			return nil, cluster.Errorf(cluster.IllegalArgument, "column [%s] is unknown: one of %v", shorten(name), t.columns)
		}
	}
	return picked, nil
}

// appendText writes columns that are as wide as their widest cell, the last
// one without blanks at its end.
func (t *catTable) appendText(b []byte, picked []int, heading bool) []byte {
	rows := t.rows
	if heading {
		rows = append([][]string{t.columns}, rows...)
	}
	for _, row := range rows {
		for i, column := range picked {
			b = append(b, row[column]...)
			if i == len(picked)-1 {
				break
			}
			for range t.width(column, rows) - len(row[column]) + 1 {
				b = append(b, ' ')
			}
		}
		b = append(b, '\n')
	}
	return b
}

func (t *catTable) width(column int, rows [][]string) int {
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[column]))
	}
	return widest
}

func (t *catTable) json(e *encoder, picked []int) {
	for _, row := range t.rows {
		e.object(func() {
			for _, column := range picked {
				e.name(t.columns[column]).text(row[column])
			}
		})
	}
}
