package gossip

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// serving is what a peer waits for.
type serving struct {
	mu      sync.Mutex
	running map[uint64]context.CancelFunc
	// early holds cancels that found no request: the request may still be on its way, since packs travel in streams of
	// their own. order has them as they came, also those whose request came since; the oldest go first.
	early map[uint64]struct{}
	order []uint64
}

// earlyPacks bounds serving.order, in packs: more of them do not overtake each other.
const earlyPacks = 8

// start notes a request; it returns false if the request was given up already, or is there already.
func (s *serving) start(id uint64, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, given := s.early[id]; given {
		delete(s.early, id)
		return false
	}
	if s.running == nil {
		s.running = make(map[uint64]context.CancelFunc)
	}
	if s.running[id] != nil {
		return false
	}
	s.running[id] = cancel
	return true
}

// finish reports whether the requester still wants an answer.
func (s *serving) finish(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, wanted := s.running[id]
	delete(s.running, id)
	return wanted
}

func (s *serving) has(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[id] != nil
}

// cancel ends the handler of a request, or keeps the cancel for it: the last most of them.
func (s *serving) cancel(id uint64, most int) {
	s.mu.Lock()
	cancel := s.running[id]
	if cancel == nil {
		s.keepLocked(id, most)
	}
	delete(s.running, id)
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (s *serving) keepLocked(id uint64, most int) {
	if len(s.order) >= most {
		delete(s.early, s.order[0])
		s.order = append(s.order[:0], s.order[1:]...)
	}
	if s.early == nil {
		s.early = make(map[uint64]struct{})
	}
	s.early[id] = struct{}{}
	s.order = append(s.order, id)
}

func (s *serving) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) == 0
}

// receive takes one pack in. It never waits.
func (g *Gossip) receive(b []byte) {
	pk, err := decodePack(bytes.Clone(b))
	if err != nil {
		g.cfg.Log.Warn("gossip: message dropped", "error", err)
		return
	}
	from, err := g.view.peer(pk.from)
	if err != nil {
		g.cfg.Log.Warn("gossip: message dropped", "error", err)
		return
	}
	if pk.to != g.life {
		g.misdirected(from, pk)
		return
	}
	g.view.heard(from)
	for _, it := range from.out.takeLate() {
		it.tries = 0
		g.postAgain(from, it)
	}
	for _, f := range pk.frames {
		g.take(from, f)
	}
}

// misdirected answers a pack that was for an earlier life at this address, so that its sender waits no longer. An answer
// to such an answer would never end.
func (g *Gossip) misdirected(from *peer, pk pack) {
	for _, f := range pk.frames {
		if f.kind != kindStranger {
			g.reply(from, frame{kind: kindStranger, body: []byte(pk.to)})
			return
		}
	}
}

func (g *Gossip) take(from *peer, f frame) {
	switch f.kind {
	case kindRequest:
		g.serve(from, f)
	case kindAnswer:
		g.answered(from, f.id, result{body: f.body})
	case kindFailure:
		g.answered(from, f.id, result{err: &RemoteError{Member: from.name, Text: string(f.body)}})
	case kindBusy:
		g.answered(from, f.id, result{err: fmt.Errorf("%w: %s", ErrBusy, from.name)})
	case kindCancel:
		from.serving.cancel(f.id, earlyPacks*g.cfg.Bounds.PackMessages)
	case kindSend:
		g.serveOneWay(from.name, f.body)
	case kindCheck:
		if f.id != 0 {
			g.reply(from, frame{kind: kindAnswer, id: f.id})
		}
	case kindOwed:
		if !from.serving.has(f.id) {
			g.reply(from, frame{kind: kindUnknown, id: f.id})
		}
	case kindUnknown:
		if c := g.calls.unknownTo(from.life, f.id, g.cfg.Timings.lost()); c != nil {
			c.finish(result{err: goneError(from.name, true, errLost)})
		}
	case kindLeaving:
		g.view.ended(from.life, true)
	case kindStranger:
		if was := g.view.find(string(f.body)); was != nil && was != from && was.address == from.address {
			g.view.ended(was.life, false)
		}
	}
}

func (g *Gossip) answered(from *peer, id uint64, r result) {
	if c := g.calls.find(from.life, id); c != nil {
		c.finish(r)
	}
}

// reply queues what a peer must not wait for in vain; if not even its double room suffices, the peer's deadline has to.
func (g *Gossip) reply(to *peer, f frame) {
	if err := g.post(to, item{frame: f}); err != nil {
		g.cfg.Log.Warn("gossip: answer dropped", "to", to.name, "error", err)
	}
}

