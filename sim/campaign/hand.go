package campaign

import (
	"context"

	"github.com/wlmsim/wlmsim/sim/world"
)

// Hand does one run after the other, each on demand, in a worker process that
// may crash or hang. It belongs to one goroutine.
type Hand struct{ slot slot }

// NewHand returns a hand that starts its worker with the first run. Of the
// config Jobs, StopAtFirst and Done do not matter.
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

// Close ends the worker.
func (h *Hand) Close() { h.slot.rest() }
