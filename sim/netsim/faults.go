package netsim

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Range is an inclusive range of durations, drawn from evenly with nanosecond
// resolution. It is written "1ms..5ms", or "3ms" when both ends are equal.
type Range struct{ Min, Max time.Duration }

// ParseRange reads what Range.String writes.
func ParseRange(text string) (Range, error) {
	low, high, two := strings.Cut(text, "..")
	if !two {
		high = low
	}
	minimum, err1 := time.ParseDuration(low)
	maximum, err2 := time.ParseDuration(high)
	if err := errors.Join(err1, err2); err != nil {
		return Range{}, fmt.Errorf("netsim: range %q is not of the form 3ms or 1ms..5ms: %w", text, err)
	}
	r := Range{Min: minimum, Max: maximum}
	if err := r.check("range"); err != nil {
		return Range{}, fmt.Errorf("netsim: %w", err)
	}
	return r, nil
}

// String returns the range as it is written.
func (r Range) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return r.Min.String() + ".." + r.Max.String()
}

func (r Range) check(name string) error {
	if r.Min < 0 || r.Max < r.Min {
		return fmt.Errorf("%s %s must not be negative, nor end before it starts", name, r)
	}
	return nil
}

func (r Range) draw(from *random) int64 {
	return int64(r.Min) + int64(from.upTo(uint64(r.Max-r.Min)))
}

// Faults is how a link behaves, in one direction. It prints as it is written:
// "latency 1ms..5ms, loss 0.1".
type Faults struct {
	// Latency is the time from sending to arrival. The zero Range means the
	// network's own; to be nearly without, say 1ns. At most 24h.
	Latency Range
	// Loss is the share of datagrams that never arrive, and of a stream's
	// messages that must be sent again; in [0, 1].
	Loss float64
	// Duplicate is the share of datagrams that arrive twice; in [0, 1].
	Duplicate float64
	// Reorder is the share of datagrams that are held back, by up to the
	// longest latency again, so that later ones overtake them; in [0, 1].
	Reorder float64
}

// String returns the faults that are set.
func (f Faults) String() string {
	parts := []string{}
	if f.Latency != (Range{}) {
		parts = append(parts, "latency "+f.Latency.String())
	}
	for _, share := range f.shares() {
		if share.of != 0 {
			parts = append(parts, fmt.Sprintf("%s %g", share.name, share.of))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

type share struct {
	name string
	of   float64
}

func (f Faults) shares() []share {
	return []share{{"loss", f.Loss}, {"duplicate", f.Duplicate}, {"reorder", f.Reorder}}
}

// maxLatency keeps sums of latencies far from the end of time.
const maxLatency = 24 * time.Hour

// check reports every value out of its bounds.
func (f Faults) check() error {
	errs := []error{f.Latency.check("latency")}
	if f.Latency.Max > maxLatency {
		errs = append(errs, fmt.Errorf("latency %s is longer than %s", f.Latency, maxLatency))
	}
	for _, share := range f.shares() {
		if !(share.of >= 0 && share.of <= 1) { // NaN is out of bounds too
			errs = append(errs, fmt.Errorf("%s %g is not in 0..1", share.name, share.of))
		}
	}
	return errors.Join(errs...)
}

// Retransmission of a stream's message that the link loses.
const (
	maxRetransmissions = 15                // as Linux has it; then it arrives
	maxRetransmission  = 120 * time.Second // the longest wait before another try
)

// streamDelay draws the time that a message of a stream takes: the latency, and
// a doubling wait for each time it is lost.
func (f Faults) streamDelay(m random, wait time.Duration) (delay int64, lost bool) {
	delay = f.Latency.draw(&m)
	for range maxRetransmissions {
		if !m.chance(f.Loss) {
			break
		}
		lost = true
		delay += int64(wait)
		wait = min(2*wait, maxRetransmission)
	}
	return delay, lost
}

// fate is what a link does to one datagram.
type fate struct {
	lost, twice, heldBack bool
	latency               int64
	echo                  int64 // how much later the second copy arrives
	extra                 int64 // how much longer it is held back
}

// datagramFate draws the fate of a datagram. Everything is drawn always, so
// that one share does not move what another one hits.
func (f Faults) datagramFate(m random) fate {
	return fate{
		latency:  f.Latency.draw(&m),
		lost:     m.chance(f.Loss),
		twice:    m.chance(f.Duplicate),
		echo:     1 + f.Latency.draw(&m),
		heldBack: m.chance(f.Reorder),
		extra:    1 + int64(m.upTo(uint64(f.Latency.Max))),
	}
}
