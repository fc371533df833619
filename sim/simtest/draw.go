package simtest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxDrawn bounds the groups, users and actors that are drawn.
const MaxDrawn = 3

// Groups draws up to [MaxDrawn] groups with names and limits that go together:
// a file may have them all.
func Groups() *rapid.Generator[[]scenario.Group] {
	return rapid.Custom(func(t *rapid.T) []scenario.Group {
		groups := make([]scenario.Group, rapid.IntRange(1, MaxDrawn).Draw(t, "groups"))
		for i := range groups {
			groups[i] = drawGroup(t, fmt.Sprintf("group%d", i+1))
		}
		return groups
	})
}

func drawGroup(t *rapid.T, name string) scenario.Group {
	g := scenario.Group{
		Name:           name,
		ResiliencyMode: rapid.SampledFrom([]cluster.ResiliencyMode{cluster.Soft, cluster.Enforced, cluster.Monitor}).Draw(t, "mode"),
		// A hundredth to 0.3, so that all of them and one more stay within 1.
		ResourceLimits: map[string]float64{rapid.SampledFrom([]string{"cpu", "memory"}).Draw(t, "resource"): float64(rapid.IntRange(1, 30).Draw(t, "percent")) / 100},
	}
	if rapid.IntRange(0, 3).Draw(t, "throttled") > 0 {
		g.Throttling = &scenario.Throttling{
			Attribute: rapid.SampledFrom([]cluster.Attribute{cluster.ByGroup, cluster.ByUsername, cluster.ByRole}).Draw(t, "attribute"),
			NodeLimit: int64(rapid.IntRange(1, 3).Draw(t, "limit")),
		}
	}
	return g
}

// Users draws up to [MaxDrawn] users with up to two roles each. Some names hold
// what joined names are split at.
func Users() *rapid.Generator[map[string]scenario.User] {
	return rapid.Custom(func(t *rapid.T) map[string]scenario.User {
		names := []string{"alice", "bob", "eve", "a,b", "bob,username|eve", "ü|"}
		users := map[string]scenario.User{}
		for range rapid.IntRange(1, MaxDrawn).Draw(t, "users") {
			roles := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"analyst", "batch", "a,b"}), 0, 2, rapid.ID[string]).Draw(t, "roles")
			users[rapid.SampledFrom(names).Draw(t, "user")] = scenario.User{Roles: roles}
		}
		return users
	})
}

// Steps draws up to ten steps for a checked file: requests of its users in its
// groups through its nodes, changes of its groups, windows, and faults that
// end. They take the place of the file's own.
func Steps(f *scenario.File) *rapid.Generator[[]scenario.Step] {
	d := newDrawer(f)
	return rapid.Custom(func(t *rapid.T) []scenario.Step {
		var steps []scenario.Step
		var at time.Duration
		for i := range rapid.IntRange(1, 10).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 2000).Draw(t, "wait")) * time.Millisecond
			step := scenario.Step{At: scenario.Duration(at)}
			if rapid.IntRange(0, 2).Draw(t, "fault") == 0 {
				step.Action = d.fault(t, steps)
			} else {
				step.Action = d.request(t, fmt.Sprintf("search%d", i), searchesOf(steps))
			}
			steps = append(steps, step)
		}
		return steps
	})
}

// Scenarios draws checked files with groups, users, a rule or none, steps, and
// a seed. `wlmsim run` runs them, and they keep every promise.
func Scenarios() *rapid.Generator[*scenario.File] {
	return rapid.Custom(func(t *rapid.T) *scenario.File {
		f := drawFile(t)
		f.Cluster.Managers, f.Cluster.Data = rapid.SampledFrom([]int{1, 3}).Draw(t, "managers"), rapid.IntRange(1, 2).Draw(t, "data")
		f.Steps = Steps(f).Draw(t, "steps")
		return checked(t, f)
	})
}

// Explorations draws checked files with an explore: block of two or three
// actors of one node, whose outcomes are what became of their searches.
func Explorations() *rapid.Generator[*scenario.File] {
	return rapid.Custom(func(t *rapid.T) *scenario.File {
		f := drawFile(t)
		d := newDrawer(f)
		d.nodes = []string{""} // the explored one
		e := &scenario.Explore{Node: "m1", Observe: scenario.Ordered[scenario.Expression]{{Name: "groups", Value: "state(\"m1\").version"}}}
		for i := range rapid.IntRange(2, MaxDrawn).Draw(t, "actors") {
			id := fmt.Sprintf("search%d", i)
			a := d.request(t, id, nil)
			if a.Search != nil {
				e.Observe = append(e.Observe, scenario.Entry[scenario.Expression]{Name: id, Value: scenario.Expression(id + ".status")})
				a.Search.ServiceTime = nil // its clock stands still
			}
			e.Actors = append(e.Actors, scenario.Entry[[]scenario.Action]{Name: fmt.Sprintf("actor%d", i), Value: []scenario.Action{a}})
		}
		f.Explore = e
		return checked(t, f)
	})
}

