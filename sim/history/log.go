package history

import (
	"fmt"
	"math/bits"
	"slices"
)

// DefaultEvents is how many events a [Log] keeps unless told otherwise; they
// take about 200 MB.
const DefaultEvents = 1_000_000

// Log collects the events of one run. It is not safe for concurrent use: who
// puts events in order has a lock of his own. Make one with [NewLog].
type Log struct {
	most   uint64
	kept   uint64
	chunks [][]Event // what is kept, in order; all but the last are full
	added  uint64
	hash   uint64
}

// chunkEvents is how many events are kept in one piece: to grow one slice would
// copy it again and again.
const chunkEvents = 4096

// NewLog returns a log that keeps up to most events; 0 or less: none, so that
// it only numbers, counts and hashes them.
func NewLog(most int) *Log { return &Log{most: uint64(max(most, 0)), hash: hashFirst} }

// Add numbers an event, takes it into the hash, keeps it if there is room, and
// returns it with its number.
func (l *Log) Add(e Event) Event {
	l.added++
	e.Seq = l.added
	l.hash = e.hash(l.hash)
	if l.kept < l.most {
		l.keep(e)
	}
	return e
}

func (l *Log) keep(e Event) {
	if l.kept%chunkEvents == 0 {
		l.chunks = append(l.chunks, make([]Event, 0, chunkEvents))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, e)
	l.kept++
}

// Events returns a copy of those that were kept, the first ones.
func (l *Log) Events() []Event { return slices.Concat(l.chunks...) }

// Added returns how many events there were.
func (l *Log) Added() uint64 { return l.added }

// Dropped returns how many events were not kept.
func (l *Log) Dropped() uint64 { return l.added - l.kept }

// Hash returns the hash over all events in 16 hexadecimal digits.
func (l *Log) Hash() string { return fmt.Sprintf("%016x", l.hash) }

// Constants with about as many ones as zeros, from the digits of e.
const (
	hashFirst  = 0xb7e151628aed2a6a
	hashSecond = 0xbf7158809cf4f3c7
	hashLast   = 0x62e7160f38b4da56
)

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// hash takes all fields of an event into h.
func (e *Event) hash(h uint64) uint64 {
	for _, s := range [...]string{e.Kind, e.Node, e.Search, e.Group, e.Listener, e.Detail} {
		h = hashText(h, s)
	}
	for _, pair := range [...][2]uint64{
		{uint64(e.At), e.Seq}, {e.Version, e.Bucket}, {uint64(e.Held), uint64(e.Limit)}, {uint64(e.Status), uint64(e.Life)},
	} {
		h = mix(h^pair[0]^hashSecond, pair[1]^hashLast) + bits.RotateLeft64(h, 23)
	}
	return h
}

// hashText takes a text and its length into h, eight bytes at a time.
func hashText(h uint64, s string) uint64 {
	h ^= uint64(len(s)) * hashSecond
	for len(s) >= 8 {
		h = mix(h^word(s), hashLast) + bits.RotateLeft64(h, 29)
		s = s[8:]
	}
	last := uint64(0)
	for i := range len(s) {
		last = last<<8 | uint64(s[i])
	}
	return mix(h^last, hashFirst) + bits.RotateLeft64(h, 31)
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
