package netsim

import (
	"slices"
	"time"
)

// HoldBack keeps, from now on, messages of streams between two hosts from
// arriving by themselves, where which is true for the sender, the receiver, the
// listener's port and the kind: Data, or what makes and ends a connection. Once
// sent, they wait until [Network.Deliver] lets them through, one at a time, in
// the order of each stream. Bytes that were sent at one instant on one stream
// are one message. Datagrams are not held back, nor what is under way already,
// nor what nobody is left to read. What a cut meets waits for its end first.
// With nil nothing is held back any more, and what was arrives at its time,
// which has come. which is called with the network's lock: it must not call the
// network.
func (n *Network) HoldBack(which func(from, to string, port int, what Kind) bool) {
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

// Held returns what is held back and could arrive next, one message a stream: the
// one first that has waited longest as the next of its stream.
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

// Deliver lets a message that [Network.Held] named arrive, now: what its stream
// holds back in that direction. It returns false when there is none. The
// config's Observe is called by the caller's goroutine.
func (n *Network) Deliver(d Delivery) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.held, func(h *half) bool {
		return h.link.from.name == d.From && h.link.to.name == d.To && h.from.stream.id == d.Stream
	})
	if i < 0 {
		return false
	}
	h := n.held[i]
	n.letLocked(h)
	arrived, happened := h.arriveNowLocked()
	n.observeLocked(arrived, happened)
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
	return n.holds != nil && h.to.gone == nil && h.link.from != h.link.to &&
		n.holds(h.link.from.name, h.link.to.name, h.from.stream.port, h.items.at(0).what)
}

// letLocked takes a half off the list of those held back.
func (n *Network) letLocked(h *half) {
	if h.held {
		h.held = false
		n.held = slices.DeleteFunc(n.held, func(o *half) bool { return o == h })
	}
}

// unreadLocked lets what is held back arrive by itself, as nobody is left to
// read it.
func (h *half) unreadLocked() {
	if h.held {
		h.net.letLocked(h)
		h.awaitLocked()
	}
}

// stallHeldLocked has the halves of a link that are held back wait for the end
// of a cut.
func (l *link) stallHeldLocked() {
	for _, h := range slices.Clone(l.from.net.held) {
		if h.link == l {
			l.from.net.letLocked(h)
			h.stallLocked()
		}
	}
}