// drawFile draws what all files have.
func drawFile(t *rapid.T) *scenario.File {
	f := &scenario.File{
		Version: scenario.Version, Name: "Drawn", Seed: uint64(rapid.IntRange(0, 1_000_000).Draw(t, "seed")),
		Users: Users().Draw(t, "users"), Groups: Groups().Draw(t, "groups"),
	}
	if rapid.Bool().Draw(t, "rule") {
		f.Rules = []scenario.Rule{{WorkloadGroup: f.Groups[0].Name, Roles: []string{"analyst"}}}
	}
	return f
}

// checked returns a drawn file as it is read.
func checked(t *rapid.T, f *scenario.File) *scenario.File {
	text := scenario.Print(f)
	g, err := scenario.Parse("drawn", text)
	if err != nil {
		t.Fatalf("a drawn scenario has a fault: %v\n%s", err, text)
	}
	return g
}

// drawer draws actions for a file.
type drawer struct {
	nodes, groups, users []string
}

func newDrawer(f *scenario.File) *drawer {
	d := &drawer{nodes: world.NodeNames(f.Filled()), users: append([]string{""}, slices.Sorted(maps.Keys(f.Users))...)}
	for _, g := range f.Groups {
		d.groups = append(d.groups, g.Name)
	}
	return d
}

func (d *drawer) pick(t *rapid.T, what string, from []string) string {
	if len(from) == 0 {
		return ""
	}
	return rapid.SampledFrom(from).Draw(t, what)
}

func searchesOf(steps []scenario.Step) []string {
	var ids []string
	for i := range steps {
		if s := steps[i].Search; s != nil {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// request draws a request: most are searches, with an id; one may cancel an
// earlier search.
func (d *drawer) request(t *rapid.T, id string, earlier []string) scenario.Action {
	via := scenario.Request{Via: d.pick(t, "via", d.nodes)}
	group := d.pick(t, "group", d.groups)
	kind := rapid.IntRange(0, 7).Draw(t, "request")
	switch {
	case kind == 0 && group != "":
		return scenario.Action{PutGroup: &scenario.PutGroup{Group: drawGroup(t, group), Request: via}}
	case kind == 1 && group != "":
		return scenario.Action{DeleteGroup: &scenario.DeleteGroup{Name: group, Request: via}}
	case kind == 2:
		return scenario.Action{GetGroups: &scenario.GetGroups{Request: via}}
	case kind == 3 && len(earlier) > 0:
		return scenario.Action{Cancel: &scenario.Cancel{Search: d.pick(t, "search", earlier)}}
	}
	via.ID = id
	s := &scenario.Search{Request: via, User: d.pick(t, "user", d.users), Group: group}
	if ms := rapid.IntRange(0, 3000).Draw(t, "service ms"); ms > 0 {
		s.ServiceTime = &scenario.ServiceTime{Fixed: scenario.Duration(ms) * scenario.Duration(time.Millisecond)}
	}
	return scenario.Action{Search: s}
}

// fault draws a window, which closes at the end of the run, or a fault.
func (d *drawer) fault(t *rapid.T, earlier []scenario.Step) scenario.Action {
	on := d.pick(t, "node", d.nodes)
	lasts := scenario.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * scenario.Duration(time.Second)
	switch rapid.IntRange(0, 4).Draw(t, "fault") {
	case 0:
		return scenario.Action{Crash: &scenario.Crash{Node: on, RestartAfter: lasts}}
	case 1:
		between := scenario.Between{Sides: []scenario.Side{{Nodes: []string{on}}, {Word: scenario.Rest}}, OneWay: rapid.Bool().Draw(t, "one way"), For: lasts}
		return scenario.Action{Partition: &scenario.Partition{Between: between}}
	case 2:
		return scenario.Action{Delay: &scenario.Delay{Node: on, Step: probe.ApplierNotify, By: scenario.Range{Max: lasts / 10}, For: lasts}}
	case 3:
		if slices.ContainsFunc(earlier, func(s scenario.Step) bool { return s.Hold != nil && s.Hold.Node == on }) {
			break // it is held already
		}
		return scenario.Action{Hold: &scenario.Hold{Node: on, Step: probe.ApplierPublished, Count: rapid.IntRange(1, 3).Draw(t, "count")}}
	}
	return scenario.Action{FailCounts: &scenario.FailCounts{Node: on, For: lasts}}
}
