package world

import (
	"sync"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// answers are what the clients of steps saw, by id.
type answers struct {
	mu sync.Mutex
	of map[string]any
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