// serve runs the handler for a request, in a goroutine of its own.
func (g *Gossip) serve(from *peer, f frame) {
	if !g.slots.take() {
		g.reply(from, frame{kind: kindBusy, id: f.id})
		return
	}
	ctx, cancel := context.WithCancel(g.view.session(from))
	if !from.serving.start(f.id, cancel) {
		cancel()
		g.slots.free()
		return
	}
	ran := g.spawn(func() {
		defer g.slots.free()
		defer cancel()
		body, err := g.cfg.Handler(ctx, from.name, f.body)
		if from.serving.finish(f.id) {
			// Also when the requester seems gone: it may live and hold this node to be alive, and would wait for ever.
			g.reply(from, g.outcome(f.id, body, err))
		}
	})
	if !ran { // closing
		cancel()
		from.serving.finish(f.id)
		g.slots.free()
	}
}

// outcome is the frame that tells a requester what its handler said.
func (g *Gossip) outcome(id uint64, body []byte, err error) frame {
	if err == nil && len(body) > g.cfg.Bounds.MessageBytes {
		err = g.tooLarge(body)
	}
	if err != nil {
		text := []byte(err.Error())
		return frame{kind: kindFailure, id: id, body: text[:min(len(text), g.cfg.Bounds.MessageBytes)]}
	}
	return frame{kind: kindAnswer, id: id, body: body}
}

func (g *Gossip) serveOneWay(from string, body []byte) {
	if !g.slots.take() {
		g.cfg.Log.Warn("gossip: one-way message dropped", "from", from, "handled", g.cfg.Bounds.Handled)
		return
	}
	ran := g.spawn(func() {
		defer g.slots.free()
		if _, err := g.cfg.Handler(g.ctx, from, body); err != nil {
			g.cfg.Log.Debug("gossip: one-way message", "from", from, "error", err)
		}
	})
	if !ran {
		g.slots.free()
	}
}

// slots counts the requests being handled.
type slots struct {
	mu         sync.Mutex
	used, most int
}

func (s *slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == s.most {
		return false
	}
	s.used++
	return true
}

func (s *slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == 0 {
		panic("gossip: a handler's slot given back twice")
	}
	s.used--
}

// post queues an item for a life and starts a sender if there is none.
func (g *Gossip) post(to *peer, it item) error {
	start, err := to.out.put(it, g.cfg.Bounds)
	if err != nil {
		return fmt.Errorf("to %s: %w", to.name, err)
	}
	if start && !g.spawn(func() { g.send(to) }) {
		return ErrClosed
	}
	return nil
}

// send is the one sender of a life: it packs and sends until nothing waits.
func (g *Gossip) send(to *peer) {
	var (
		items []item
		buf   []byte
	)
	select {
	case <-g.ready:
	case <-g.ctx.Done():
		return
	}
	for {
		clear(items)
		items = to.out.take(items[:0], g.cfg.Bounds, time.Now())
		if len(items) == 0 {
			return
		}
		buf = appendHeader(buf[:0], g.life, to.life)
		for _, it := range items {
			buf = appendFrame(buf, it.frame)
		}
		if err := g.list.SendReliable(to.node, buf); err != nil {
			g.unsent(to, items, err)
		}
		if cap(buf) > maxKept {
			buf = nil
		}
	}
}

// maxKept is the largest buffer a sender keeps between packs.
const maxKept = mib

// maxTries bounds how often a frame that may arrive twice is sent in a row.
const maxTries = 4

// unsent deals with a pack that did not get through: its calls fail, what may arrive twice is tried again, and if the
// address refuses, all calls of this life fail.
func (g *Gossip) unsent(to *peer, items []item, cause error) {
	if g.ctx.Err() != nil {
		return
	}
	g.cfg.Log.Debug("gossip: send", "to", to.life, "messages", len(items), "error", cause)
	sent := !isDialError(cause)
	for _, it := range items {
		if it.call != nil && !sent {
			it.call.state.Store(callDropped)
		}
	}
	if isRefused(cause) {
		g.view.refuses(to.life) // first, so that whoever is told finds the member dead
	}
	for _, it := range items {
		if it.call != nil {
			it.call.finish(result{err: goneError(to.name, sent, cause)})
		}
	}
	if isRefused(cause) {
		return
	}
	for _, it := range items {
		if it.tries++; it.kind.repeatable() {
			g.postAgain(to, it)
		}
	}
}

// postAgain queues what did not get through. What was tried often enough waits until the life is heard again, if it is an
// answer: one that waits for it over a cut asks every Timings.Check whether this node is there.
func (g *Gossip) postAgain(to *peer, it item) {
	var err error
	switch {
	case it.tries < maxTries:
		err = g.post(to, it)
	case it.kind.answers():
		err = to.out.keepLate(it, g.cfg.Bounds)
	}
	if err != nil {
		g.cfg.Log.Warn("gossip: answer dropped", "to", to.name, "error", err)
	}
}
