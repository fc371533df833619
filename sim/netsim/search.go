package netsim

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Sighting is one place where a Search found its pattern.
type Sighting struct {
	Flow
	// At is the wall or virtual time of sending.
	At time.Time
	// Offset is where the pattern begins, in bytes from the start of the
	// direction of the stream, or of the datagram.
	Offset int64
}

// String returns the sighting in one line.
func (s Sighting) String() string {
	what := "a datagram"
	if s.Stream != 0 {
		what = fmt.Sprintf("stream %d", s.Stream)
	}
	return fmt.Sprintf("%s :%d -> %s :%d, byte %d of %s, at %s",
		s.From, s.FromPort, s.To, s.ToPort, s.Offset, what, s.At.UTC().Format("15:04:05.000000000"))
}

// maxSightings bounds what a Search keeps; it counts on.
const maxSightings = 100

// Search is a Tap that looks for a pattern of bytes in every datagram and in
// every direction of every stream put together again, so that a pattern cut
// over several writes is found.
type Search struct {
	pattern []byte
	between func(from, to string) bool

	mu    sync.Mutex
	found []Sighting
	count uint64
}

// NewSearch returns a search for the pattern in what is sent between hosts for
// which between says true; nil means all. An empty pattern is an error, as it
// would be found everywhere.
func NewSearch(pattern []byte, between func(from, to string) bool) (*Search, error) {
	if len(pattern) == 0 {
		return nil, errors.New("netsim: the pattern to search for is empty")
	}
	if between == nil {
		between = func(string, string) bool { return true }
	}
	return &Search{pattern: bytes.Clone(pattern), between: between}, nil
}

// Found returns the first 100 sightings and the number of all.
func (s *Search) Found() ([]Sighting, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Sighting(nil), s.found...), s.count
}

// Stream implements Tap.
func (s *Search) Stream(flow Flow) func([]byte) {
	if !s.between(flow.From, flow.To) {
		return nil
	}
	tail := make([]byte, 0, 2*(len(s.pattern)-1))
	return (&streamSearch{search: s, flow: flow, tail: tail}).see
}

// Datagram implements Tap.
func (s *Search) Datagram(flow Flow, b []byte) {
	if s.between(flow.From, flow.To) {
		s.look(flow, b, 0)
	}
}

// look notes every place of the pattern in b, which begins at the offset.
func (s *Search) look(flow Flow, b []byte, offset int64) {
	for {
		i := bytes.Index(b, s.pattern)
		if i < 0 {
			return
		}
		s.note(Sighting{Flow: flow, At: time.Now(), Offset: offset + int64(i)})
		b, offset = b[i+1:], offset+int64(i)+1
	}
}

func (s *Search) note(sighting Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if len(s.found) < maxSightings {
		s.found = append(s.found, sighting)
	}
}

// streamSearch searches one direction of a stream. Of what went by it keeps one
// byte less than the pattern has.
type streamSearch struct {
	search *Search
	flow   Flow
	tail   []byte
	seen   int64 // bytes before the next ones
}

func (s *streamSearch) see(b []byte) {
	keep := len(s.search.pattern) - 1
	// A match that began in the tail ends within the next keep bytes, and the
	// tail is too short to hold one of its own.
	seam := append(s.tail, b[:min(keep, len(b))]...)
	s.search.look(s.flow, seam, s.seen-int64(len(s.tail)))
	if len(b) > keep {
		s.search.look(s.flow, b, s.seen)
		seam = append(s.tail[:0], b[len(b)-keep:]...)
	} else if len(seam) > keep {
		seam = append(s.tail[:0], seam[len(seam)-keep:]...)
	}
	s.tail = seam
	s.seen += int64(len(b))
}
