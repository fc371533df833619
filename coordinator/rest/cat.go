package rest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// catParams are the parameters of all _cat routes: v prints the names of the
// columns, h chooses columns, s sorts the rows, help explains the columns. The
// tables are this node's view, with or without local, so that nothing waits.
var catParams = []string{"v", "h", "s", "help", "local", "cluster_manager_timeout", "master_timeout"}

// column is a column of a table.
type column struct {
	name    string
	aliases string // further names, by commas
	about   string
	extra   bool // appears only if asked for
}

// table is an answer of _cat or _list.
type table struct {
	columns []column
	rows    [][]string
}

// all returns the places of all columns.
func (t *table) all() []int {
	places := make([]int, len(t.columns))
	for i := range places {
		places[i] = i
	}
	return places
}

// wantsJSON says whether a table is to come as JSON: by the parameter format,
// or else by the header Accept.
func (c *call) wantsJSON() bool {
	if format := c.query.Get("format"); format != "" {
		return format == "json"
	}
	return strings.HasPrefix(c.r.Header.Get("Accept"), "application/json")
}

func (c *call) catNodes() error {
	whole, err := c.flag("full_id", false)
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "id", aliases: "nodeId", about: "unique node id, four characters of it without full_id", extra: true},
		{name: "ip", aliases: "i", about: "ip address"},
		{name: "http_address", aliases: "http", about: "bound http address", extra: true},
		{name: "version", aliases: "v", about: "version", extra: true},
		{name: "node.role", aliases: "r,role,nodeRole", about: "m:cluster manager eligible node, d:data node"},
		{name: "node.roles", aliases: "rs,all.roles", about: "all node roles"},
		{name: "cluster_manager", aliases: "m,master", about: "*:current cluster manager"},
		{name: "name", aliases: "n", about: "node name"},
		{name: "applied_version", about: "state version that the node has applied", extra: true},
	}}
	c.config.Cluster.Refresh(c.r.Context())
	status := c.config.Cluster.Status()
	for i := range status.Members {
		if status.Members[i].Alive {
			t.rows = append(t.rows, c.nodeRow(&status.Members[i], status.Leader, whole))
		}
	}
	return c.cat(t)
}

func (c *call) nodeRow(m *Member, leader string, wholeID bool) []string {
	id, manages, letters := m.ID, "-", ""
	if !wholeID {
		id = id[:min(4, len(id))]
	}
	if m.Name == leader {
		manages = "*"
	}
	names := roleNames(m.Roles)
	slices.Sort(names)
	for _, name := range names {
		letters += map[string]string{string(cluster.Manager): "m", string(cluster.Data): "d"}[name]
	}
	return []string{id, host(m.HTTP), m.HTTP, c.config.Version, sortLetters(letters), strings.Join(names, ","), manages, m.Name, count(m.AppliedVersion)}
}

func sortLetters(s string) string {
	letters := []byte(s)
	slices.Sort(letters)
	return string(letters)
}

func (c *call) catManager() error {
	t := &table{columns: []column{
		{name: "id", about: "node id"}, {name: "host", aliases: "h", about: "host name"},
		{name: "ip", about: "ip address"}, {name: "node", aliases: "n", about: "node name"},
	}}
	status := c.config.Cluster.Status()
	row := []string{"-", "-", "-", "-"}
	if m := memberNamed(&status, status.Leader); m != nil {
		row = []string{m.ID, host(m.HTTP), host(m.HTTP), m.Name}
	}
	t.rows = append(t.rows, row)
	return c.cat(t)
}

