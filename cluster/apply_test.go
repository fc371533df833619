package cluster_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
)

// everything is what a State shows, copied to the last pointer.
type everything struct {
	Settings cluster.Settings
	Groups   []cluster.Group
	Rules    []cluster.Rule
	Indices  []cluster.Index
	Nodes    []cluster.Node
}

func contents(s *cluster.State) everything {
	shallow := everything{s.Settings(), values(s.Groups()), values(s.Rules()), values(s.Indices()), values(s.Nodes())}
	return deepCopy(reflect.ValueOf(shallow)).Interface().(everything)
}

func values[T any](entries []*T) []T {
	var copied []T
	for _, e := range entries {
		copied = append(copied, *e)
	}
	return copied
}

func deepCopy(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(deepCopy(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				c.Index(i).Set(deepCopy(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				c.SetMapIndex(k, deepCopy(v.MapIndex(k)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.Field(i).Set(deepCopy(v.Field(i)))
		}
	}
	return c
}

// scribble changes every text, number and list that a command points to.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribbled")
		}
	case reflect.Int64:
		if v.CanSet() {
			v.SetInt(-77)
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			scribble(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Value{})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	}
}

// checkTransition holds Apply to promise 1 and returns what it returned.
func checkTransition(t require.TestingT, s *cluster.State, c cluster.Command) (*cluster.State, error) {
	before := contents(s)
	version := s.Version()
	mine := deepCopy(reflect.ValueOf(c)).Interface().(cluster.Command)
	next, err := cluster.Apply(s, mine)
	again, errAgain := cluster.Apply(s, c)
	require.Equal(t, before, contents(s), "the old state is untouched")
	require.Equal(t, version, s.Version())
	require.Equal(t, err, errAgain)
	if err != nil {
		require.Nil(t, next)
		require.NotEmpty(t, cluster.KindOf(err))
		return nil, err
	}
	require.Equal(t, version+1, next.Version())
	require.Equal(t, contents(again), contents(next), "the same input gives the same state")
	kept := contents(next)
	scribble(reflect.ValueOf(mine))
	require.Equal(t, kept, contents(next), "a state shares no memory with its command")
	for _, g := range next.Groups() {
		require.Same(t, g, next.Group(g.ID))
		require.Same(t, g, next.GroupNamed(g.Name))
	}
	require.True(t, slices.IsSortedFunc(next.Groups(), func(a, b *cluster.Group) int { return cmp.Compare(a.ID, b.ID) }))
	return next, nil
}

var (
	names   = rapid.SampledFrom([]string{"a", "b", "c", "d", "", "é <&>", strings.Repeat("long", 20)})
	anyTime = rapid.Int64()
	limits  = rapid.OneOf(rapid.Just(map[string]float64(nil)), rapid.MapOf(rapid.SampledFrom([]string{"cpu", "memory", "CPU"}), rapid.SampledFrom([]float64{0.1, 0.25, 0.5, 1, 0, -1, 2})))
	lists   = rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(names, 0, 3))
	keys    = rapid.SampledFrom([]string{cluster.SettingMode, cluster.SettingMaxGroups, cluster.SettingMaxRules, cluster.SettingCPUCancellation, "search.max_buckets", "guess"})
	texts   = rapid.SampledFrom([]string{"enabled", "2", "10", "0.5", "-1", "true", "5s", "?"})
)

func optional[T any](g *rapid.Generator[T]) *rapid.Generator[cluster.Optional[T]] {
	return rapid.Custom(func(t *rapid.T) cluster.Optional[T] {
		switch rapid.IntRange(0, 2).Draw(t, "given") {
		case 0:
			return cluster.Optional[T]{}
		case 1:
			return cluster.Null[T]()
		}
		return cluster.Give(g.Draw(t, "value"))
	})
}

var (
	nodeLimits = rapid.SampledFrom([]int64{1, 5, 0, -1, 1 << 40})
	attributes = rapid.SampledFrom([]cluster.Attribute{cluster.ByGroup, cluster.ByUsername, cluster.ByRole, "tenant"})
	forms      = rapid.SampledFrom([]cluster.DimensionKey{"", "", cluster.KeyBy})
	modes      = rapid.SampledFrom([]cluster.ResiliencyMode{cluster.Soft, cluster.Enforced, cluster.Monitor, "", "hard"})
	throttling = rapid.Ptr(rapid.Custom(func(t *rapid.T) cluster.Throttling {
		made := cluster.Throttling{NodeLimit: rapid.Ptr(nodeLimits, true).Draw(t, "limit")}
		dimension := rapid.OneOf(attributes, rapid.Just(cluster.Attribute(""))).Draw(t, "dimension")
		if forms.Draw(t, "field") == cluster.KeyBy {
			made.By = dimension
		} else {
			made.Attribute = dimension
		}
		return made
	}), true)
	patches = rapid.OneOf(rapid.Just(map[string]*string(nil)), rapid.MapOf(keys, rapid.Ptr(texts, true)))
	stored  = rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOf(keys, texts))
)

