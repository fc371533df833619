package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// program is what a check knows of the actions that lead to the one it looks
// at.
type program struct {
	searches []string         // ids of all searches, before and after
	ids      map[string]bool  // seen so far
	groups   map[string]bool  // that exist or did
	scrolls  map[string]bool  // ids of searches that have pages, so far
	points   map[string]bool  // ids of points in time, so far
	held     map[Release]bool // windows that are open
	explore  *Explore         // that the actions belong to, or nil
}

func (c *checker) program(scope Scope) *program {
	p := &program{ids: map[string]bool{}, groups: map[string]bool{}, scrolls: map[string]bool{}, points: map[string]bool{}, held: map[Release]bool{}}
	for _, g := range c.file.Groups {
		p.groups[g.Name] = true
	}
	for _, a := range c.file.actions(scope) {
		if a.Search != nil && a.Search.ID != "" {
			p.searches = append(p.searches, a.Search.ID)
		}
	}
	return p
}

// steps looks at the steps in the order in which they start.
func (c *checker) steps() {
	order := make([]int, len(c.file.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.file.Steps[a].At, c.file.Steps[b].At) })
	p := c.program(InRun)
	for _, i := range order {
		path := fmt.Sprintf("steps[%d]", i)
		if c.action(path, &c.file.Steps[i].Action, p) {
			c.repeat(path, &c.file.Steps[i])
		}
	}
}

func (c *checker) repeat(path string, s *Step) {
	r := s.Repeat
	switch {
	case r == nil:
	case r.Every == 0:
		c.at(path+".repeat.every", "repeats 0s apart are all at once")
	case r.Every > Duration(MaxTime)/Duration(max(r.Times, 1)):
		c.at(path+".repeat", "%d times every %v is out of bounds: at most %s", r.Times, r.Every, shortTime(MaxTime))
	case s.Hold != nil || s.Release != nil || s.Cancel != nil || s.Join != nil || s.OpenPit != nil:
		c.at(path+".repeat", "%s cannot be repeated", s.Name())
	case s.ID() != "":
		c.at(path+".repeat", "%s is repeated, so its request cannot have an id", s.Name())
	}
}

// action checks one action; false means that it is not one action.
func (c *checker) action(path string, a *Action, p *program) bool {
	names := a.Names()
	if len(names) != 1 {
		c.at(path, "%d actions in one step: give one of %s", len(names), listed(actionNames()))
		return false
	}
	at := path + "." + names[0]
	c.id(at+".id", a, p)
	if r := a.Request(); r != nil && (p.explore == nil || r.Via != p.explore.Node) { // explore.node is looked at by itself
		c.node(at+".via", r.Via, Leader)
	}
	c.request(at, a, p)
	c.windows(at, a, p)
	c.faultsOf(at, a)
	return true
}

func (c *checker) id(path string, a *Action, p *program) {
	id := a.ID()
	if id == "" {
		return
	}
	c.identifier(path, "id", id)
	if p.ids[id] {
		c.at(path, "id %q is used twice", id)
	}
	p.ids[id] = true
}

// request checks the body of a request.
func (c *checker) request(at string, a *Action, p *program) {
	switch {
	case a.PutGroup != nil:
		c.putGroup(at, &a.PutGroup.Group, p)
	case a.DeleteGroup != nil:
		c.group(at+".name", a.DeleteGroup.Name, c.groups)
	case a.GetStats != nil:
		c.group(at+".group", a.GetStats.Group, append(slices.Clone(c.groups), cluster.DefaultGroupID))
	case a.PutSettings != nil:
		c.putSettings(at, a.PutSettings)
	case a.PutRule != nil:
		c.putRule(at, &a.PutRule.Rule)
	case a.DeleteRule != nil:
		c.word(at+".name", "rule", a.DeleteRule.Name, c.rules)
	case a.CreateIndex != nil:
		c.createIndex(at, a.CreateIndex)
	case a.DeleteIndex != nil:
		c.word(at+".name", "index", a.DeleteIndex.Name, c.indices)
	case a.Search != nil:
		c.search(at, a.Search, p)
	case a.MultiSearch != nil:
		c.multiSearch(at, a.MultiSearch, p)
	case a.OpenPit != nil:
		c.openPit(at, a.OpenPit, p)
	case a.ClosePit != nil:
		c.point(at+".pit", a.ClosePit.Pit, p)
	}
}

// pointsAreSteps is why an exploration has no points in time.
const pointsAreSteps = "points in time belong to steps: an exploration follows single searches"