func (c *call) catHealth() error {
	stamp, err := c.flag("ts", true)
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "epoch", aliases: "t,time", about: "seconds since 1970-01-01 00:00:00", extra: !stamp},
		{name: "timestamp", aliases: "ts,hms,hhmmss", about: "time in HH:MM:SS", extra: !stamp},
		{name: "cluster", aliases: "cl", about: "cluster name"},
		{name: "status", aliases: "st", about: "health status"},
		{name: "node.total", aliases: "nt,nodeTotal", about: "total number of nodes"},
		{name: "node.data", aliases: "nd,nodeData", about: "number of nodes that can store data"},
		{name: "discovered_cluster_manager", aliases: "dcm,dm", about: "discovered cluster manager"},
		{name: "shards", aliases: "sh,shards.total,shardsTotal", about: "total number of shards"},
		{name: "pri", aliases: "p,shards.primary,shardsPrimary", about: "number of primary shards"},
		{name: "relo", aliases: "r,shards.relocating,shardsRelocating", about: "number of relocating nodes"},
		{name: "init", aliases: "i,shards.initializing,shardsInitializing", about: "number of initializing nodes"},
		{name: "unassign", aliases: "u,shards.unassigned,shardsUnassigned", about: "number of unassigned shards"},
		{name: "pending_tasks", aliases: "pt,pendingTasks", about: "number of pending tasks"},
		{name: "max_task_wait_time", aliases: "mtwt,maxTaskWaitTime", about: "wait time of longest task pending"},
		{name: "active_shards_percent", aliases: "asp,activeShardsPercent", about: "active number of shards in percent"},
	}}
	s, now := c.look(), c.config.Cluster.Now().UTC()
	active := strconv.Itoa(s.shards.active)
	t.rows = append(t.rows, []string{
		strconv.FormatInt(now.Unix(), 10), now.Format(time.TimeOnly), c.config.ClusterName, s.color, strconv.Itoa(s.alive), strconv.Itoa(s.aliveData),
		strconv.FormatBool(s.status.Leader != ""), active, active, "0", "0", strconv.Itoa(s.shards.unassigned),
		strconv.Itoa(s.status.PendingTasks), "-", s.shards.percentText(),
	})
	return c.cat(t)
}

// percentText writes the share of active shards with one digit.
func (n shardCount) percentText() string {
	return strconv.FormatFloat(n.percent(), 'f', 1, 64) + "%"
}

func (c *call) catIndices() error {
	indices, err := c.indices()
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "health", aliases: "h", about: "current health status"},
		{name: "status", aliases: "s", about: "open/close status"},
		{name: "index", aliases: "i,idx", about: "index name"},
		{name: "uuid", aliases: "id", about: "index uuid"},
		{name: "pri", aliases: "p,shards.primary,shardsPrimary", about: "number of primary shards"},
		{name: "rep", aliases: "r,shards.replica,shardsReplica", about: "number of replica shards"},
		{name: "creation.date", aliases: "cd", about: "index creation date (millisecond value)", extra: true},
		{name: "creation.date.string", aliases: "cds", about: "index creation date (as string)", extra: true},
	}}
	status, state := c.config.Cluster.Status(), c.config.Cluster.State()
	for _, x := range indices {
		health := "green"
		if countShards(state, &status, x).unassigned > 0 {
			health = "red"
		}
		t.rows = append(t.rows, []string{
			health, "open", x.Name, x.UUID, strconv.Itoa(x.Shards()), "0", strconv.FormatInt(x.CreatedAt, 10), dateText(x.CreatedAt),
		})
	}
	return c.cat(t)
}

// dateText writes epoch milliseconds with all three digits of the fraction.
func dateText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (c *call) catShards() error {
	indices, err := c.indices()
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "index", aliases: "i,idx", about: "index name"},
		{name: "shard", aliases: "s,sh", about: "shard name"},
		{name: "prirep", aliases: "p,pr,primaryOrReplica", about: "primary or replica"},
		{name: "state", aliases: "st", about: "shard state"},
		{name: "ip", about: "ip of node where it lives"},
		{name: "id", about: "unique id of node where it lives", extra: true},
		{name: "node", aliases: "n", about: "name of node where it lives"},
	}}
	status, state := c.config.Cluster.Status(), c.config.Cluster.State()
	for _, x := range indices {
		for shard, node := range x.ShardNodes {
			row := []string{x.Name, strconv.Itoa(shard), "p", "UNASSIGNED", "", "", ""}
			if m := memberNamed(&status, node); m != nil && m.Alive && state.Node(node) != nil {
				row = []string{x.Name, strconv.Itoa(shard), "p", "STARTED", host(m.HTTP), m.ID, node}
			}
			t.rows = append(t.rows, row)
		}
	}
	return c.cat(t)
}