// anyCommand draws commands of every kind, sensible ones and garbage.
func anyCommand() *rapid.Generator[cluster.Command] {
	return rapid.Custom(func(t *rapid.T) cluster.Command {
		name := names.Draw(t, "name")
		at := anyTime.Draw(t, "at")
		switch rapid.IntRange(0, 10).Draw(t, "kind") {
		case 0:
			return &cluster.CreateGroup{Group: cluster.Group{ID: names.Draw(t, "id"), Name: name, ResiliencyMode: modes.Draw(t, "mode"), ResourceLimits: limits.Draw(t, "limits"),
				Settings: stored.Draw(t, "settings"), Throttling: throttling.Draw(t, "throttling"), UpdatedAt: at}, Form: forms.Draw(t, "form")}
		case 1:
			return &cluster.UpdateGroup{Name: name, ResiliencyMode: modes.Draw(t, "mode"), ResourceLimits: limits.Draw(t, "limits"),
				Settings: cluster.SettingsPatch{Clear: rapid.Bool().Draw(t, "clear"), Set: patches.Draw(t, "set")},
				Throttling: cluster.ThrottlingPatch{Clear: rapid.Bool().Draw(t, "clear"), Attribute: optional(attributes).Draw(t, "attribute"),
					By: optional(rapid.SampledFrom([]cluster.Attribute{cluster.ByUsername, cluster.ByRole})).Draw(t, "by"), NodeLimit: optional(nodeLimits).Draw(t, "limit")},
				UpdatedAt: at, Form: forms.Draw(t, "form")}
		case 2:
			return &cluster.DeleteGroup{Name: name}
		case 3:
			return &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: patches.Draw(t, "persistent"), Transient: patches.Draw(t, "transient")}}
		case 4:
			return &cluster.CreateRule{Rule: cluster.Rule{ID: name, Description: name, WorkloadGroup: names.Draw(t, "group"), IndexPatterns: lists.Draw(t, "indices"),
				Usernames: lists.Draw(t, "users"), Roles: lists.Draw(t, "roles"), UpdatedAt: at}}
		case 5:
			return &cluster.UpdateRule{ID: name, Description: names.Draw(t, "description"), WorkloadGroup: names.Draw(t, "group"), IndexPatterns: lists.Draw(t, "indices"),
				Usernames: lists.Draw(t, "users"), Roles: lists.Draw(t, "roles"), UpdatedAt: at}
		case 6:
			return &cluster.DeleteRule{ID: name}
		case 7:
			return &cluster.CreateIndex{Name: name, UUID: "u", Shards: rapid.IntRange(-1, 5).Draw(t, "shards"), CreatedAt: at,
				ServiceTime: cluster.ServiceTime{Distribution: cluster.Distribution(name), Mean: time.Duration(at)}}
		case 8:
			return &cluster.DeleteIndex{Name: name}
		case 9:
			return &cluster.PutNode{Node: cluster.Node{Name: name, ID: "i", Roles: rapid.OneOf(rapid.Just([]cluster.Role(nil)),
				rapid.SliceOfN(rapid.SampledFrom([]cluster.Role{cluster.Manager, cluster.Data, "x"}), 0, 2)).Draw(t, "roles")}}
		}
		return &cluster.RemoveNode{Name: name}
	})
}

func drawState(t *rapid.T) *cluster.State {
	s := seedState(t)
	for _, c := range rapid.SliceOfN(anyCommand(), 0, 15).Draw(t, "commands") {
		if next, err := cluster.Apply(s, c); err == nil {
			s = next
		}
	}
	return s
}

