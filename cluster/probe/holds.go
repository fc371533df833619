package probe

import (
	"fmt"
	"slices"
	"sync"
)

// Filter narrows a hold. Empty fields match everything.
type Filter struct {
	Group    string `json:"group,omitempty"`    // id
	Search   string `json:"search,omitempty"`   // X-Opaque-Id
	Listener string `json:"listener,omitempty"` // name
	Count    int    `json:"count,omitempty"`    // park this many arrivals at the most, let later ones pass; 0: no bound
}

func (f Filter) matches(e Event) bool {
	return (f.Group == "" || f.Group == e.Group) &&
		(f.Search == "" || f.Search == e.Search) &&
		(f.Listener == "" || f.Listener == e.Listener)
}

// Holds is a [Hook] that parks arrivals at chosen steps. The zero value holds
// nothing and is ready. All methods may be called from any goroutine.
type Holds struct {
	mu     sync.Mutex
	active []*hold
	closed bool
}

type hold struct {
	step     Step
	filter   Filter
	seen     int // arrivals parked so far
	parked   []Event
	released chan struct{}
	arrived  chan struct{} // closed and replaced at every arrival
}

// Hold parks every arrival at step that matches filter until [Holds.Release].
// It refuses an unknown step, a negative count, and a second hold of one step.
func (h *Holds) Hold(step Step, filter Filter) error {
	if !slices.Contains(Steps(), step) {
		return fmt.Errorf("step %q is unknown: one of %v", step, Steps())
	}
	if filter.Count < 0 {
		return fmt.Errorf("count %d is negative: 0 for no bound, or how many arrivals to park", filter.Count)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("step %q cannot be held: the node is closing", step)
	}
	if h.find(step) != nil {
		return fmt.Errorf("step %q is held already: release it first", step)
	}
	h.active = append(h.active, &hold{step: step, filter: filter, released: make(chan struct{}), arrived: make(chan struct{})})
	return nil
}

// Release ends the hold of a step and lets its arrivals go. It says whether
// there was one.
func (h *Holds) Release(step Step) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.find(step)
	if held == nil {
		return false
	}
	h.active = slices.DeleteFunc(h.active, func(o *hold) bool { return o == held })
	close(held.released)
	return true
}

// Parked returns the events that a hold has parked, in order of arrival; nil
// if the step is not held or nobody came yet.
func (h *Holds) Parked(step Step) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.find(step); held != nil {
		return slices.Clone(held.parked)
	}
	return nil
}

// Await blocks until n arrivals are parked at a held step, the hold is
// released, or done is closed; it says whether n were parked.
func (h *Holds) Await(done <-chan struct{}, step Step, n int) bool {
	for {
		h.mu.Lock()
		held := h.find(step)
		if held == nil {
			h.mu.Unlock()
			return false
		}
		if len(held.parked) >= n {
			h.mu.Unlock()
			return true
		}
		arrived, released := held.arrived, held.released
		h.mu.Unlock()
		select {
		case <-arrived:
		case <-released:
			return false
		case <-done:
			return false
		}
	}
}

// Active returns the steps that are held, in the order in which the holds
// began.
func (h *Holds) Active() []Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps := make([]Step, len(h.active))
	for i, held := range h.active {
		steps[i] = held.step
	}
	return steps
}

// Close lets everything go, for good.
func (h *Holds) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, held := range h.active {
		close(held.released)
	}
	h.active = nil
}

// Reach implements [Hook]: it parks a matching arrival.
func (h *Holds) Reach(e Event) {
	h.mu.Lock()
	held := h.find(e.Step)
	if held == nil || !held.filter.matches(e) || (held.filter.Count > 0 && held.seen >= held.filter.Count) {
		h.mu.Unlock()
		return
	}
	held.seen++
	held.parked = append(held.parked, e)
	close(held.arrived)
	held.arrived = make(chan struct{})
	h.mu.Unlock()
	<-held.released
}

func (h *Holds) find(step Step) *hold {
	for _, held := range h.active {
		if held.step == step {
			return held
		}
	}
	return nil
}