// cat writes a table as text or JSON.
func (c *call) cat(t *table) error {
	if err := c.catCommon(); err != nil {
		return err
	}
	heading, err := c.flag("v", false)
	if err != nil {
		return err
	}
	help, err := c.flag("help", false)
	if err != nil {
		return err
	}
	if help {
		c.text = true
		c.out.b = t.help().appendText(c.out.b, []int{0, 1, 2}, false)
		return nil
	}
	if err := t.sort(list(c.query.Get("s"))); err != nil {
		return err
	}
	picked := t.pick(list(c.query.Get("h")))
	if c.wantsJSON() {
		c.out.array(func() { t.json(&c.out, picked) })
		return nil
	}
	c.text = true
	c.out.b = t.appendText(c.out.b, picked, heading)
	return nil
}

// catCommon reads the parameters that change nothing here, since no table
// waits for the leader.
func (c *call) catCommon() error {
	if _, err := c.flag("local", true); err != nil {
		return err
	}
	for _, name := range []string{"cluster_manager_timeout", "master_timeout"} {
		if _, err := c.duration(name, 0); err != nil {
			return err
		}
	}
	return nil
}

// find returns the place of the column of a name or alias, or -1.
func (t *table) find(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool {
		return c.name == name || slices.Contains(strings.Split(c.aliases, ","), name)
	})
}

// pick returns the places of the columns asked for, by name, alias or name
// with wildcards. As upstream, what is no column is left out.
func (t *table) pick(names []string) (picked []int) {
	if names == nil {
		return slices.DeleteFunc(t.all(), func(i int) bool { return t.columns[i].extra })
	}
	for _, name := range names {
		if !strings.Contains(name, "*") {
			if i := t.find(name); i >= 0 {
				picked = append(picked, i)
			}
			continue
		}
		for i := range t.columns {
			if wild(name, t.columns[i].name) {
				picked = append(picked, i)
			}
		}
	}
	return picked
}

// sort orders the rows by columns, each a name with :asc or :desc behind it or
// nothing; numbers by their size.
func (t *table) sort(keys []string) error {
	type order struct {
		column int
		down   bool
	}
	var orders []order
	for _, key := range keys {
		name, direction, _ := strings.Cut(key, ":")
		o := order{t.find(name), strings.EqualFold(direction, "desc")}
		if o.column < 0 {
			return cluster.Errorf(cluster.IllegalArgument, "Unable to sort by unknown sort key `%s`", shorten(name))
		}
		orders = append(orders, o)
	}
	slices.SortStableFunc(t.rows, func(a, b []string) int {
		for _, o := range orders {
			if by := compareCells(a[o.column], b[o.column]); by != 0 && o.down {
				return -by
			} else if by != 0 {
				return by
			}
		}
		return 0
	})
	return nil
}

func compareCells(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// help is the table that explains the columns.
func (t *table) help() *table {
	h := &table{columns: make([]column, 3)}
	for _, c := range t.columns {
		h.rows = append(h.rows, []string{c.name, "| " + cmp.Or(c.aliases, "-"), "| " + c.about})
	}
	return h
}

// appendText writes columns that are as wide as their widest cell, the last
// one without blanks at its end.
func (t *table) appendText(b []byte, picked []int, heading bool) []byte {
	rows := t.rows
	if heading {
		names := make([]string, len(t.columns))
		for i := range t.columns {
			names[i] = t.columns[i].name
		}
		rows = append([][]string{names}, rows...)
	}
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		for n, i := range picked {
			b = append(b, row[i]...)
			if n < len(picked)-1 {
				b = append(b, strings.Repeat(" ", widths[i]-len(row[i])+1)...)
			}
		}
		b = append(b, '\n')
	}
	return b
}

func (t *table) json(e *encoder, picked []int) {
	for _, row := range t.rows {
		e.object(func() {
			for _, i := range picked {
				e.name(t.columns[i].name)
				if row[i] == "" {
					e.null()
				} else {
					e.text(row[i])
				}
			}
		})
	}
}