// seedCommands has one of every kind; applied in order, none is refused.
func seedCommands() []cluster.Command {
	return []cluster.Command{
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "id1", Roles: []cluster.Role{cluster.Data}}},
		create(throttled("a", "a", cluster.ByUsername, 5)),
		create(group("b", "b")),
		&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: ptr("enabled")}, Transient: map[string]*string{cluster.SettingMode: nil}}},
		&cluster.UpdateGroup{Name: "a", ResourceLimits: map[string]float64{"memory": 0.2}, Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](7)}, UpdatedAt: 2},
		&cluster.CreateRule{Rule: cluster.Rule{ID: "a", Description: "d", WorkloadGroup: "a", Usernames: []string{"u"}, UpdatedAt: 3}},
		&cluster.CreateRule{Rule: cluster.Rule{ID: "b", Description: "d", WorkloadGroup: "b", Roles: []string{"r"}, UpdatedAt: 3}},
		&cluster.UpdateRule{ID: "a", IndexPatterns: []string{"logs*"}, UpdatedAt: 4},
		&cluster.CreateIndex{Name: "a", UUID: "u", Shards: 3, ServiceTime: cluster.ServiceTime{Distribution: cluster.Exponential, Mean: time.Second}},
		&cluster.CreateIndex{Name: "b", UUID: "v", Shards: 1},
		&cluster.DeleteIndex{Name: "b"},
		&cluster.DeleteRule{ID: "b"},
		&cluster.DeleteGroup{Name: "b"},
		&cluster.PutNode{Node: cluster.Node{Name: "d2", ID: "id2", Roles: []cluster.Role{cluster.Data, cluster.Manager}}},
		&cluster.RemoveNode{Name: "d2"},
	}
}

func seedState(t require.TestingT) *cluster.State {
	return apply(t, cluster.Empty(), seedCommands()...)
}

// Promise 1, on sensible commands and on garbage.
func TestApplyIsPureAndTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := seedState(t)
		for _, c := range rapid.SliceOfN(anyCommand(), 1, 15).Draw(t, "commands") {
			if next, err := checkTransition(t, s, c); err == nil {
				s = next
			}
		}
	})
}

// Promise 2: what Validate takes, a state without other groups takes as well.
// Whatever is stored has a fault exactly if Validate would refuse it.
func TestWhatValidateTakesIsStoredWithoutAFault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCommand().Filter(func(c cluster.Command) bool { _, is := c.(*cluster.CreateGroup); return is }).Draw(t, "create")
		valid := c.Validate() == nil
		s, err := cluster.Apply(cluster.Empty(), c)
		if err != nil {
			require.False(t, valid, "%v", err)
			return
		}
		require.Equal(t, valid, len(s.Groups()[0].Faults(c.(*cluster.CreateGroup).Form)) == 0)
	})
}

// model is the state as maps, changed in place, written from the reference.
type model struct {
	groups  map[string]cluster.Group // by name
	rules   map[string]cluster.Rule
	indices map[string]cluster.Index
	nodes   map[string]cluster.Node
	set     [2]map[string]string // persistent, transient
}

func (m *model) setting(key string) string {
	for _, set := range []map[string]string{m.set[1], m.set[0]} {
		if v, ok := set[key]; ok {
			return v
		}
	}
	return cluster.KnownSettings()[key].Default
}

// bound is a setting's number, or its default where that is out of bounds.
func (m *model) bound(key string, least, most int) int {
	n, err := strconv.Atoi(m.setting(key))
	if err != nil || n < least || n > most {
		n, _ = strconv.Atoi(cluster.KnownSettings()[key].Default)
	}
	return n
}

func (m *model) sumOver(name string, asked map[string]float64) bool {
	for resource, sum := range asked {
		for _, g := range m.groups {
			if g.Name != name {
				sum += g.ResourceLimits[resource]
			}
		}
		if sum > 1 && resource != "CPU" {
			return true
		}
	}
	return false
}

func (m *model) idTaken(id string) bool {
	for _, g := range m.groups {
		if g.ID == id {
			return true
		}
	}
	return false
}

func (m *model) ruleFits(r cluster.Rule) bool {
	if !m.idTaken(r.WorkloadGroup) {
		return false
	}
	for id, o := range m.rules {
		if id != r.ID && set(o.IndexPatterns) == set(r.IndexPatterns) && set(o.Usernames) == set(r.Usernames) && set(o.Roles) == set(r.Roles) {
			return false
		}
	}
	return true
}

func set(values []string) string {
	return fmt.Sprintf("%q", slices.Compact(slices.Sorted(slices.Values(values))))
}

func overwrite[T any](old, given T, is bool) T {
	if is {
		return given
	}
	return old
}

