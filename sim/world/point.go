package world

import (
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// points are the texts of the points in time that steps have opened, by their
// ids.
type points struct {
	mu sync.Mutex
	of map[string]string
}

func (p *points) opened(id, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]string{}
	}
	p.of[id] = text
}

func (p *points) look(id string) (text string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, known = p.of[id]
	return text, known
}

// openPit opens a point in time. Shards that cannot be had are left out of it,
// as without allow_partial_pit_creation.
func (w *world) openPit(o *scenario.OpenPit, l *life) any {
	opened, err := l.node.OpenPoint(w.ctx, coordinator.PointRequest{Index: o.Index, KeepAlive: time.Duration(o.KeepAlive), AllowPartial: true})
	answer := &scenario.PointAnswer{Answer: explain(err)}
	if err == nil {
		w.points.opened(o.ID, opened.ID)
		answer.Successful = opened.Shards.Failed == 0
	}
	return answer
}

func (w *world) closePit(text string, l *life) any {
	freed, err := l.node.FreePoints(w.ctx, []string{text})
	answer := &scenario.PointAnswer{Answer: explain(err)}
	if err == nil {
		answer.Successful = freed[0].Successful
	}
	return answer
}
