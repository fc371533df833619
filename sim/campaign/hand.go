package campaign

import (
	"context"

	"github.com/wlmsim/wlmsim/sim/world"
)

// Hand does one run or exploration after the other, each on demand, in a worker
// process that may crash or hang. It belongs to one goroutine.
type Hand struct{ slot slot }

// NewHand returns a hand that starts its worker with the first run. Of the
// config Jobs, StopAtFirst, Done and Tick do not matter.
func NewHand(c Config) (*Hand, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Hand{slot{config: &c}}, nil
}

// Do does a run. One that crashes or hangs is undecided; the error is that of
// ctx.
func (h *Hand) Do(ctx context.Context, t Task) (world.Result, error) { return h.slot.run(ctx, t) }

// Explore explores. What crashes or hangs has a result as well; the error is
// that of ctx.
func (h *Hand) Explore(ctx context.Context, e Exploration) (Explored, error) {
	return h.slot.explore(ctx, e)
}

// Close ends the worker.
func (h *Hand) Close() { h.slot.close() }