// throttles is what a merged throttling must be, form by form.
func throttles(t *cluster.Throttling, form cluster.DimensionKey) bool {
	if t.NodeLimit == nil || *t.NodeLimit < 1 || *t.NodeLimit > cluster.MaxNodeLimit {
		return false
	}
	if form == cluster.KeyBy {
		return t.Attribute == "" && (t.By == "" || t.By == cluster.ByUsername || t.By == cluster.ByRole)
	}
	return t.By == "" && (t.Attribute == cluster.ByGroup || t.Attribute == cluster.ByUsername || t.Attribute == cluster.ByRole)
}

// apply changes the model and says whether the command is accepted.
func (m *model) apply(c cluster.Command) bool {
	switch c := c.(type) {
	case *cluster.CreateGroup:
		_, named := m.groups[c.Group.Name]
		if len(m.groups) == m.bound(cluster.SettingMaxGroups, 1, 100) || named || m.idTaken(c.Group.ID) || m.sumOver(c.Group.Name, c.Group.ResourceLimits) {
			return false
		}
		m.groups[c.Group.Name] = c.Group
	case *cluster.UpdateGroup:
		g, named := m.groups[c.Name]
		if !named {
			return false
		}
		g.ResiliencyMode = overwrite(g.ResiliencyMode, c.ResiliencyMode, c.ResiliencyMode != "")
		merged := maps.Clone(g.ResourceLimits)
		if merged == nil && len(c.ResourceLimits) > 0 {
			merged = map[string]float64{}
		}
		maps.Copy(merged, c.ResourceLimits)
		g.ResourceLimits, g.UpdatedAt = merged, c.UpdatedAt
		g.Settings = patched(g.Settings, c.Settings.Set, c.Settings.Clear)
		merge := cluster.Throttling{}
		if g.Throttling != nil && !c.Throttling.Clear {
			merge = *g.Throttling
		}
		for _, field := range []struct {
			of    *cluster.Attribute
			given cluster.Optional[cluster.Attribute]
		}{{&merge.Attribute, c.Throttling.Attribute}, {&merge.By, c.Throttling.By}} {
			if field.given.Given && !c.Throttling.Clear {
				*field.of = ""
				if field.given.Value != nil {
					*field.of = *field.given.Value
				}
			}
		}
		if l := c.Throttling.NodeLimit; l.Given && !c.Throttling.Clear {
			merge.NodeLimit = l.Value
		}
		if g.Throttling = nil; merge != (cluster.Throttling{}) {
			g.Throttling = &merge
			if !throttles(&merge, c.Form) {
				return false
			}
		}
		if m.sumOver(c.Name, c.ResourceLimits) {
			return false
		}
		m.groups[c.Name] = g
	case *cluster.DeleteGroup:
		for _, r := range m.rules {
			if g, there := m.groups[c.Name]; there && g.ID == r.WorkloadGroup {
				return false
			}
		}
		return remove(m.groups, c.Name)
	case *cluster.PutSettings:
		old := m.set
		m.set = [2]map[string]string{patched(old[0], c.Persistent, false), patched(old[1], c.Transient, false)}
		cancellation, errC := strconv.ParseFloat(m.setting(cluster.SettingCPUCancellation), 64)
		if errC == nil && cancellation < 0.8 {
			m.set = old
			return false
		}
	case *cluster.CreateRule:
		if _, there := m.rules[c.Rule.ID]; there || len(m.rules) >= m.bound(cluster.SettingMaxRules, 10, 1<<30) || !m.ruleFits(c.Rule) {
			return false
		}
		m.rules[c.Rule.ID] = c.Rule
	case *cluster.UpdateRule:
		r, there := m.rules[c.ID]
		r.UpdatedAt = c.UpdatedAt
		r.Description = overwrite(r.Description, c.Description, c.Description != "")
		r.WorkloadGroup = overwrite(r.WorkloadGroup, c.WorkloadGroup, c.WorkloadGroup != "")
		r.IndexPatterns = overwrite(r.IndexPatterns, c.IndexPatterns, c.IndexPatterns != nil)
		r.Usernames = overwrite(r.Usernames, c.Usernames, c.Usernames != nil)
		r.Roles = overwrite(r.Roles, c.Roles, c.Roles != nil)
		if !there || !m.ruleFits(r) {
			return false
		}
		m.rules[c.ID] = r
	case *cluster.DeleteRule:
		return remove(m.rules, c.ID)
	case *cluster.CreateIndex:
		var holders []string
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			if slices.Contains(m.nodes[name].Roles, cluster.Data) {
				holders = append(holders, name)
			}
		}
		if _, there := m.indices[c.Name]; there || c.Shards < 1 || len(holders) == 0 {
			return false
		}
		x := cluster.Index{Name: c.Name, UUID: c.UUID, ServiceTime: c.ServiceTime, CreatedAt: c.CreatedAt}
		for shard := range c.Shards {
			x.ShardNodes = append(x.ShardNodes, holders[shard%len(holders)])
		}
		m.indices[c.Name] = x
	case *cluster.DeleteIndex:
		return remove(m.indices, c.Name)
	case *cluster.PutNode:
		m.nodes[c.Node.Name] = c.Node
	case *cluster.RemoveNode:
		return remove(m.nodes, c.Name)
	}
	return true
}

