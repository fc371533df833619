package world

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// outcome is how a request ended for its client.
type outcome uint8

const (
	completed outcome = iota
	failed
	throttled
	cancelled
)

// outcomeOf decides how a search ended for its client.
func outcomeOf(a scenario.Answer, gaveUp bool) outcome {
	switch {
	case gaveUp:
		return cancelled
	case a.Status == 200:
		return completed
	case a.Status == 429:
		return throttled
	}
	return failed
}

// tally counts requests by how they ended, and keeps how long they took.
type tally struct {
	mu       sync.Mutex
	sent     int
	attempts int
	ends     [cancelled + 1]int
	latency  *hdrhistogram.Histogram // in microseconds; nil until the first one
}

// Bounds of the histograms: a microsecond to more than scenario.MaxTime, to
// three digits.
const (
	leastMicros = 1
	mostMicros  = 1 << 45
	digits      = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(leastMicros, mostMicros, digits) }

// send counts a request that is sent.
func (t *tally) send() {
	t.mu.Lock()
	t.sent++
	t.mu.Unlock()
}

// end counts the end of a request of which nobody asks how long it took.
func (t *tally) end(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[o]++
	t.attempts++
}

// add counts the end of a request that took so many attempts.
func (t *tally) add(o outcome, attempts int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[o]++
	t.attempts += attempts
	if t.latency == nil {
		t.latency = newHistogram()
	}
	micros := min(max(int64(took/time.Microsecond), leastMicros), mostMicros)
	_ = t.latency.RecordValue(micros) // it is within the bounds
}

// answer is what expressions know of the tally.
func (t *tally) answer() scenario.LoadAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := scenario.LoadAnswer{
		Sent: t.sent, Attempts: t.attempts, Completed: t.ends[completed], Failed: t.ends[failed],
		Throttled: t.ends[throttled], Cancelled: t.ends[cancelled],
	}
	if t.sent > 0 {
		a.ThrottledShare = float64(a.Throttled) / float64(t.sent)
	}
	if t.latency != nil {
		a.Latency = scenario.Latency{P50: micros(t.latency, 50), P90: micros(t.latency, 90), P99: micros(t.latency, 99), Max: time.Duration(t.latency.Max()) * time.Microsecond}
	}
	return a
}

func micros(h *hdrhistogram.Histogram, percentile float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
}

// sum adds other tallies up.
func sum(tallies []*tally) *tally {
	total := &tally{}
	for _, t := range tallies {
		t.mu.Lock()
		total.sent += t.sent
		total.attempts += t.attempts
		for o, n := range t.ends {
			total.ends[o] += n
		}
		if t.latency != nil {
			if total.latency == nil {
				total.latency = newHistogram()
			}
			total.latency.Merge(t.latency)
		}
		t.mu.Unlock()
	}
	return total
}
