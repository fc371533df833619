package netsim

import (
	"slices"
	"time"
)

// half is one direction of a stream: what its writer sent and its reader has
// not taken yet.
type half struct {
	net      *Network
	from, to *conn // the writer's end and the reader's
	link     *link // from writer to reader
	back     *link // and back, for window credit
	seed     uint64
	count    uint64 // messages drawn
	sinks    []func([]byte)

	bytes   ring[byte]    // those that arrived, then those under way
	arrived int           // how many of them arrived
	owed    int           // bytes read, whose credit a cut keeps from the writer
	items   ring[sending] // under way, in order
	last    int64         // when the last item arrives, if no cut holds it
	sent    int64         // when the last item was sent
	seq     uint64        // the event that lets the first item arrive; 0 if none
	stalled bool          // it is on its link's list
	held    bool          // it is on the network's list

	writing      bool // a writer is between its first and its last byte
	ended, reset bool // its end, a reset, was sent
	sawEnd       bool // its end has arrived
	sawReset     bool // a reset has arrived
	readers      waiters
	writers      waiters
}

// sending is one message of a stream under way.
type sending struct {
	what  Kind // Dialled, Connected, Data, End, Reset or Refused
	at    int64
	bytes int
}

// room returns how many bytes may be written.
func (h *half) room() int { return h.net.cfg.Window - h.bytes.len - h.owed }

// writeLocked sends bytes; there must be room.
func (h *half) writeLocked(p []byte) {
	h.bytes.append(p)
	h.net.stats.StreamBytes += uint64(len(p))
	h.sendLocked(Data, len(p))
}

// sendLocked sends one message behind those that are under way. After an end
// only a reset can follow, after a reset nothing.
func (h *half) sendLocked(what Kind, bytes int) {
	if h.reset || h.ended && what != Reset {
		return
	}
	h.ended = h.ended || what == End
	h.reset = h.reset || what == Reset || what == Refused
	now := h.net.nowLocked()
	if what == Data && h.joinsLocked(h.stalled || h.sent == now) {
		h.tail().bytes += bytes
		return
	}
	at := now + h.delayLocked()
	h.sent = now
	if what == Data && h.joinsLocked(at <= h.last) {
		h.tail().bytes += bytes // it would have to wait for the one before
		return
	}
	h.last = max(at, h.last+1)
	h.items.push(sending{what: what, at: h.last, bytes: bytes})
	switch {
	case h.stalled:
	case h.link.cuts > 0:
		h.stallLocked()
	case h.items.len == 1:
		h.awaitLocked()
	}
}

// joinsLocked decides whether bytes travel with the message before them, which
// saves an event: if they would arrive with it, and it is of bytes too.
func (h *half) joinsLocked(together bool) bool {
	return together && h.items.len > 0 && h.tail().what == Data
}

// tail returns the last message under way.
func (h *half) tail() *sending { return h.items.at(h.items.len - 1) }

func (h *half) delayLocked() int64 {
	h.count++
	delay, lost := h.link.faultsLocked().streamDelay(message(h.seed, h.count), h.net.cfg.Retransmit)
	if lost {
		h.net.stats.Retransmissions++
	}
	return delay
}

// awaitLocked makes the event of the first item, unless that is held back.
func (h *half) awaitLocked() {
	if h.net.holdsLocked(h) {
		h.held = true
		h.net.held = append(h.net.held, h)
		return
	}
	h.seq = h.net.scheduleLocked(event{at: h.items.at(0).at, half: h})
}

// stallLocked puts the half on its link's list, to go on when the cut heals.
func (h *half) stallLocked() {
	h.stalled, h.seq = true, 0
	h.link.stalled = append(h.link.stalled, h)
}

// resumeLocked sends again what was held back; it all arrives in one burst.
func (h *half) resumeLocked() {
	h.stalled = false
	at := h.net.nowLocked() + h.delayLocked()
	for i := range h.items.len {
		item := h.items.at(i)
		item.at = max(item.at, at)
		at = item.at + 1
	}
	h.last = at - 1
	h.awaitLocked()
}

// forgetLocked drops all that is under way or unread.
func (h *half) forgetLocked() {
	h.items, h.bytes, h.arrived, h.owed, h.seq = ring[sending]{}, ring[byte]{}, 0, 0, 0
	if h.stalled {
		h.stalled = false
		h.link.stalled = slices.DeleteFunc(h.link.stalled, func(o *half) bool { return o == h })
	}
	h.net.letLocked(h)
}

// loseLocked ends a half whose reader's end is gone: nothing of it can arrive.
func (h *half) loseLocked() {
	h.forgetLocked()
	h.ended, h.reset = true, true
	h.writers.wake()
}

// arriveLocked lets the first item arrive. It is false if the event is not the
// one that the half waits for, or if a cut holds the item back.
func (h *half) arriveLocked(seq uint64) (Delivery, bool) {
	if seq != h.seq {
		return Delivery{}, false
	}
	return h.arriveNowLocked()
}

// arriveNowLocked lets the first item arrive whatever its time is.
func (h *half) arriveNowLocked() (Delivery, bool) {
	h.seq = 0
	if h.link.cuts > 0 {
		h.stallLocked()
		return Delivery{}, false
	}
	item := h.items.pop()
	h.takeLocked(item)
	if h.items.len > 0 && h.seq == 0 && !h.stalled && !h.held {
		h.awaitLocked()
	}
	return h.deliveryLocked(item), true
}

// deliveryLocked describes the arrival of an item.
func (h *half) deliveryLocked(item sending) Delivery {
	return Delivery{
		Kind: item.what, Bytes: item.bytes,
		From: h.link.from.name, To: h.link.to.name,
		Port: h.from.stream.port, Stream: h.from.stream.id,
	}
}

// takeLocked lets an item take effect at the reader's end.
func (h *half) takeLocked(item sending) {
	switch item.what {
	case Dialled:
		h.to.dialledLocked()
	case Connected:
		h.to.opened = true
	case Data:
		h.takeDataLocked(item.bytes)
	case End:
		h.sawEnd = true
	case Reset, Refused:
		h.sawReset = true
		h.to.out.loseLocked()
	}
	h.readers.wake()
}

// takeDataLocked keeps bytes for the reader. If there is no reader any more,
// the writer is told by a reset, unless it is gone as well.
func (h *half) takeDataLocked(bytes int) {
	if h.to.gone == nil {
		h.arrived += bytes
		return
	}
	h.bytes.drop(bytes)
	h.to.out.sendLocked(Reset, 0)
}

// readLocked takes bytes that have arrived, and gives the writer credit for
// them, which a cut of the way back delays until it heals.
func (h *half) readLocked(p []byte) int {
	k := min(len(p), h.arrived)
	h.bytes.copyTo(p[:k])
	h.bytes.drop(k)
	h.arrived -= k
	if h.back.cuts > 0 {
		h.owed += k
	} else {
		h.writers.wake()
	}
	return k
}

// waitRoomLocked waits until the writers may look again.
func (h *half) waitRoomLocked(deadline time.Time) { h.net.waitLocked(&h.writers, deadline, nil) }
