package netsim

import (
	"slices"
	"time"
)

// HoldBack keeps, from now on, bytes of streams between two hosts from arriving
// by themselves, where which is true for the sender, the receiver and the
// listener's port: once sent, they wait until [Network.Deliver] lets them
// through, one message at a time, in the order of each stream. What was sent at
// one instant on one stream is one message. The making and ending of
// connections is not held back, nor are datagrams, nor what is under way
// already. With nil nothing is held back any more, and what was arrives at its
// time, which has come. which is called with the network's lock: it must not
// call the network.
func (n *Network) HoldBack(which func(from, to string, port int) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holds = which
	if which != nil {
		return
	}
	held := n.held
	n.held = nil
	for _, h := range held {
		h.held = false
		h.awaitLocked()
	}
}

// Held returns what is held back and could arrive next, one message a stream,
// in the order of sending.
func (n *Network) Held() []Delivery {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Delivery, len(n.held))
	for i, h := range n.held {
		all[i] = h.deliveryLocked(*h.items.at(0))
		all[i].At = time.Duration(h.items.at(0).at)
	}
	return all
}

// Deliver lets the oldest message that is held back between two hosts on a
// listener's port arrive, now. It returns false when there is none, or a cut
// keeps it. The config's Observe is called by the caller's goroutine.
func (n *Network) Deliver(from, to string, port int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.held, func(h *half) bool {
		return h.link.from.name == from && h.link.to.name == to && h.from.stream.port == port
	})
	if i < 0 {
		return false
	}
	h := n.held[i]
	n.letLocked(h)
	d, happened := h.arriveNowLocked()
	n.observeLocked(d, happened)
	return happened
}

// Due returns how long it is until the next thing arrives by itself; false:
// nothing is under way.
func (n *Network) Due() (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.events) == 0 {
		return 0, false
	}
	return max(0, time.Duration(n.events[0].at-n.nowLocked())), true
}

// holdsLocked says whether the first item of a half is to be held back.
func (n *Network) holdsLocked(h *half) bool {
	return n.holds != nil && h.items.at(0).what == Data && h.link.from != h.link.to &&
		n.holds(h.link.from.name, h.link.to.name, h.from.stream.port)
}

// letLocked takes a half off the list of those held back.
func (n *Network) letLocked(h *half) {
	if h.held {
		h.held = false
		n.held = slices.DeleteFunc(n.held, func(o *half) bool { return o == h })
	}
}
