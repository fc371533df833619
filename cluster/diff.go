package cluster

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// Change is one entry that differs between two states: Old is nil where it was
// added, New where it was removed.
type Change[T any] struct {
	Key      string
	Old, New *T
}

// Changes is the difference between two states, each list sorted by key.
type Changes struct {
	Settings bool // the settings differ
	Groups   []Change[Group]
	Rules    []Change[Rule]
	Indices  []Change[Index]
	Nodes    []Change[Node]
}

// Diff returns what differs between two states. A group that was deleted and
// made again under its name has two ids and so is removed and added.
func Diff(old, next *State) Changes {
	return Changes{
		Settings: !maps.Equal(old.settings.Persistent, next.settings.Persistent) || !maps.Equal(old.settings.Transient, next.settings.Transient),
		Groups:   diff(old.groups, next.groups, groupKey),
		Rules:    diff(old.rules, next.rules, ruleKey),
		Indices:  diff(old.indices, next.indices, indexKey),
		Nodes:    diff(old.nodes, next.nodes, nodeKey),
	}
}

// Empty says whether nothing differs.
func (c Changes) Empty() bool {
	return !c.Settings && len(c.Groups)+len(c.Rules)+len(c.Indices)+len(c.Nodes) == 0
}

// diff merges two sorted lists. Entries are compared by address first, since
// the next state shares what did not change.
func diff[T any](old, next []*T, keyOf func(*T) string) []Change[T] {
	var changes []Change[T]
	for len(old)+len(next) > 0 {
		var order int
		switch {
		case len(old) == 0:
			order = 1
		case len(next) == 0:
			order = -1
		default:
			order = cmp.Compare(keyOf(old[0]), keyOf(next[0]))
		}
		switch {
		case order < 0:
			changes = append(changes, Change[T]{keyOf(old[0]), old[0], nil})
			old = old[1:]
		case order > 0:
			changes = append(changes, Change[T]{keyOf(next[0]), nil, next[0]})
			next = next[1:]
		default:
			if old[0] != next[0] && !reflect.DeepEqual(old[0], next[0]) {
				changes = append(changes, Change[T]{keyOf(old[0]), old[0], next[0]})
			}
			old, next = old[1:], next[1:]
		}
	}
	return slices.Clip(changes)
}