// openPit checks a point in time, which only its id makes of use.
func (c *checker) openPit(at string, o *OpenPit, p *program) {
	c.searched(at+".index", o.Index)
	switch {
	case p.explore != nil:
		c.at(at, pointsAreSteps)
	case o.ID == "":
		c.at(at, "open_pit lacks %q, which searches and close_pit name it by", "id")
	default:
		p.points[o.ID] = true
	}
	if _, given := c.places[at+".keep_alive"]; given && o.KeepAlive == 0 {
		c.at(at+".keep_alive", "a point in time that is kept for 0s is gone at once")
	}
}

// point checks the name of a point in time.
func (c *checker) point(path, id string, p *program) {
	if p.explore != nil {
		c.at(path, pointsAreSteps)
		return
	}
	c.word(path, "earlier open_pit", id, slices.Sorted(maps.Keys(p.points)))
}

// putGroup holds a group that cannot exist yet to what creates it, and any
// other to what creates or updates it.
func (c *checker) putGroup(at string, g *Group, p *program) {
	err := (&cluster.CreateGroup{Group: g.Create()}).Validate()
	if err != nil && p.groups[g.Name] {
		update := g.Update()
		err = update.Validate()
	}
	c.err(at, err)
	p.groups[g.Name] = true
}

func (c *checker) putSettings(at string, s *PutSettings) {
	change := s.Change()
	if len(change.Persistent)+len(change.Transient) == 0 {
		c.at(at, "no setting is put: give persistent or transient")
	}
	c.err(at, change.Validate(true))
}

func (c *checker) putRule(at string, r *Rule) {
	if r.Name == "" {
		c.at(at, "put_rule lacks %q", "name")
	}
	c.group(at+".workload_group", r.WorkloadGroup, c.groups)
	made := r.Cluster("id")
	c.err(at, made.Check())
}

func (c *checker) createIndex(at string, x *CreateIndex) {
	if c.service(at+".service_time", x.ServiceTime) {
		command := cluster.CreateIndex{Name: x.Name, Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster()}
		c.err(at, command.Validate())
	}
}

func (c *checker) search(at string, s *Search, p *program) {
	c.target(at, s.User, s.Group, s.Index)
	for i, index := range s.Lookups {
		c.searched(fmt.Sprintf("%s.lookups[%d]", at, i), index)
	}
	c.service(at+".service_time", s.ServiceTime)
	c.pages(at, s, p)
	c.pointed(at, s, p)
	if p.explore != nil && len(s.Lookups) > 0 && (len(s.Lookups) > 1 || p.explore.Node == "") {
		c.at(at+".lookups", "an exploration follows one nested search, and that of one node alone")
	}
	if s.Hold && p.explore == nil {
		c.at(at+".hold", "hold belongs to explore: in steps give a service_time, or hold a step")
	}
}

func (c *checker) multiSearch(at string, s *MultiSearch, p *program) {
	c.target(at, s.User, s.Group, s.Index)
	c.service(at+".service_time", s.ServiceTime)
	if p.explore != nil {
		c.at(at, "an exploration follows single searches: give each of an msearch an actor of its own")
	}
}

// pages checks what a search has to do with scrolls.
func (c *checker) pages(at string, s *Search, p *program) {
	if p.explore != nil && (s.Scroll > 0 || s.PageOf != "") {
		c.at(at, "the pages of a scroll belong to steps: an exploration follows single searches")
		return
	}
	if s.Scroll > 0 && s.ID == "" {
		c.at(at, "a search with scroll lacks %q, which its pages name it by", "id")
	}
	if s.Scroll > 0 && s.PageOf == "" {
		p.scrolls[s.ID] = true
	}
	if s.PageOf == "" {
		return
	}
	c.word(at+".page_of", "earlier search with scroll", s.PageOf, slices.Sorted(maps.Keys(p.scrolls)))
	for _, key := range []string{"scroll", "index", "service_time", "timeout", "size", "lookups"} {
		if _, given := c.places[at+"."+key]; given {
			c.at(at+"."+key, "a page has its %s from the search with scroll: leave it out", key)
		}
	}
}

// pointed checks what a search has to do with a point in time.
func (c *checker) pointed(at string, s *Search, p *program) {
	if s.Pit == "" {
		return
	}
	c.point(at+".pit", s.Pit, p)
	for _, key := range []string{"index", "scroll", "page_of"} {
		if _, given := c.places[at+"."+key]; given {
			c.at(at+"."+key, "a search of a point in time has no %s: leave it out", key)
		}
	}
}

