package streams

import (
	"context"
	"slices"
	"time"
)

// route is what a pool has to one address. The pool's mutex guards it.
type route struct {
	lines   int           // every one, also those with a stream
	kept    []*line       // those without a stream; the last one used is the last
	awaited int           // those that a new stream waits for
	freed   chan struct{} // closed when a line is no longer awaited; nil: nobody waits
}

func (p *Pool) routeLocked(address string) *route {
	r := p.routes[address]
	if r == nil {
		r = new(route)
		p.routes[address] = r
	}
	return r
}

// reuse opens a stream on a line that is kept, or will be within Bounds.Wait;
// else it returns nil.
func (p *Pool) reuse(ctx context.Context, address string) *dialled {
	var enough *time.Timer // of all waits together: others may be faster each time
	for {
		l, freed := p.take(address)
		switch {
		case l != nil:
			if s := l.open(); s != nil {
				return s
			}
		case freed == nil:
			return nil
		default:
			if enough == nil {
				enough = time.NewTimer(p.cfg.Bounds.Wait)
				defer enough.Stop()
			}
			select {
			case <-freed:
			case <-enough.C:
				return nil
			case <-ctx.Done():
				return nil
			case <-p.done:
				return nil
			}
		}
	}
}

// take returns the kept line that was used last. If there is none and one is
// worth waiting for, freed is closed when it is time to look again.
func (p *Pool) take(address string) (l *line, freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[address]
	if r == nil {
		return nil, nil
	}
	if last := len(r.kept) - 1; last >= 0 {
		l, r.kept[last], r.kept = r.kept[last], nil, r.kept[:last]
		return l, nil
	}
	if r.awaited < p.cfg.Bounds.Awaited {
		return nil, nil
	}
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	return nil, r.freed
}

func (r *route) tellLocked() {
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// await notes that the other end has yet to close a line's stream.
func (p *Pool) await(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[l.address].awaited++
}

// giveUp notes that a line is awaited no longer.
func (p *Pool) giveUp(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[l.address]
	r.awaited--
	r.tellLocked()
}

// keep takes a line without a stream, which was awaited or not. It returns
// false if there are enough.
func (p *Pool) keep(l *line, awaited bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[l.address]
	if awaited {
		r.awaited--
	}
	if p.closed || len(r.kept) >= p.cfg.Bounds.Kept {
		return false
	}
	r.kept = append(r.kept, l)
	r.tellLocked()
	return true
}

// forget takes out a line that broke while it was awaited or not, and if it was
// given up, the kept ones to its address as well, which it returns.
func (p *Pool) forget(l *line, awaited, givenUp bool) (others []*line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[l.address]
	if awaited {
		r.awaited--
	}
	if i := slices.Index(r.kept, l); i >= 0 {
		r.kept = slices.Delete(r.kept, i, i+1)
	}
	if givenUp {
		others, r.kept = r.kept, nil
	}
	if r.lines--; r.lines == 0 {
		delete(p.routes, l.address)
	}
	r.tellLocked()
	return others
}
