package replica

import "sync"

// busy notes to which servers a message is under way, so that there is never
// more than one to a server that does not answer.
type busy struct {
	mu    sync.Mutex
	names map[string]bool
}

func newBusy() *busy { return &busy{names: map[string]bool{}} }

// take says whether the server is free, and makes it busy.
func (b *busy) take(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names[name] {
		return false
	}
	b.names[name] = true
	return true
}

func (b *busy) give(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, name)
}
