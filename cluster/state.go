package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// State is one version of the cluster's state. It is immutable. The nil State
// is not valid; [Empty] returns the first one.
type State struct {
	version  uint64
	settings Settings
	groups   []*Group // by id
	rules    []*Rule  // by id
	indices  []*Index // by name
	nodes    []*Node  // by name

	resolved resolved
	byID     map[string]*Group
}

// Empty returns the state before any command: version 0 and all defaults.
func Empty() *State { return empty }

// empty is not changed, as no state is.
var empty = func() *State {
	s := &State{}
	s.setSettings(Settings{})
	s.setGroups(nil)
	return s
}()

// setSettings and setGroups change a draft together with what is derived.

func (s *State) setSettings(settings Settings) {
	s.settings = settings
	s.resolved = settings.resolve()
}

func (s *State) setGroups(groups []*Group) {
	s.groups = groups
	s.byID = make(map[string]*Group, len(groups))
	for _, g := range groups {
		s.byID[g.ID] = g
	}
}

// Version counts the commands that changed the state.
func (s *State) Version() uint64 { return s.version }

// Settings returns what was set; see [State.Mode] and its like for what holds.
// The maps are shared and must not be changed.
func (s *State) Settings() Settings { return s.settings }

// Groups returns all groups, sorted by id. The slice is shared.
func (s *State) Groups() []*Group { return s.groups }

// Group returns the group of an id, or nil.
func (s *State) Group(id string) *Group { return s.byID[id] }

// GroupNamed returns the group of a name, or nil. It looks through all groups;
// a search asks by id.
func (s *State) GroupNamed(name string) *Group {
	for _, g := range s.groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Rules returns all rules, sorted by id. The slice is shared.
func (s *State) Rules() []*Rule { return s.rules }

// Rule returns the rule of an id, or nil.
func (s *State) Rule(id string) *Rule { return find(s.rules, id, ruleKey) }

// Indices returns all indices, sorted by name. The slice is shared.
func (s *State) Indices() []*Index { return s.indices }

// Index returns the index of a name, or nil.
func (s *State) Index(name string) *Index { return find(s.indices, name, indexKey) }

// Nodes returns all nodes, sorted by name. The slice is shared.
func (s *State) Nodes() []*Node { return s.nodes }

// Node returns the node of a name, or nil.
func (s *State) Node(name string) *Node { return find(s.nodes, name, nodeKey) }

func groupKey(g *Group) string { return g.ID }
func ruleKey(r *Rule) string   { return r.ID }
func indexKey(x *Index) string { return x.Name }
func nodeKey(n *Node) string   { return n.Name }

func search[T any](sorted []T, key string, keyOf func(T) string) (int, bool) {
	return slices.BinarySearchFunc(sorted, key, func(v T, k string) int { return cmp.Compare(keyOf(v), k) })
}

func find[T any](sorted []*T, key string, keyOf func(*T) string) *T {
	if i, ok := search(sorted, key, keyOf); ok {
		return sorted[i]
	}
	return nil
}

// with returns a copy of sorted in which v stands in its place.
func with[T any](sorted []*T, v *T, keyOf func(*T) string) []*T {
	i, there := search(sorted, keyOf(v), keyOf)
	next := slices.Clone(sorted)
	if there {
		next[i] = v
		return next
	}
	return slices.Insert(next, i, v)
}

// without returns a copy of sorted that lacks key.
func without[T any](sorted []*T, key string, keyOf func(*T) string) []*T {
	i, there := search(sorted, key, keyOf)
	if !there {
		return sorted
	}
	return slices.Delete(slices.Clone(sorted), i, i+1)
}

// MatchPattern says whether name fits a pattern in which '*' stands for any text.
func MatchPattern(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}