func remove[T any](from map[string]T, key string) bool {
	_, there := from[key]
	delete(from, key)
	return there
}

func patched(old map[string]string, set map[string]*string, clear bool) map[string]string {
	merged := map[string]string{}
	if clear {
		return nil
	}
	maps.Copy(merged, old)
	for k, v := range set {
		if delete(merged, k); v != nil {
			merged[k] = *v
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

func sorted[T any](entries map[string]T, key func(T) string) []T {
	var all []T
	for _, e := range entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return all
}

func (m *model) contents() everything {
	return everything{
		cluster.Settings{Persistent: m.set[0], Transient: m.set[1]},
		sorted(m.groups, func(g cluster.Group) string { return g.ID }), sorted(m.rules, func(r cluster.Rule) string { return r.ID }),
		sorted(m.indices, func(x cluster.Index) string { return x.Name }), sorted(m.nodes, func(n cluster.Node) string { return n.Name }),
	}
}

// Apply against maps that are changed in place.
func TestApplyAgreesWithANaiveModel(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.Empty()
		m := &model{map[string]cluster.Group{}, map[string]cluster.Rule{}, map[string]cluster.Index{}, map[string]cluster.Node{}, [2]map[string]string{}}
		for _, c := range rapid.SliceOfN(anyCommand(), 1, 40).Draw(t, "commands") {
			next, err := cluster.Apply(s, c)
			require.Equal(t, m.apply(c), err == nil, "%s %+v: %v", cluster.KindName(c), c, err)
			if err == nil {
				s = next
				accepted++
			} else {
				refused++
			}
			require.Equal(t, m.contents(), contents(s))
		}
	})
	require.Greater(t, accepted, 100, "the draw reaches both sides")
	require.Greater(t, refused, 100)
}

// Section 1.4 of the reference and case C36.
func TestAPartialUpdateChangesWhatItGives(t *testing.T) {
	start := throttled("a", "a", cluster.ByUsername, 5)
	start.ResourceLimits = map[string]float64{"cpu": 0.3}
	start.Settings = map[string]string{"search.max_buckets": "9"}
	by, limit := cluster.Give(cluster.ByRole), cluster.Give[int64](7)
	noBy, noLimit := cluster.Null[cluster.Attribute](), cluster.Null[int64]()
	throttle := func(a cluster.Attribute, n int64) func(*cluster.Group) {
		return func(g *cluster.Group) { g.Throttling = &cluster.Throttling{Attribute: a, NodeLimit: &n} }
	}
	for _, row := range []struct {
		name   string
		update cluster.UpdateGroup
		want   func(*cluster.Group)
		err    string
	}{
		{"nothing", cluster.UpdateGroup{}, func(*cluster.Group) {}, ""},
		{"a limit is added, the other stays", cluster.UpdateGroup{ResourceLimits: map[string]float64{"memory": 0.4}}, func(g *cluster.Group) { g.ResourceLimits["memory"] = 0.4 }, ""},
		{"a limit is overwritten", cluster.UpdateGroup{ResourceLimits: map[string]float64{"cpu": 1}}, func(g *cluster.Group) { g.ResourceLimits["cpu"] = 1 }, ""},
		{"mode", cluster.UpdateGroup{ResiliencyMode: cluster.Monitor}, func(g *cluster.Group) { g.ResiliencyMode = cluster.Monitor }, ""},
		{"node_limit alone", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{NodeLimit: limit}}, throttle(cluster.ByUsername, 7), ""},
		{"attribute alone", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Attribute: by}}, throttle(cluster.ByRole, 5), ""},
		{"both", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Attribute: by, NodeLimit: limit}}, throttle(cluster.ByRole, 7), ""},
		{"throttling null or {}", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Clear: true}}, func(g *cluster.Group) { g.Throttling = nil }, ""},
		{"both null", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Attribute: noBy, NodeLimit: noLimit}}, func(g *cluster.Group) { g.Throttling = nil }, ""},
		{"node_limit null", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{NodeLimit: noLimit}}, nil, needsLimit},
		{"attribute null", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Attribute: noBy}}, nil, "throttling.attribute is required when a throttle limit is set"},
		{"node_limit 0", cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](0)}}, nil, ceiling},
		{"a setting is added and one removed", cluster.UpdateGroup{Settings: cluster.SettingsPatch{Set: map[string]*string{"search.max_buckets": nil, "override_request_values": ptr("true")}}}, func(g *cluster.Group) { g.Settings = map[string]string{"override_request_values": "true"} }, ""},
		{"settings null or {}", cluster.UpdateGroup{Settings: cluster.SettingsPatch{Clear: true}}, func(g *cluster.Group) { g.Settings = nil }, ""},
		{"the sum leaves the group's own out", cluster.UpdateGroup{ResourceLimits: map[string]float64{"cpu": 0.99}}, func(g *cluster.Group) { g.ResourceLimits["cpu"] = 0.99 }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := apply(t, cluster.Empty(), create(start))
			row.update.Name, row.update.UpdatedAt = "a", 99
			next, err := cluster.Apply(s, &row.update)
			if row.err != "" {
				require.EqualError(t, err, row.err)
				require.Nil(t, next)
				return
			}
			require.NoError(t, err)
			want := deepCopy(reflect.ValueOf(start)).Interface().(cluster.Group)
			want.UpdatedAt = 99
			row.want(&want)
			require.Equal(t, &want, next.Group("a"))
			require.Equal(t, contents(next), contents(decodeState(t, encodeState(t, next))), "the same after a restart")
		})
	}
}

