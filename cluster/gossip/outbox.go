package gossip

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Call is a request that waits for its outcome. [Gossip.Ask] makes it.
type Call struct {
	g       *Gossip
	id      uint64
	to      *peer // nil: this node itself
	life    string
	session context.Context // that it hangs on: of its peer, or its own
	stop    func()          // ends the handler; nil but of this node itself
	outcome func([]byte, error)
	state   atomic.Int32
	over    atomic.Bool

	since time.Time
	// The mutex of calls guards the rest.
	asked   time.Time // when the peer was last asked whether it has the request
	unknown time.Time // when it first said that it has not
}

type result struct {
	body []byte
	err  error
}

// The states of a call: from queued to sent or dropped, and from sent to dropped if it surely was not sent after all.
const (
	callQueued int32 = iota
	callSent
	callDropped
)

// drop takes a call back; it returns false if it was sent.
func (c *Call) drop() bool {
	return c.state.CompareAndSwap(callQueued, callDropped) || c.state.Load() == callDropped
}

// finish hands over the outcome; only the first one counts. It is called under no lock.
func (c *Call) finish(r result) {
	if c.end() {
		c.outcome(r.body, r.err)
	}
}

// end says whether the call was not over before.
func (c *Call) end() bool {
	if !c.over.CompareAndSwap(false, true) {
		return false
	}
	c.g.calls.end(c)
	if c.to != nil {
		c.to.waiting.Add(-1)
	}
	return true
}

// calls are the requests under way, by id.
type calls struct {
	mu   sync.Mutex
	next uint64
	open map[uint64]*Call
}

func (c *calls) start(k *Call) *Call {
	k.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	k.id = c.next
	c.open[k.id] = k
	return k
}

func (c *calls) end(k *Call) {
	c.mu.Lock()
	delete(c.open, k.id)
	c.mu.Unlock()
}

// orphans returns the calls whose session is over, in order of their ids.
func (c *calls) orphans() []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*Call
	for _, k := range c.open {
		if k.session.Err() != nil {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b *Call) int { return cmp.Compare(a.id, b.id) })
	return found
}

// find returns the call that life owes an answer to, or nil.
func (c *calls) find(life string, id uint64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.open[id]; k != nil && k.life == life {
		return k
	}
	return nil
}

// old returns the ids of calls that a life has owed an answer to for so long that their request or their answer may be
// lost, and that it was not asked about for as long; sorted.
func (c *calls) old(life string, after time.Duration) []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	var ids []uint64
	for id, k := range c.open {
		if k.life == life && k.state.Load() == callSent && now.Sub(k.since) >= after && now.Sub(k.asked) >= after {
			k.asked = now
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// unknownTo takes in that a life does not have the request of a call. The first time it may still be on its way, or its
// answer may. It returns the call once that cannot be.
func (c *calls) unknownTo(life string, id uint64, after time.Duration) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.open[id]
	switch {
	case k == nil || k.life != life:
		return nil
	case k.unknown.IsZero():
		k.unknown = time.Now()
		return nil
	case time.Since(k.unknown) < after:
		return nil
	}
	return k
}

// item is a frame in an outbox, with the call that waits for it if there is one.
type item struct {
	frame
	call  *Call
	tries int // how often it was sent in vain
}

// outbox holds what waits for one life. It has at most one sender at a time, which put asks for and take dismisses.
type outbox struct {
	mu       sync.Mutex
	items    []item
	bytes    int
	sending  bool
	lastSent time.Time
	late     []item // answers that did not get through, until the life is heard again
	lateSize int
}

// put queues an item. start means that the caller must start a sender. Answers and what else keeps the peer from waiting
// in vain may use twice the room.
func (o *outbox) put(it item, b Bounds) (start bool, err error) {
	room := 1
	if it.kind != kindRequest && it.kind != kindSend {
		room = 2
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.items); n >= room*b.OutboxMessages {
		return false, fmt.Errorf("%w: %d messages wait, at most %d", ErrFull, n, room*b.OutboxMessages)
	}
	if n := o.bytes + len(it.body); n > room*b.OutboxBytes && len(o.items) > 0 {
		return false, fmt.Errorf("%w: %d bytes would wait, at most %d", ErrFull, n, room*b.OutboxBytes)
	}
	o.items = append(o.items, it)
	o.bytes += len(it.body)
	start = !o.sending
	o.sending = true
	return start, nil
}

// take moves the next pack into dst, leaving out calls that were given up. An empty pack dismisses the sender.
func (o *outbox) take(dst []item, b Bounds, now time.Time) []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, n := 0, 0
	for _, it := range o.items {
		if len(dst) == b.PackMessages || len(dst) > 0 && size+len(it.body)+frameOverhead > b.PackBytes {
			break
		}
		n++
		o.bytes -= len(it.body)
		if it.call != nil && !it.call.state.CompareAndSwap(callQueued, callSent) {
			continue
		}
		dst = append(dst, it)
		size += len(it.body) + frameOverhead
	}
	rest := copy(o.items, o.items[n:])
	clear(o.items[rest:])
	if o.items = o.items[:rest]; rest == 0 && cap(o.items) > b.PackMessages {
		o.items = nil
	}
	if len(dst) == 0 {
		o.sending = false
	} else {
		o.lastSent = now
	}
	return dst
}

// keepLate keeps an answer that was tried in vain, as long as there is room.
func (o *outbox) keepLate(it item, b Bounds) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.late); n >= b.OutboxMessages {
		return fmt.Errorf("%w: %d late answers wait, at most %d", ErrFull, n, b.OutboxMessages)
	}
	if n := o.lateSize + len(it.body); n > b.OutboxBytes && len(o.late) > 0 {
		return fmt.Errorf("%w: %d bytes of late answers would wait, at most %d", ErrFull, n, b.OutboxBytes)
	}
	o.late = append(o.late, it)
	o.lateSize += len(it.body)
	return nil
}

// takeLate returns the answers that were kept.
func (o *outbox) takeLate() []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := o.late
	o.late, o.lateSize = nil, 0
	return late
}

// drop forgets the calls and one-way messages that wait. Answers stay: the life they are for may be gone in this view only.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keep []item
	o.bytes = 0
	for _, it := range o.items {
		if it.kind.repeatable() {
			keep = append(keep, it)
			o.bytes += len(it.body)
		}
	}
	o.items = keep
}

// idle reports whether nothing waits or is under way, and when the last pack went out.
func (o *outbox) idle() (bool, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.sending, o.lastSent
}
