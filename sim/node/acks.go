package node

import (
	"maps"
	"sync"
)

// acks are the versions that members said they have applied. Only the leader
// hears of them; it keeps what it heard for as long as it runs.
type acks struct {
	mu sync.Mutex
	of map[string]appliedMessage
}

// applied takes a member's word and says whether it is news. A message of an
// earlier life, or an older one that was overtaken, is not.
func (a *acks) applied(name string, m appliedMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, known := a.of[name]
	if known && (m.Life < old.Life || (m.Life == old.Life && m.Version <= old.Version)) {
		return false
	}
	if a.of == nil {
		a.of = map[string]appliedMessage{}
	}
	a.of[name] = m
	return true
}

func (a *acks) version(name string) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[name].Version
}

func (a *acks) versions() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	versions := make(map[string]uint64, len(a.of))
	for name, m := range maps.All(a.of) {
		versions[name] = m.Version
	}
	return versions
}

// forget drops what is known of a member, so that only news counts.
func (a *acks) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, name)
}
