package datanode

import (
	"math"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// stream is a source of numbers that is fixed by where it began (splitmix64).
type stream uint64

// next returns the stream's next number.
func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// mix is a one-to-one map of 64 bits in which each bit of the result depends
// on every bit of v.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// unit returns a number over 0 and up to 1.
func (s *stream) unit() float64 { return float64(s.next()>>11+1) / (1 << 53) }

// normal returns a number of the standard normal distribution (Box and Muller).
func (s *stream) normal() float64 {
	return math.Sqrt(-2*math.Log(s.unit())) * math.Cos(2*math.Pi*s.unit())
}

// hashBytes continues an FNV-1a hash with a text and its end, so that two texts
// in a row never hash as their concatenation.
func hashBytes[T string | []byte](h uint64, text T) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return hashNumber(h, uint64(len(text)))
}

func hashNumber(h, n uint64) uint64 { return mix(h ^ mix(n+0x9e3779b97f4a7c15)) }

// normalP99 is the 99th percentile of the standard normal distribution.
const normalP99 = 2.3263478740408408

// draw returns one service time, at most [cluster.MaxServiceTime].
func draw(t cluster.ServiceTime, s stream) time.Duration {
	switch t.Distribution {
	case cluster.Constant:
		return t.Mean
	case cluster.Exponential:
		return bounded(-math.Log(s.unit()) * float64(t.Mean))
	case cluster.LogNormal:
		if t.P50 <= 0 {
			return 0
		}
		sigma := math.Log(float64(t.P99)/float64(t.P50)) / normalP99
		return bounded(float64(t.P50) * math.Exp(sigma*s.normal()))
	case cluster.Uniform:
		return bounded(float64(t.Min) + s.unit()*float64(t.Max-t.Min))
	case cluster.Pareto:
		return bounded(float64(t.Min) * math.Pow(s.unit(), -1/t.Alpha))
	}
	return 0
}

func bounded(nanoseconds float64) time.Duration {
	if !(nanoseconds < float64(cluster.MaxServiceTime)) {
		return cluster.MaxServiceTime
	}
	return max(0, time.Duration(nanoseconds))
}

// occurrences counts how often a search's name came before. It remembers the
// last name of each of its slots only: memory is fixed, a name that is used
// once always counts 0 whatever else arrives, and a name that is used all the
// time starts again from 0 when another one took its slot.
type occurrences struct {
	slots []occurrence // allocated at the first search
}

type occurrence struct {
	name  uint64
	count uint64
}

// occurrenceSlots is the number of slots: 16 KiB a data node.
const occurrenceSlots = 1024

func (o *occurrences) count(name uint64) uint64 {
	if o.slots == nil {
		o.slots = make([]occurrence, occurrenceSlots)
	}
	slot := &o.slots[name%occurrenceSlots]
	if slot.name != name {
		*slot = occurrence{name: name}
		return 0
	}
	slot.count++
	return slot.count
}
