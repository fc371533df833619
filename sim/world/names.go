package world

import (
	"slices"
	"strconv"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/node"
)

// names gives ids to what clients create: they follow from the seed, the name,
// and how many of that name there were before.
type names struct {
	seed stream

	mu     sync.Mutex
	counts map[string]uint64
	groups map[string][]string // ids of the groups of a name, the newest last
	rules  map[string]string   // name to id
}

func newNames(seed stream) names {
	return names{seed: seed, counts: map[string]uint64{}, groups: map[string][]string{}, rules: map[string]string{}}
}

func (n *names) id(kind, name string, number uint64) string {
	return node.NewID(n.seed.named(kind, name).at(number).seed())
}

// next returns a fresh id.
func (n *names) next(kind, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nextLocked(kind, name)
}

func (n *names) nextLocked(kind, name string) string {
	key := kind + " " + name
	n.counts[key]++
	return n.id(kind, name, n.counts[key])
}

// newGroup returns the id for a group that is about to be created. Until
// [names.refused] it is the newest of that name.
func (n *names) newGroup(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := n.nextLocked("group", name)
	n.groups[name] = append(n.groups[name], id)
	return id
}

// foreign notes the id of a group that somebody else gave it; it is the newest
// of that name until [names.forget].
func (n *names) foreign(name, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups[name] = append(n.groups[name], id)
}

// forget takes back what [names.foreign] noted.
func (n *names) forget(name, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups[name] = slices.DeleteFunc(slices.Clone(n.groups[name]), func(known string) bool { return known == id })
}

// refused takes an id back that surely was not created. It is given out again
// if it was the last one.
func (n *names) refused(name, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := n.groups[name]
	for i, known := range ids {
		if known != id {
			continue
		}
		if i == len(ids)-1 {
			n.counts["group "+name]--
		}
		n.groups[name] = append(ids[:i:i], ids[i+1:]...)
		return
	}
}

// group returns the id that a search sends for a group: the newest one's, or
// the first one's before there is any.
func (n *names) group(name string) string {
	if name == cluster.DefaultGroupID {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if ids := n.groups[name]; len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return n.id("group", name, 1)
}

// allGroups returns every id that a group of a name has or had, oldest first.
func (n *names) allGroups(name string) []string {
	if name == cluster.DefaultGroupID {
		return []string{name}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.groups[name]...)
}

// nameOf returns the name behind a group's id, or the id.
func (n *names) nameOf(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, ids := range n.groups {
		for _, known := range ids {
			if known == id {
				return name
			}
		}
	}
	return id
}

// setRule and rule know the ids of rules by their names.
func (n *names) setRule(name, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules[name] = id
}

func (n *names) rule(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rules[name]
}

// canaries are the tokens that travel with principals. All of a run begin
// alike, so that one search of the network finds any.
type canaries struct {
	prefix string

	mu   sync.Mutex
	last uint64
}

func newCanaries(seed stream) canaries {
	return canaries{prefix: "canary-" + strconv.FormatUint(seed.seed(), 36) + "-"}
}

// next returns a fresh token.
func (c *canaries) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.prefix + strconv.FormatUint(c.last, 10)
}
