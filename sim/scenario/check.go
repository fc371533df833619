package scenario

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

// MaxPrincipalBytes bounds the name of a user or role.
const MaxPrincipalBytes = 1024

// checker finds what is wrong with a decoded file. It changes nothing.
type checker struct {
	*decoder
	file    *File // with defaults
	nodes   []string
	groups  []string
	indices []string
	rules   []string
}

// check adds to d what is wrong with f beyond its syntax. What has a fault
// already, at it or within it, gets no second one, which might only follow
// from the first.
func check(f *File, d *decoder) {
	c := &checker{decoder: d, file: f.Filled()}
	c.collect()
	c.head()
	c.cluster()
	c.users()
	c.load()
	c.steps()
	c.explore()
	c.expectations()
}

func (c *checker) at(path, format string, args ...any) { c.shifted(path, 0, format, args...) }

// shifted faults the character that is col after the start of a path's text.
func (c *checker) shifted(path string, col int, format string, args ...any) {
	if c.broken[path] {
		return
	}
	c.broken[path] = true
	f := placeOf(c.places, path)
	f.Col += col
	f.Message = fmt.Sprintf(format, args...)
	c.faults = append(c.faults, f)
}

func (c *checker) word(path, what, word string, allowed []string) {
	if !slices.Contains(allowed, word) {
		c.at(path, "%s", unknown(what, word, allowed))
	}
}

func (c *checker) err(path string, err error) {
	if err != nil {
		c.at(path, "%v", err)
	}
}

// collect lists the names that other parts of the file may use.
func (c *checker) collect() {
	for i := range c.file.Cluster.Managers {
		c.nodes = append(c.nodes, fmt.Sprintf("m%d", i+1))
	}
	for i := range c.file.Cluster.Data {
		c.nodes = append(c.nodes, fmt.Sprintf("d%d", i+1))
	}
	for _, g := range c.file.Groups {
		c.groups = append(c.groups, g.Name)
	}
	for _, r := range c.file.Rules {
		c.rules = append(c.rules, r.Name)
	}
	c.indices = slices.Sorted(maps.Keys(c.file.Cluster.Indices))
	for _, scope := range []Scope{InRun, InExplore} {
		for _, a := range c.file.actions(scope) {
			c.collectFrom(a)
		}
	}
}

func (c *checker) collectFrom(a *Action) {
	add := func(names *[]string, name string) {
		if name != "" && !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
	}
	switch {
	case a.PutGroup != nil:
		add(&c.groups, a.PutGroup.Name)
	case a.PutRule != nil:
		add(&c.rules, a.PutRule.Name)
	case a.CreateIndex != nil:
		add(&c.indices, a.CreateIndex.Name)
	case a.Join != nil && nodeName(a.Join.Node):
		add(&c.nodes, a.Join.Node)
	}
}

func nodeName(name string) bool {
	digits := strings.TrimLeft(name, "md")
	return len(digits) == len(name)-1 && digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == "" && len(digits) < 5
}

func (c *checker) head() {
	f := c.file
	c.word("profile", "profile", f.Profile, wlm.Profiles())
	c.switches()
	c.breaks("breaks", f.Breaks)
	for _, name := range slices.Sorted(maps.Keys(f.Under)) {
		path := "under." + name
		c.word(path, "profile", name, wlm.Profiles())
		if name == f.Profile {
			c.at(path, "%s is the profile that the file itself is for: write what holds under it at the top", name)
		}
		c.breaks(path+".breaks", f.Under[name].Breaks)
	}
}

func (c *checker) switches() {
	var known wlm.Switches
	for _, name := range slices.Sorted(maps.Keys(c.file.Switches)) {
		path := "switches." + name
		c.word(path, "switch", name, known.Names())
		if values := known.Values(name); values != nil {
			c.word(path, "value of "+name, c.file.Switches[name], values)
		}
	}
}

func (c *checker) breaks(path string, promises []Promise) {
	for i, p := range promises {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.word(at, "promise", string(p), promiseNames())
		if slices.Contains(promises[:i], p) {
			c.at(at, "promise %s is named twice", p)
		}
	}
}

