package campaign

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/shrink"
)

// Shrinking is an exploration that broke and whose file is to be made smaller.
type Shrinking struct {
	File   string        `json:"file"`
	Set    []string      `json:"set,omitempty"`
	Path   string        `json:"path"`   // where the smaller file is to be, for what it says of itself
	Time   time.Duration `json:"time"`   // of [shrink.Limits]
	Broken []byte        `json:"broken"` // what of the result is asked for; see [explore.Result.MarshalBinary]
}

// asked returns what shrinking asks for of a result, which is short, however
// many outcomes that has.
func asked(r *explore.Result) *explore.Result {
	short := &explore.Result{Profile: r.Profile, Strategy: r.Strategy}
	for i := range r.Checks {
		short.Checks = append(short.Checks, explore.Check{Result: r.Checks[i].Result, Schedule: r.Checks[i].Schedule})
	}
	return short
}

// shrunkAnswer is a [shrink.Shrunk] as a worker hands it over.
type shrunkAnswer struct {
	Text    []byte `json:"text"`
	Tried   int    `json:"tried"`
	Least   bool   `json:"least"`
	Nothing bool   `json:"nothing"` // [shrink.ErrNothing]
}

// Shrink makes a file smaller whose exploration broke, as [shrink.Explore]
// does. It ends early, with what it has, when the process is told to terminate.
func (d *Doer) Shrink(s Shrinking) (*shrink.Shrunk, error) {
	if err := d.read(s.File, s.Set); err != nil {
		return nil, err
	}
	var broken explore.Result
	if err := broken.UnmarshalBinary(s.Broken); err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	small, err := shrink.Explore(ctx, d.file, &broken, shrink.Limits{Time: s.Time})
	if small != nil {
		err = nil // of ctx
	}
	return small, err
}

// shrinkingGrace is how much longer than its time shrinking may take before it
// is taken for hung, and partingGrace how long a worker has to tell what it has
// after an interrupt.
const (
	shrinkingGrace = time.Minute
	partingGrace   = 5 * time.Second
)

// Shrink makes the file of an exploration that broke smaller, in the worker. At
// the end of ctx what was reached is returned with its error. A worker that
// crashes or hangs is an error.
func (h *Hand) Shrink(ctx context.Context, s Shrinking, broken *explore.Result) (*shrink.Shrunk, error) {
	var err error
	if s.Broken, err = asked(broken).MarshalBinary(); err != nil {
		return nil, err
	}
	limit := h.slot.config.Limit
	h.slot.config.Limit = 2*s.Time + shrinkingGrace
	defer func() { h.slot.config.Limit = limit }()
	a, err := h.slot.do(ctx, &order{Shrink: &s}, nil)
	switch {
	case ctx.Err() != nil && (err != nil || a.Shrunk == nil):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case a.Shrunk == nil:
		return nil, errors.New(a.Error)
	case a.Shrunk.Nothing:
		return nil, shrink.ErrNothing
	}
	f, failure, err := shrink.Parse(s.Path, a.Shrunk.Text)
	if err != nil {
		return nil, fmt.Errorf("the smaller file: %w", err)
	}
	return &shrink.Shrunk{File: f, Failure: failure, Tried: a.Shrunk.Tried, Least: a.Shrunk.Least}, context.Cause(ctx)
}