// C36: two partial updates in either order leave both changes.
func TestTwoPartialUpdatesLoseNothing(t *testing.T) {
	limit := &cluster.UpdateGroup{Name: "a", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](7)}, UpdatedAt: 2}
	cpu := &cluster.UpdateGroup{Name: "a", ResourceLimits: map[string]float64{"cpu": 0.4}, UpdatedAt: 2}
	s := apply(t, cluster.Empty(), create(throttled("a", "a", cluster.ByUsername, 5)))
	require.Equal(t, contents(apply(t, s, limit, cpu)), contents(apply(t, s, cpu, limit)))
	g := apply(t, s, limit, cpu).Group("a")
	require.EqualValues(t, 7, *g.Throttling.NodeLimit)
	require.Equal(t, 0.4, g.ResourceLimits["cpu"])
}

// What an update may not give is refused before any state is asked.
func TestAnUpdateIsValidatedAlone(t *testing.T) {
	for _, row := range []struct {
		update  cluster.UpdateGroup
		message string
	}{
		{cluster.UpdateGroup{ResiliencyMode: "hard"}, "Invalid value for WorkloadGroupMode: hard"},
		{cluster.UpdateGroup{ResourceLimits: map[string]float64{"disk": 0.1}}, "Unknown resource type: [disk]"},
		{cluster.UpdateGroup{ResourceLimits: map[string]float64{"cpu": 1.5}}, "resource value should be greater than 0 and less or equal to 1.0"},
		{cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{Attribute: cluster.Give[cluster.Attribute]("x")}}, "throttling.attribute must be one of [group, username, role] but was 'x'"},
		{cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](-1)}}, "throttling.node_limit must be non-negative but was -1"},
		{cluster.UpdateGroup{Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](0)}}, ceiling},
		{cluster.UpdateGroup{Settings: cluster.SettingsPatch{Set: map[string]*string{"search.max_buckets": ptr("-1")}}}, "Invalid value '-1' for search.max_buckets: Failed to parse value [-1] for setting [search.max_buckets] must be >= 0"},
	} {
		require.EqualError(t, row.update.Validate(), row.message)
	}
	require.NoError(t, (&cluster.UpdateGroup{Settings: cluster.SettingsPatch{Set: map[string]*string{"gone": nil}}}).Validate())
}

