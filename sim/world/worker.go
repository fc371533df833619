package world

import (
	"context"
	"time"

	"github.com/wlmsim/wlmsim/coordinator"
)

// worker is a goroutine that carries out the requests of an open load. One at a
// time leads: it waits for the next arrival and carries it out itself, since a
// request that is refused at once, as most are under an overload, then costs no
// switch to another goroutine. Before it waits for anything else it hands the
// lead over, to an idle worker, whose stack has grown already, or to a new one.
type worker struct {
	l     *load
	leads bool      // the worker's own
	turn  chan bool // true: it leads from now on; false: it is not needed any more

	base, led context.Context // led is base as a [leadContext] of this worker
}

// maxIdle bounds the workers that are kept for the next request.
const maxIdle = 256

// start starts a worker that leads.
func (l *load) start() {
	w := &worker{l: l, leads: true, turn: make(chan bool, 1)}
	l.workers.Go(w.run)
}

func (w *worker) run() {
	for w.leads {
		r := w.l.due()
		if r == nil {
			w.l.dismiss()
			return
		}
		if d := time.Until(r.due); d > 0 {
			time.Sleep(d)
		}
		if w.l.w.parking {
			w.handOver()
		} else {
			r.ctx = w.leading(r.ctx)
		}
		w.l.finish(r, w)
		if w.leads {
			w.l.spare = append(w.l.spare, r)
		}
		if !w.leads && !w.rest() {
			return
		}
	}
}

// leading returns the context of a request that this worker carries out as the
// leader. Most requests of a load share one.
func (w *worker) leading(ctx context.Context) context.Context {
	if ctx != w.base {
		w.base, w.led = ctx, leadContext{ctx, w}
	}
	return w.led
}

// rest waits until the worker leads again; false: it is not needed any more.
func (w *worker) rest() bool {
	w.l.mu.Lock()
	if w.l.over || len(w.l.idle) >= maxIdle {
		w.l.mu.Unlock()
		return false
	}
	w.l.idle = append(w.l.idle, w)
	w.l.mu.Unlock()
	w.leads = <-w.turn
	return w.leads
}

// handOver lets another worker lead, if w does; nil never does.
func (w *worker) handOver() {
	if w == nil || !w.leads {
		return
	}
	w.leads = false
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	last := len(w.l.idle) - 1
	if last < 0 {
		w.l.start()
		return
	}
	w.l.idle[last].turn <- true // never waits: an idle worker's channel is empty and holds one
	w.l.idle = w.l.idle[:last]
}

// dismiss ends the workers that have nothing left to do.
func (l *load) dismiss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, w := range l.idle {
		w.turn <- false
	}
	l.idle = nil
}

// leadContext is the context of a request that the leader carries out. It tells
// the listener for admitted searches whose request that is.
type leadContext struct {
	context.Context
	w *worker
}

type leadKey struct{}

// Value returns the worker for its key.
func (c leadContext) Value(key any) any {
	if _, own := key.(leadKey); own {
		return c.w
	}
	return c.Context.Value(key)
}

// admitted is the listener of each coordinator: a search that is admitted is
// going to wait for data nodes.
func admitted(ctx context.Context, _ coordinator.Request) error {
	if w, ok := ctx.Value(leadKey{}).(*worker); ok {
		w.handOver()
	}
	return nil
}