// cluster builds the state that the run begins with, by the cluster's own
// rules.
func (c *checker) cluster() {
	s := cluster.Empty()
	for _, name := range c.nodes {
		role := cluster.Data
		if name[0] == 'm' {
			role = cluster.Manager
		}
		s = c.apply("cluster", s, &cluster.PutNode{Node: cluster.Node{Name: name, ID: name, Roles: []cluster.Role{role}}})
	}
	for _, key := range slices.Sorted(maps.Keys(c.file.Cluster.Settings)) {
		value := string(c.file.Cluster.Settings[key])
		change := cluster.SettingsChange{Persistent: map[string]*string{key: &value}}
		s = c.apply("cluster.settings."+key, s, &cluster.PutSettings{SettingsChange: change})
	}
	for _, name := range slices.Sorted(maps.Keys(c.file.Cluster.Indices)) {
		s = c.index("cluster.indices."+name, s, name, c.file.Cluster.Indices[name])
	}
	for _, step := range slices.Sorted(maps.Keys(c.file.Cluster.Delays)) {
		c.step("cluster.delays."+step, probe.Step(step))
	}
	c.tagging(s)
}

// tagging adds groups and rules to the state.
func (c *checker) tagging(s *cluster.State) {
	for i := range c.file.Groups {
		g := c.file.Groups[i].Create()
		g.ID = fmt.Sprint(i)
		s = c.apply(fmt.Sprintf("groups[%d]", i), s, &cluster.CreateGroup{Group: g})
	}
	named := map[string]bool{}
	for i := range c.file.Rules {
		r, path := &c.file.Rules[i], fmt.Sprintf("rules[%d]", i)
		if r.Name != "" && named[r.Name] {
			c.at(path+".name", "a second rule is named %s", r.Name)
		}
		named[r.Name] = true
		g := s.GroupNamed(r.WorkloadGroup)
		if g == nil {
			c.group(path+".workload_group", r.WorkloadGroup, c.file.groupNames())
			continue
		}
		made := r.Cluster(g.ID)
		made.ID = fmt.Sprint(i)
		s = c.apply(path, s, &cluster.CreateRule{Rule: made})
	}
}

func (f *File) groupNames() []string {
	var names []string
	for _, g := range f.Groups {
		names = append(names, g.Name)
	}
	return names
}

func (c *checker) apply(path string, s *cluster.State, command cluster.Command) *cluster.State {
	if err := command.Validate(); err != nil {
		c.err(path, err)
		return s
	}
	next, err := cluster.Apply(s, command)
	if err != nil {
		c.err(path, err)
		return s
	}
	return next
}

func (c *checker) index(path string, s *cluster.State, name string, x Index) *cluster.State {
	if !c.service(path+".service_time", x.ServiceTime) {
		return s
	}
	return c.apply(path, s, &cluster.CreateIndex{Name: name, UUID: name, Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster()})
}

func (c *checker) service(path string, t *ServiceTime) bool {
	if t == nil {
		return true
	}
	err := t.check()
	c.err(path, err)
	return err == nil
}

func (c *checker) users() {
	for _, name := range slices.Sorted(maps.Keys(c.file.Users)) {
		c.principal("users."+name, name)
		for i, role := range c.file.Users[name].Roles {
			c.principal(fmt.Sprintf("users.%s.roles[%d]", name, i), role)
		}
	}
}

func (c *checker) principal(path, name string) {
	if name == "" || len(name) > MaxPrincipalBytes {
		c.at(path, "a name of %d bytes: 1 to %d", len(name), MaxPrincipalBytes)
	}
}

func (c *checker) load() {
	for i := range c.file.Load {
		l, path := &c.file.Load[i], fmt.Sprintf("load[%d]", i)
		c.identifier(path+".name", "load", l.Name)
		if slices.ContainsFunc(c.file.Load[:i], func(o Load) bool { return o.Name == l.Name }) {
			c.at(path+".name", "a second load is named %s", l.Name)
		}
		c.arrival(path, l)
		c.target(path, l.User, l.Group, l.Index)
		c.via(path+".via", &l.Via)
		c.service(path+".service_time", l.ServiceTime)
		c.retry(path+".retry", l.Retry)
	}
}