// A deleted group that comes back under its name is another group, and is
// removed and added in a diff.
func TestAGroupThatComesBackHasANewIdentity(t *testing.T) {
	s := apply(t, cluster.Empty(), create(group("z", "a")))
	next := apply(t, s, &cluster.DeleteGroup{Name: "a"}, create(group("b", "a")))
	require.Equal(t, []cluster.Change[cluster.Group]{{Key: "b", New: next.Group("b")}, {Key: "z", Old: s.Group("z")}}, cluster.Diff(s, next).Groups)
}

// Promise 4 against a walk over all keys.
func TestDiffAgreesWithANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, next := drawState(t), drawState(t)
		if rapid.Bool().Draw(t, "copy") {
			next = decodeState(t, encodeState(t, next)) // shares no address
		}
		d := cluster.Diff(old, next)
		require.Equal(t, naive(old.Groups(), next.Groups(), func(g *cluster.Group) string { return g.ID }), d.Groups)
		require.Equal(t, naive(old.Rules(), next.Rules(), func(r *cluster.Rule) string { return r.ID }), d.Rules)
		require.Equal(t, naive(old.Indices(), next.Indices(), func(x *cluster.Index) string { return x.Name }), d.Indices)
		require.Equal(t, naive(old.Nodes(), next.Nodes(), func(n *cluster.Node) string { return n.Name }), d.Nodes)
		require.Equal(t, !reflect.DeepEqual(old.Settings(), next.Settings()), d.Settings)
		require.Equal(t, reflect.DeepEqual(contents(old), contents(next)), d.Empty())
	})
}

func naive[T any](old, next []*T, key func(*T) string) []cluster.Change[T] {
	byKey := map[string]cluster.Change[T]{}
	for _, e := range old {
		byKey[key(e)] = cluster.Change[T]{Key: key(e), Old: e}
	}
	for _, e := range next {
		byKey[key(e)] = cluster.Change[T]{Key: key(e), Old: byKey[key(e)].Old, New: e}
	}
	var all []cluster.Change[T]
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		if !reflect.DeepEqual(byKey[k].Old, byKey[k].New) {
			all = append(all, byKey[k])
		}
	}
	return all
}

func TestMatchIndices(t *testing.T) {
	s := apply(t, cluster.Empty(), &cluster.PutNode{Node: cluster.Node{Name: "d2", ID: "2", Roles: []cluster.Role{cluster.Data}}},
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "1", Roles: []cluster.Role{cluster.Data}}}, &cluster.PutNode{Node: cluster.Node{Name: "m1", ID: "3"}})
	for _, name := range []string{"logs-2", "logs-1", "a", "aba", "metrics"} {
		s = apply(t, s, &cluster.CreateIndex{Name: name, Shards: 3})
	}
	require.Equal(t, []string{"d1", "d2", "d1"}, s.Index("a").ShardNodes, "in turn over the data nodes by name")
	for _, row := range []struct{ expression, want string }{
		{"", "a aba logs-1 logs-2 metrics"}, {"_all", "a aba logs-1 logs-2 metrics"}, {"*", "a aba logs-1 logs-2 metrics"}, {"a,_all", "a aba logs-1 logs-2 metrics"},
		{"metrics", "metrics"}, {"logs-*", "logs-1 logs-2"}, {"*s*", "logs-1 logs-2 metrics"}, {"metrics,logs-1,logs-*", "logs-1 logs-2 metrics"},
		{"a*a", "aba"}, {"a*", "a aba"}, {"*a", "a aba"}, {"*ab*a", "aba"}, {"nothing*", ""},
		{"logs", "no such index [logs]"}, {"a,,a", "no such index []"}, {"logs-*,x", "no such index [x]"},
	} {
		found, err := s.MatchIndices(row.expression)
		got := []string{}
		for _, x := range found {
			got = append(got, x.Name)
		}
		if err != nil {
			require.Equal(t, cluster.IndexNotFound, cluster.KindOf(err))
			got = []string{err.Error()}
		}
		require.Equal(t, row.want, strings.Join(got, " "), "MatchIndices(%q)", row.expression)
	}
}

