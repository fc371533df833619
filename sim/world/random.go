package world

import (
	"math"
	"math/bits"
	"time"

	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// stream is a named source of draws: what it gives follows from the run's seed,
// its names, and the number of the draw, and from nothing else.
type stream uint64

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, as splitmix64 has it

// scramble is the output function of splitmix64.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// named returns the stream of these names within s. Names are set apart, so
// that ("a", "bc") and ("ab", "c") differ.
func (s stream) named(names ...string) stream {
	h := scramble(uint64(s) + golden)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 0x100000001b3 // FNV-1a
		}
		h = scramble(h ^ uint64(len(name)))
	}
	return stream(h)
}

// at returns the stream of a number within s.
func (s stream) at(number uint64) stream { return stream(scramble(uint64(s) + (number+1)*golden)) }

// seed returns a seed for somebody else's source.
func (s stream) seed() uint64 { return scramble(uint64(s)) }

// draws gives the numbers of a stream in turn. It belongs to one goroutine.
type draws struct{ state uint64 }

func (s stream) draws() draws { return draws{uint64(s)} }

func (d *draws) next() uint64 {
	d.state += golden
	return scramble(d.state)
}

// upTo draws a number in [0, most], evenly; most is below 2^64-1.
func (d *draws) upTo(most uint64) uint64 {
	high, _ := bits.Mul64(d.next(), most+1)
	return high
}

// share draws a number in [0, 1).
func (d *draws) share() float64 { return float64(d.next()>>11) / (1 << 53) }

// between draws a duration of a range, evenly, to the nanosecond.
func (d *draws) between(r scenario.Range) time.Duration {
	return time.Duration(r.Min) + time.Duration(d.upTo(uint64(r.Max-r.Min)))
}

// exponential draws the time to the next event of a Poisson process.
func (d *draws) exponential(mean time.Duration) time.Duration {
	return time.Duration(-math.Log1p(-d.share()) * float64(mean))
}

func netRange(r scenario.Range) netsim.Range {
	return netsim.Range{Min: time.Duration(r.Min), Max: time.Duration(r.Max)}
}
