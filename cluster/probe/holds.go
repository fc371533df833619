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
// nothing and is ready. All methods may be called from any goroutine. Holds
// that are used inside a bubble of virtual time must not be used outside it.
type Holds struct {
	mu      sync.Mutex
	active  []*hold
	parked  []arrival     // in order of arrival
	changed chan struct{} // closed and dropped when an arrival is parked or a hold ends; nil: nobody waits
	closed  bool
}

type hold struct {
	step     Step
	filter   Filter
	taken    int // arrivals parked so far
	released chan struct{}
}

func (o *hold) takes(e Event) bool {
	return o.step == e.Step && o.filter.matches(e) && (o.filter.Count == 0 || o.taken < o.filter.Count)
}

type arrival struct {
	event Event
	by    *hold
}

// Hold parks every arrival at step that matches filter until it is released.
// A step may have several holds whose filters differ; an arrival that more
// than one would park is parked by the one that began first. Hold refuses an
// unknown step, a negative count, and a second hold with an equal filter.
func (h *Holds) Hold(step Step, filter Filter) error {
	if step.About() == "" {
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
	for _, o := range h.active {
		if o.step == step && o.filter == filter {
			return fmt.Errorf("step %q is held with filter %+v already: release it first", step, filter)
		}
	}
	h.active = append(h.active, &hold{step: step, filter: filter, released: make(chan struct{})})
	return nil
}

// Release ends all holds of a step and lets their arrivals go. It says whether
// there was one.
func (h *Holds) Release(step Step) bool {
	return h.end(func(o *hold) bool { return o.step == step })
}

// ReleaseOne ends the hold of a step that began with exactly this filter, and
// no other. It says whether there was one.
func (h *Holds) ReleaseOne(step Step, filter Filter) bool {
	return h.end(func(o *hold) bool { return o.step == step && o.filter == filter })
}

// Close ends all holds, for good.
func (h *Holds) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(func(*hold) bool { return true })
}

// end releases the chosen holds and says whether there was one.
func (h *Holds) end(chosen func(*hold) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.active)
	h.active = slices.DeleteFunc(h.active, func(o *hold) bool {
		if !chosen(o) {
			return false
		}
		h.parked = slices.DeleteFunc(h.parked, func(a arrival) bool { return a.by == o })
		close(o.released)
		return true
	})
	h.tellLocked()
	return len(h.active) < before
}

// Parked returns the events that a step's holds have parked, in order of
// arrival; nil if the step is not held or nobody came yet.
func (h *Holds) Parked(step Step) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parkedLocked(step)
}

func (h *Holds) parkedLocked(step Step) []Event {
	var events []Event
	for _, a := range h.parked {
		if a.event.Step == step {
			events = append(events, a.event)
		}
	}
	return events
}

// Await blocks until n arrivals are parked at a held step, its last hold is
// released, or done is closed; it says whether n were parked.
func (h *Holds) Await(done <-chan struct{}, step Step, n int) bool {
	for {
		enough, held, changed := h.look(step, n)
		if enough || !held {
			return enough
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// look says whether n arrivals are parked at a step and whether it is held,
// and returns what is closed when that may be different.
func (h *Holds) look(step Step, n int) (enough, held bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held = slices.ContainsFunc(h.active, func(o *hold) bool { return o.step == step })
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return held && len(h.parkedLocked(step)) >= n, held, h.changed
}

// Active returns the steps that are held, in the order in which their first
// holds began, each once.
func (h *Holds) Active() []Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps := []Step{}
	for _, o := range h.active {
		if !slices.Contains(steps, o.step) {
			steps = append(steps, o.step)
		}
	}
	return steps
}

// Reach implements [Hook]: it parks a matching arrival.
func (h *Holds) Reach(e Event) {
	if o := h.park(e); o != nil {
		<-o.released
	}
}

// park enters an arrival with the first hold that takes it; nil: it passes.
func (h *Holds) park(e Event) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.active {
		if o.takes(e) {
			o.taken++
			h.parked = append(h.parked, arrival{e, o})
			h.tellLocked()
			return o
		}
	}
	return nil
}

func (h *Holds) tellLocked() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}
