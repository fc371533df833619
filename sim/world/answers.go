package world

import (
	"context"
	"sync"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// answers are what the clients of steps saw, by id.
type answers struct {
	mu      sync.Mutex
	of      map[string]any
	changed chan struct{} // closed and dropped at the next one; nil: nobody waits
}

// set keeps the answer to the request of an id; "" is nobody's.
func (a *answers) set(id string, answer any) {
	if id == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]any{}
	}
	a.of[id] = answer
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// look returns the answer to the request of an id, or what is closed when there
// is one more answer.
func (a *answers) look(id string) (answer any, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer, ok := a.of[id]; ok {
		return answer, nil
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return nil, a.changed
}

// await waits for the answer to the request of an id.
func (a *answers) await(ctx context.Context, id string) (any, error) {
	for {
		answer, changed := a.look(id)
		if changed == nil {
			return answer, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (a *answers) all() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]any, len(a.of))
	for id, answer := range a.of {
		all[id] = answer
	}
	return all
}

// failures are what went wrong in a run that no check names: a step that could
// not be done, an expectation of a step.
type failures struct {
	mu     sync.Mutex
	checks []Check
}

func (f *failures) add(c Check) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks = append(f.checks, c)
}

func (f *failures) list() []Check {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Check(nil), f.checks...)
}

// broke is the answer of a client whose connection was refused or broke.
func broke(node, reason string) scenario.Answer {
	return scenario.Answer{Node: node, Error: scenario.Failure{Reason: reason}}
}

// Reasons of an answer without a status.
const (
	refusedText = "connection refused"
	resetText   = "connection reset"
	gaveUpText  = "the client gave up"
)