func (c *checker) identifier(path, what, name string) {
	switch {
	case !identifier.MatchString(name):
		c.at(path, "the %s %q cannot be named in expressions: letters, digits and _, not a digit first", what, name)
	case slices.Contains(reserved(), name):
		c.at(path, "the %s %q has a name that expressions use for something else", what, name)
	}
}

func (c *checker) arrival(path string, l *Load) {
	a, kinds := &l.Arrive, 0
	for _, set := range []bool{a.Poisson.Count > 0, a.Constant.Count > 0, a.Burst != nil, a.Closed > 0, a.Trace != ""} {
		if set {
			kinds++
		}
	}
	at := path + ".arrive"
	switch {
	case kinds != 1:
		c.at(at, "%d kinds of arrival: give one of poisson, constant, burst, closed, trace", kinds)
	case a.Think > 0 && a.Closed == 0:
		c.at(at+".think", "think belongs to closed: clients of other arrivals do not wait for answers")
	case a.Burst != nil && a.Burst.Every == 0:
		c.at(at+".burst.every", "bursts 0s apart never end")
	case a.Trace != "" && !filepath.IsLocal(filepath.FromSlash(a.Trace)):
		c.at(at+".trace", "trace %q must lie beside the scenario or below it", a.Trace)
	case a.Trace != "" && l.For > 0:
		c.at(path+".for", "a trace ends by itself: leave for out")
	case a.Trace != "" && (l.User != "" || l.Index != "" || l.ServiceTime != nil):
		c.at(path, "the lines of a trace name user, index and service_time: leave them out")
	case a.Trace == "" && l.For == 0:
		c.at(path, "load %s lacks %q", l.Name, "for")
	}
}

// target checks whose and what for a search is.
func (c *checker) target(path, user, group, index string) {
	if len(user) > MaxPrincipalBytes {
		c.principal(path+".user", user)
	}
	if group != "" {
		c.group(path+".group", group, c.groups)
	}
	c.searched(path+".index", index)
}

// searched checks an expression that names indices.
func (c *checker) searched(path, index string) {
	for part := range strings.SplitSeq(index, ",") {
		if part != "" && part != "_all" && !strings.Contains(part, "*") {
			c.word(path, "index", part, c.indices)
		}
	}
}

func (c *checker) group(path, name string, known []string) {
	c.word(path, "group", name, known)
}

// node checks the name of a node; words are what may stand for one there.
func (c *checker) node(path, name string, words ...string) {
	c.word(path, "node", name, slices.Concat(c.nodes, words))
}

func (c *checker) step(path string, s probe.Step) {
	var known []string
	for _, k := range probe.Steps() {
		known = append(known, string(k))
	}
	c.word(path, "step", string(s), known)
}

func (c *checker) via(path string, v *Via) {
	for i, node := range v.Nodes {
		c.node(fmt.Sprintf("%s[%d]", path, i), node)
	}
	for _, node := range slices.Sorted(maps.Keys(v.Weights)) {
		c.node(path+"."+node, node)
		if w := v.Weights[node]; !(w > 0 && w <= 1e6) {
			c.at(path+"."+node, "weight %v of %s is out of bounds: over 0, at most 1000000", w, node)
		}
	}
}

func (c *checker) retry(path string, r *Retry) {
	if r == nil {
		return
	}
	if len(r.On) == 0 {
		c.at(path, "retry on no status: give some, or leave retry out")
	}
	b := r.Backoff
	switch {
	case b.Initial == 0 && (b.Factor != 1 || b.Max > 0 || b.Jitter != "none"):
		c.at(path+".backoff", "a backoff from 0s stays 0s: give initial")
	case b.Max > 0 && b.Max < b.Initial:
		c.at(path+".backoff.max", "max %v is under initial %v", b.Max, b.Initial)
	}
}