// What OpenSearch's three parameters say of an expression.
func TestIndexOptions(t *testing.T) {
	s := apply(t, cluster.Empty(), &cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "1", Roles: []cluster.Role{cluster.Data}}})
	for _, name := range []string{"a", "logs-1", "logs-2"} {
		s = apply(t, s, &cluster.CreateIndex{Name: name, Shards: 1})
	}
	ignoring, strict := cluster.IndexOptions{IgnoreUnavailable: true}, cluster.IndexOptions{RefuseNone: true}
	both, closed, none := cluster.IndexOptions{IgnoreUnavailable: true, RefuseNone: true}, cluster.IndexOptions{Wildcards: cluster.ExpandClosed}, cluster.IndexOptions{Wildcards: cluster.ExpandNone}
	for _, row := range []struct {
		expression string
		options    cluster.IndexOptions
		want       string
	}{
		{"gone", ignoring, ""}, {"gone,a", ignoring, "a"}, {"gone*,logs-*", ignoring, "logs-1 logs-2"},
		{"gone*", strict, "no such index [gone*]"}, {"a,gone*", strict, "no such index [gone*]"}, {"logs*", strict, "logs-1 logs-2"}, {"", strict, "a logs-1 logs-2"}, {"gone", strict, "no such index [gone]"},
		{"gone", both, "no such index [gone]"}, {"gone,a", both, "a"},
		{"logs*", closed, ""}, {"_all", closed, ""}, {"a", closed, "a"}, {"", cluster.IndexOptions{RefuseNone: true, Wildcards: cluster.ExpandClosed}, "no such index [_all]"},
		{"logs*", none, "no such index [logs*]"}, {"a", none, "a"}, {"", none, ""}, {"logs*", cluster.IndexOptions{IgnoreUnavailable: true, Wildcards: cluster.ExpandNone}, ""},
	} {
		found, err := s.MatchIndicesBy(row.expression, row.options)
		got := []string{}
		for _, x := range found {
			got = append(got, x.Name)
		}
		if err != nil {
			require.Equal(t, cluster.IndexNotFound, cluster.KindOf(err))
			got = []string{err.Error()}
		}
		require.Equal(t, row.want, strings.Join(got, " "), "%q %+v", row.expression, row.options)
	}
}

func TestParseWildcards(t *testing.T) {
	for text, want := range map[string]cluster.Wildcards{
		"open": cluster.ExpandOpen, "all": cluster.ExpandOpen, "open,closed,hidden": cluster.ExpandOpen, "closed": cluster.ExpandClosed, "closed,hidden": cluster.ExpandClosed,
		"none": cluster.ExpandNone, "hidden": cluster.ExpandNone, "open,none": cluster.ExpandNone, "none,open": cluster.ExpandOpen,
	} {
		got, err := cluster.ParseWildcards(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "Open", "open,", "opne"} {
		_, err := cluster.ParseWildcards(text)
		require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err), text)
		require.ErrorContains(t, err, "No valid expand wildcard value [")
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"-1": -1, "0": 0, "0s": 0, "5nanos": 5, "7micros": 7 * time.Microsecond, "20ms": 20 * time.Millisecond, "30s": 30 * time.Second,
		"1m": time.Minute, "2h": 2 * time.Hour, "3d": 72 * time.Hour, "4611686018427387904nanos": 1 << 62,
	} {
		got, err := cluster.ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5", "s", "1.5s", "-2", "-5s", "5 s", "5S", "5w", "9223372036854775808ms", "99999999999d", "5nano", "msms"} {
		_, err := cluster.ParseTime(text)
		require.EqualError(t, err, fmt.Sprintf("[%s] is not -1, 0, or a whole number with a unit (nanos, micros, ms, s, m, h, d)", text))
	}
}

// 10,000 updates of one group among a hundred, as in case C28.
func BenchmarkUpdateGroup(b *testing.B) {
	s := cluster.Empty()
	for n := range 100 {
		g := throttled(fmt.Sprintf("id-%022d", n), fmt.Sprint("group", n), cluster.ByUsername, 5)
		g.ResourceLimits["cpu"] = 0.001
		s = apply(b, s, create(g))
	}
	update := &cluster.UpdateGroup{Name: "group50", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](7)}}
	b.ReportAllocs()
	for b.Loop() {
		s = apply(b, s, update)
	}
}

// A create asks every rule whether it is the same.
func BenchmarkCreateRuleAmong10000(b *testing.B) {
	s := apply(b, cluster.Empty(), create(group("g", "g")), &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMaxRules: ptr("20000")}}})
	rule := func(n int) *cluster.CreateRule {
		return &cluster.CreateRule{Rule: cluster.Rule{ID: fmt.Sprintf("%08d", n), Description: "d", WorkloadGroup: "g", Usernames: []string{fmt.Sprint("user", n)}}}
	}
	for n := range 10_000 {
		s = apply(b, s, rule(n))
	}
	last := rule(10_000)
	b.ReportAllocs()
	for b.Loop() {
		apply(b, s, last)
	}
}