// windows checks what refers to a step of a node or to a search.
func (c *checker) windows(at string, a *Action, p *program) {
	switch {
	case a.Hold != nil:
		c.hold(at, a.Hold, p)
	case a.Release != nil:
		c.node(at+".node", a.Release.Node)
		c.step(at+".step", a.Release.Step)
		if known(a.Release.Step) && !p.held[*a.Release] {
			c.at(at, "no earlier step holds %s of %s", a.Release.Step, a.Release.Node)
		}
		delete(p.held, *a.Release)
	case a.Cancel != nil:
		c.word(at+".search", "search", a.Cancel.Search, p.searches)
	case a.Delay != nil:
		c.node(at+".node", a.Delay.Node, Leader, All)
		c.step(at+".step", a.Delay.Step)
	}
}

func known(s probe.Step) bool { return slices.Contains(probe.Steps(), s) }

func (c *checker) hold(at string, h *Hold, p *program) {
	c.node(at+".node", h.Node)
	c.step(at+".step", h.Step)
	if h.Group != "" {
		c.group(at+".group", h.Group, c.groups)
	}
	if h.Search != "" {
		c.word(at+".search", "search", h.Search, p.searches)
	}
	window := Release{Node: h.Node, Step: h.Step}
	if p.held[window] {
		c.at(at, "%s of %s is held already: release it first", h.Step, h.Node)
	}
	p.held[window] = true
}

// faultsOf checks what makes the cluster worse.
func (c *checker) faultsOf(at string, a *Action) {
	switch {
	case a.Partition != nil:
		c.sides(at+".sides", a.Partition.Sides)
	case a.Link != nil:
		c.link(at, a.Link)
	case a.Crash != nil:
		c.node(at+".node", a.Crash.Node, Leader, All)
	case a.Restart != nil:
		c.node(at+".node", a.Restart.Node, All)
	case a.Leave != nil:
		c.node(at+".node", a.Leave.Node, Leader)
	case a.Join != nil:
		if !nodeName(a.Join.Node) {
			c.at(at+".node", "node %q: a manager is m and a number, a data node d and a number, from 1 to 9999", a.Join.Node)
		}
	case a.TransferLeadership != nil:
		c.transfer(at, a.TransferLeadership)
	case a.Disk != nil:
		c.disk(at, a.Disk)
	case a.StarveGossip != nil:
		c.node(at+".node", a.StarveGossip.Node, Leader)
	case a.Clock != nil:
		c.node(at+".node", a.Clock.Node)
	case a.FailCounts != nil:
		c.node(at+".node", a.FailCounts.Node, All)
		if a.FailCounts.Group != "" {
			c.group(at+".group", a.FailCounts.Group, c.groups)
		}
	}
}

// link refuses a share of 0: what a link does not give, it has from the cluster.
func (c *checker) link(at string, l *Link) {
	c.sides(at+".sides", l.Sides)
	for _, share := range []struct {
		key   string
		value float64
	}{{"loss", l.Loss}, {"duplicate", l.Duplicate}, {"reorder", l.Reorder}} {
		if _, given := c.places[at+"."+share.key]; given && share.value == 0 {
			c.at(at+"."+share.key, "%s 0 changes nothing: a link is made worse than the cluster's network, not better", share.key)
			return
		}
	}
	if l.Network == (Network{}) {
		c.at(at, "the links stay as they are: give latency, loss, duplicate or reorder")
	}
}

func (c *checker) transfer(at string, t *TransferLeadership) {
	if t.To == "" {
		return
	}
	managers := slices.DeleteFunc(slices.Clone(c.nodes), func(n string) bool { return n[0] != 'm' })
	c.word(at+".to", "manager", t.To, managers)
}

func (c *checker) disk(at string, d *Disk) {
	c.node(at+".node", d.Node, Leader)
	switch {
	case d.Fault == "slow" && d.By.Max == 0:
		c.at(at, "a slow disk lacks %q", "by")
	case d.Fault == "full" && d.By != (Range{}):
		c.at(at+".by", "by belongs to a slow disk")
	}
}

func (c *checker) sides(path string, sides []Side) {
	if len(sides) < 2 {
		c.at(path, "sides must be two or more but are %d", len(sides))
	}
	seen := map[string]bool{}
	for i, side := range sides {
		at := fmt.Sprintf("%s[%d]", path, i)
		if side.Word == "" && len(side.Nodes) == 0 {
			c.at(at, "nobody is on this side")
		}
		if side.Word != "" {
			c.once(at, side.Word, seen)
		}
		for j, name := range side.Nodes {
			where := fmt.Sprintf("%s[%d]", at, j)
			c.node(where, name, Leader)
			c.once(where, name, seen)
		}
	}
}

func (c *checker) once(path, name string, seen map[string]bool) {
	if seen[name] {
		c.at(path, "%s is on two sides", name)
	}
	seen[name] = true
}
