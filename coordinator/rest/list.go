package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmsim/wlmsim/wlm"
)

// Bounds on a page of _list/wlm_stats, in rows.
const (
	ListPage    = 10 // unless size says otherwise
	MaxListPage = 100
)

// pageParams are taken by all routes of the statistics, and have an effect on
// those of _list, as upstream.
var pageParams = []string{"size", "next_token", "sort", "order", "breach"}

// page is what a request wants to see of a list.
type page struct {
	size    int
	token   string
	byGroup bool // sorted by group, then node; else by node, then group
	down    bool
}

func (c *call) page() (p page, err error) {
	size, given, err := c.number("size")
	if err != nil {
		return p, err
	}
	if !given {
		size = ListPage
	}
	if size < 1 || size > MaxListPage {
		return p, parseFailure("Invalid value for 'size'. Allowed range: 1 to " + strconv.Itoa(MaxListPage))
	}
	sort, err := c.oneOf("sort", "Invalid value for 'sort'. Allowed: 'node_id', 'workload_group'", "node_id", "workload_group")
	if err != nil {
		return p, err
	}
	order, err := c.oneOf("order", "Invalid value for 'order'. Allowed: 'asc', 'desc'", "asc", "desc")
	if err != nil {
		return p, err
	}
	return page{size: int(size), token: c.query.Get("next_token"), byGroup: sort == "workload_group", down: order == "desc"}, nil
}

// oneOf reads a parameter that is one of some words, in any case; the first
// one if it is absent.
func (c *call) oneOf(name, refusal string, words ...string) (string, error) {
	if c.query == nil || !c.query.Has(name) {
		return words[0], nil
	}
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, c.query.Get(name)) })
	if i < 0 {
		return "", parseFailure(refusal)
	}
	return words[i], nil
}

// listRow is one group on one node.
type listRow struct {
	node  string // id
	group *wlm.GroupStats
}

func (r listRow) key() string { return r.node + "|" + r.group.ID }

func (p *page) compare(a, b listRow) int {
	order := cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.group.ID, b.group.ID))
	if p.byGroup {
		order = cmp.Or(cmp.Compare(a.group.ID, b.group.ID), cmp.Compare(a.node, b.node))
	}
	if p.down {
		return -order
	}
	return order
}

// listStats answers _list/wlm_stats in its four forms: a page of a table with
// a row for each group on each node. Nodes that do not answer have no rows, as
// upstream.
func (c *call) listStats() error {
	p, err := c.page()
	if err != nil {
		return err
	}
	heading, err := c.flag("v", false)
	if err != nil {
		return err
	}
	answers, _ := c.askStats()
	var rows []listRow
	for _, n := range answers {
		for i := range n.Groups {
			rows = append(rows, listRow{node: n.ID, group: &n.Groups[i]})
		}
	}
	slices.SortFunc(rows, p.compare)
	rows, next, err := p.cut(rows)
	if err != nil {
		return err
	}
	t := listTable(rows, next == "")
	if c.wantsJSON() {
		c.out.listPage(t, next)
		return nil
	}
	c.text = true
	c.out.b = t.appendText(c.out.b, t.all(), heading)
	if next != "" {
		c.out.b = append(append(append(c.out.b, "next_token "...), next...), '\n')
	}
	return nil
}

// cut returns the rows of the page and the token of the next one, "" if there
// is none.
func (p *page) cut(rows []listRow) (_ []listRow, next string, err error) {
	sum := digest(rows)
	start := 0
	if p.token != "" {
		if start, err = p.resume(rows, sum); err != nil {
			return nil, "", err
		}
	}
	rest := rows[start:]
	if len(rest) <= p.size {
		return rest, "", nil
	}
	rest = rest[:p.size]
	return rest, p.tokenAfter(rest[p.size-1], len(rows), sum), nil
}

// digest tells sets of rows apart, whatever their order and figures.
func digest(rows []listRow) string {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.key()
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, ",")))
	return hex.EncodeToString(sum[:])
}

// A token is, in base64, the last row's node and group, the number of rows,
// their digest, and the order.
func (p *page) tokenAfter(last listRow, rows int, sum string) string {
	order, by := "ASC", "NODE_ID"
	if p.down {
		order = "DESC"
	}
	if p.byGroup {
		by = "WORKLOAD_GROUP"
	}
	return base64.StdEncoding.EncodeToString([]byte(strings.Join([]string{last.key(), strconv.Itoa(rows), sum, order, by}, "|")))
}

// resume returns where the page of a token begins.
func (p *page) resume(rows []listRow, sum string) (int, error) {
	plain, err := base64.StdEncoding.DecodeString(p.token)
	if err != nil {
		return 0, pageFault("Parameter [next_token] has been tainted and is incorrect. Please provide a valid [next_token].")
	}
	parts := strings.Split(string(plain), "|")
	if len(parts) != 6 || slices.Contains(parts, "") {
		return 0, pageFault("Invalid pagination token format")
	}
	if parts[2] != strconv.Itoa(len(rows)) || parts[3] != sum {
		return 0, pageFault("Workload group state has changed since the last request. Pagination is invalidated.")
	}
	last := slices.IndexFunc(rows, func(r listRow) bool { return r.key() == parts[0]+"|"+parts[1] })
	if last < 0 {
		return 0, pageFault("Invalid or outdated token: " + shorten(p.token))
	}
	return last + 1, nil
}

func pageFault(details string) error {
	return &plainError{
		status: http.StatusBadRequest,
		reason: "Pagination state has changed (e.g., new workload groups added or removed). " +
			"Please restart pagination from the beginning by omitting the 'next_token' parameter.",
		details: details,
	}
}

// listColumns are the columns of _list/wlm_stats, without the bars between.
var listColumns = []string{
	"NODE_ID", "WORKLOAD_GROUP_ID", "TOTAL_COMPLETIONS", "TOTAL_REJECTIONS", "TOTAL_CANCELLATIONS", "TOTAL_THROTTLED", "CPU_USAGE", "MEMORY_USAGE",
}

// listTable lays rows out, with a bar for a column between each two.
func listTable(rows []listRow, end bool) *table {
	t := &table{}
	for i, name := range listColumns {
		if i > 0 {
			t.columns = append(t.columns, column{name: "|"})
		}
		t.columns = append(t.columns, column{name: name})
	}
	for _, r := range rows {
		g := r.group
		t.rows = append(t.rows, barred([]string{
			r.node, g.ID, count(g.Completions), count(g.Rejections), count(g.Cancellations), count(g.Throttled), idle, idle,
		}))
	}
	if end {
		last := slices.Repeat([]string{"-"}, len(t.columns))
		last[0] = "No more pages available"
		t.rows = append(t.rows, last)
	}
	return t
}

// idle is the use of a resource by simulated searches, which every node knows;
// upstream writes NA where a node does not.
const idle = "0.0"

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func barred(cells []string) []string {
	row := make([]string, 0, 2*len(cells)-1)
	for i, cell := range cells {
		if i > 0 {
			row = append(row, "|")
		}
		row = append(row, cell)
	}
	return row
}

// listPage writes a page as JSON, without the bars: an object with the token
// of the next page, or the last page's rows alone.
func (e *encoder) listPage(t *table, next string) {
	picked := slices.DeleteFunc(t.all(), func(i int) bool { return t.columns[i].name == "|" })
	if next == "" {
		e.array(func() { t.json(e, picked) })
		return
	}
	e.object(func() {
		e.name("next_token").text(next)
		e.name("wlm_stats").array(func() { t.json(e, picked) })
	})
}