// expectations checks every expression of the file.
func (c *checker) expectations() {
	f := c.file
	vars := f.zeroVars(InRun)
	c.expressions("expect", f.Expect, vars)
	for i := range f.Steps {
		c.expressions(fmt.Sprintf("steps[%d].expect", i), f.Steps[i].Expect, vars)
	}
	if f.Explore != nil {
		c.outcome(f.Explore)
	}
	c.runs("expect", f.Expect)
	for _, name := range slices.Sorted(maps.Keys(f.Under)) {
		u, path := f.Under[name], "under."+name
		c.expressions(path+".expect", u.Expect, vars)
		c.runs(path+".expect", u.Expect)
		c.judged(path+".forbid", u.Forbid)
		c.judged(path+".require", u.Require)
	}
}

// runs refuses what is expected of a run in a file that only explores.
func (c *checker) runs(path string, expect []Expression) {
	if f := c.file; f.Explore != nil && len(f.Steps) == 0 && len(f.Load) == 0 && len(expect) > 0 {
		c.at(path, "nothing runs but the exploration, which forbid and require judge: leave expect out")
	}
}

// judged checks what is said of outcomes, for which there has to be an
// exploration.
func (c *checker) judged(path string, all []Expression) {
	switch {
	case c.file.Explore != nil:
		c.expressions(path, all, c.file.zeroVars(InOutcome))
	case len(all) > 0:
		c.at(path, "there is no explore: block whose outcomes it could judge")
	}
}

func (c *checker) outcome(e *Explore) {
	known := c.file.zeroVars(InExplore)
	for _, o := range e.Observe {
		path := "explore.observe." + o.Name
		c.identifier(path, "observed value", o.Name)
		c.expression(path, o.Value, known, false)
	}
	c.judged("explore.forbid", e.Forbid)
	c.judged("explore.require", e.Require)
}

func (c *checker) expressions(path string, all []Expression, vars map[string]any) {
	for i, e := range all {
		c.expression(fmt.Sprintf("%s[%d]", path, i), e, vars, true)
	}
}

func (c *checker) expression(path string, e Expression, vars map[string]any, truth bool) {
	before := len(c.faults)
	for _, call := range callsIn(e) {
		c.call(path, e, call)
	}
	if len(c.faults) > before {
		return
	}
	if _, col, err := compile(e, vars, truth); err != nil {
		c.shifted(path, c.column(path, e, col), "%v", err)
	}
}

// column returns how far after the start of a value a character of its text
// stands, where that can be told.
func (c *checker) column(path string, e Expression, col int) int {
	at := placeOf(c.places, path)
	rest := string([]rune(at.Text)[min(at.Col-1, utf8.RuneCountInString(at.Text)):])
	switch {
	case strings.HasPrefix(rest, string(e)):
		return col
	case strings.HasPrefix(strings.TrimLeft(rest, `"'`), string(e)):
		return col + 1
	}
	return 0
}

// call checks the arguments of a function that are written out.
func (c *checker) call(path string, e Expression, made call) {
	ways, known := calls()[made.name]
	if made.name == "duration" {
		if text, ok := literal(made.args, 0); ok {
			if _, err := parseTime(text); err != nil {
				c.shifted(path, c.column(path, e, made.col), "%v", err)
			}
		}
	}
	if !known {
		return
	}
	i := slices.IndexFunc(ways, func(way []string) bool { return len(way) == len(made.args) })
	if i < 0 {
		c.shifted(path, c.column(path, e, made.col), "%s takes %s", made.name, signatures(ways))
		return
	}
	for j, what := range ways[i] {
		text, ok := literal(made.args, j)
		allowed := c.nodes
		if what == "group" {
			allowed = append(slices.Clone(c.groups), cluster.DefaultGroupID)
		}
		if ok && !slices.Contains(allowed, text) {
			c.shifted(path, c.column(path, e, made.args[j].Location().From), "%s", unknown(what, text, allowed))
		}
	}
}

func signatures(ways [][]string) string {
	var all []string
	for _, way := range ways {
		all = append(all, "("+strings.Join(way, ", ")+")")
	}
	return strings.Join(all, " or ")
}
