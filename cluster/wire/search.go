package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// Header is one entry of the explicit list of headers that a message between
// nodes carries. Order is kept; names may repeat.
type Header struct {
	Name, Value string
}

// ShardID names one shard.
type ShardID struct {
	Index string
	Shard int
}

// Phase says what a request asks of its shards.
type Phase byte

// The phases of a request. All but the first are of contexts: what a data node
// keeps of a shard from one request to the next.
const (
	Query       Phase = iota // search them, in the contexts of Context if it names any
	OpenScroll               // search them, and keep where each stands under Context
	OpenPoint                // search nothing, and keep each as a point in time under Context
	Fetched                  // of each, Taken says how many hits went to the client
	Free                     // end the contexts of Context
	FreeScrolls              // end every scroll context of the node; names no shards
	ListPoints               // answer with the points in time that the node keeps; names no shards
	phases
)

// ContextID names what data nodes keep for one scroll or one point in time: the
// same on each of them. The zero ContextID names none.
type ContextID struct {
	Session uint64 // of the coordinator that opened it
	Number  uint64 // from 1 on
}

// SearchRequest asks a data node to search some of its shards.
type SearchRequest struct {
	Headers     []Header
	Search      string // the search's X-Opaque-Id or number, for steps and histories
	Group       string // id of the workload group, for the data node's own counters
	Shards      []ShardID
	Query       []byte        // canonical text of the query; equal queries get equal answers
	From, Size  int           // hits wanted: the data node returns the best From+Size of each shard
	ServiceTime time.Duration // each shard's cost; negative: drawn, see Service
	// Service is what a cost is drawn from; the zero value: the index's own
	// distribution.
	Service     cluster.ServiceTime
	Concurrency int    // shards that are served at once at the most; 0: no bound
	Task        uint64 // number of the coordinator's task; 0: none

	Phase     Phase
	Context   ContextID
	KeepAlive time.Duration // of Context from now on; 0: as it was
	Point     string        // the text under which clients know it, if Context is of a point in time
	Taken     []int         // of Fetched: one for each shard
}

// Hit is one document that a shard found.
type Hit struct {
	ID    string
	Score float64
}

// ShardAnswer is what one shard found, or why it failed.
type ShardAnswer struct {
	Shard    ShardID
	Total    int64 // documents that match
	Searched int64 // documents that the shard holds
	MaxScore float64
	Hits     []Hit          // by descending score, then id
	Failure  *cluster.Error // nil: the shard answered
}

// SearchAnswer is a data node's answer: one entry for each shard asked, in the
// order asked.
type SearchAnswer struct {
	Shards []ShardAnswer
	Freed  int     // contexts that Free or FreeScrolls ended
	Points []Point // the answer to ListPoints, in the order in which they were opened
}

// Point is a point in time that a data node keeps.
type Point struct {
	Text      string        // under which clients know it
	Created   int64         // epoch milliseconds, by the data node's clock
	KeepAlive time.Duration // from its last use on
}

// format is the first byte of every message; a node that meets another one
// refuses the message.
const format = 2

// AppendTo appends the request's binary form to b.
func (r *SearchRequest) AppendTo(b []byte) []byte {
	b = slices.Grow(b, r.about())
	b = append(b, format)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendText(b, h.Name)
		b = appendText(b, h.Value)
	}
	b = appendText(b, r.Search)
	b = appendText(b, r.Group)
	b = binary.AppendUvarint(b, uint64(len(r.Shards)))
	for _, s := range r.Shards {
		b = appendShard(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Query)))
	b = append(b, r.Query...)
	b = binary.AppendUvarint(b, uint64(r.From))
	b = binary.AppendUvarint(b, uint64(r.Size))
	b = binary.AppendVarint(b, int64(r.ServiceTime))
	b = appendService(b, r.Service)
	b = binary.AppendUvarint(b, uint64(r.Concurrency))
	b = binary.AppendUvarint(b, r.Task)
	b = append(b, byte(r.Phase))
	b = binary.AppendUvarint(b, r.Context.Session)
	b = binary.AppendUvarint(b, r.Context.Number)
	b = binary.AppendVarint(b, int64(r.KeepAlive))
	b = appendText(b, r.Point)
	b = binary.AppendUvarint(b, uint64(len(r.Taken)))
	for _, n := range r.Taken {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// number is about how long a number is.
const number = 4

// about returns how long the binary form will be, more or less: one growth of
// the buffer in place of several.
func (r *SearchRequest) about() int {
	n := 24*number + len(r.Search) + len(r.Group) + len(r.Query) + len(r.Service.Distribution) + len(r.Point) + len(r.Taken)*number
	for i := range r.Headers {
		n += 2*number + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	for i := range r.Shards {
		n += 2*number + len(r.Shards[i].Index)
	}
	return n
}

// appendService appends a service time: nothing but its distribution if that
// is none.
func appendService(b []byte, t cluster.ServiceTime) []byte {
	b = appendText(b, string(t.Distribution))
	if t.Distribution == "" {
		return b
	}
	for _, d := range []time.Duration{t.Mean, t.P50, t.P99, t.Min, t.Max} {
		b = binary.AppendVarint(b, int64(d))
	}
	return appendFloat(b, t.Alpha)
}

func (d *decoder) service() (t cluster.ServiceTime) {
	if t.Distribution = cluster.Distribution(d.text()); t.Distribution == "" {
		return t
	}
	for _, into := range []*time.Duration{&t.Mean, &t.P50, &t.P99, &t.Min, &t.Max} {
		*into = time.Duration(d.signed())
	}
	t.Alpha = d.float()
	return t
}

// few is how many entries of a list most messages have at the most. They are in
// one piece of memory with the message.
const few = 2

// DecodeSearchRequest reads what [SearchRequest.AppendTo] wrote.
func DecodeSearchRequest(data []byte) (*SearchRequest, error) {
	d := decode(data)
	d.expectFormat()
	whole := &struct {
		SearchRequest
		headers [few]Header
		shards  [few]ShardID
	}{}
	r := &whole.SearchRequest
	r.Headers = list(&d, whole.headers[:0], 2, func() Header { return Header{d.text(), d.text()} })
	r.Search, r.Group = d.text(), d.text()
	r.Shards = list(&d, whole.shards[:0], 2, d.shard)
	if query := d.raw(); len(query) > 0 {
		r.Query = bytes.Clone(query)
	}
	r.From, r.Size = d.size(), d.size()
	r.ServiceTime, r.Service = time.Duration(d.signed()), d.service()
	r.Concurrency, r.Task = d.size(), d.unsigned()
	if r.Phase = Phase(d.byte()); r.Phase >= phases {
		d.fail("phase %d is unknown, this program knows %d", r.Phase, phases)
	}
	r.Context = ContextID{d.unsigned(), d.unsigned()}
	r.KeepAlive, r.Point = time.Duration(d.signed()), d.text()
	r.Taken = list(&d, nil, 1, d.size)
	return r, d.finish("search request")
}

// AppendTo appends the answer's binary form to b.
func (a *SearchAnswer) AppendTo(b []byte) []byte {
	b = slices.Grow(b, a.about())
	b = append(b, format)
	b = binary.AppendUvarint(b, uint64(len(a.Shards)))
	for i := range a.Shards {
		s := &a.Shards[i]
		b = appendShard(b, s.Shard)
		if s.Failure != nil {
			b = append(b, 1)
			b = appendText(b, string(s.Failure.Kind))
			b = appendText(b, s.Failure.Reason)
			continue
		}
		b = append(b, 0)
		b = binary.AppendVarint(b, s.Total)
		b = binary.AppendVarint(b, s.Searched)
		b = appendFloat(b, s.MaxScore)
		b = binary.AppendUvarint(b, uint64(len(s.Hits)))
		for _, h := range s.Hits {
			b = appendText(b, h.ID)
			b = appendFloat(b, h.Score)
		}
	}
	b = binary.AppendUvarint(b, uint64(a.Freed))
	b = binary.AppendUvarint(b, uint64(len(a.Points)))
	for _, p := range a.Points {
		b = appendText(b, p.Text)
		b = binary.AppendVarint(b, p.Created)
		b = binary.AppendVarint(b, int64(p.KeepAlive))
	}
	return b
}

// about returns how long the binary form will be, more or less: one growth of
// the buffer in place of several.
func (a *SearchAnswer) about() int {
	n := 4 * number
	for i := range a.Shards {
		s := &a.Shards[i]
		n += 8*number + len(s.Shard.Index)
		if s.Failure != nil {
			n += len(s.Failure.Kind) + len(s.Failure.Reason)
		}
		for j := range s.Hits {
			n += 2*number + len(s.Hits[j].ID)
		}
	}
	for i := range a.Points {
		n += 3*number + len(a.Points[i].Text)
	}
	return n
}

// DecodeSearchAnswer reads what [SearchAnswer.AppendTo] wrote.
func DecodeSearchAnswer(data []byte) (*SearchAnswer, error) {
	d := decode(data)
	d.expectFormat()
	whole := &struct {
		SearchAnswer
		shards [few]ShardAnswer
	}{}
	a := &whole.SearchAnswer
	a.Shards, a.Freed = list(&d, whole.shards[:0], 5, d.shardAnswer), d.size()
	a.Points = list(&d, nil, 3, func() Point { return Point{d.text(), d.signed(), time.Duration(d.signed())} })
	return a, d.finish("search answer")
}

func (d *decoder) shardAnswer() ShardAnswer {
	s := ShardAnswer{Shard: d.shard()}
	switch failed := d.byte(); failed {
	case 0:
	case 1:
		s.Failure = &cluster.Error{Kind: cluster.Kind(d.text()), Reason: d.text()}
		return s
	default:
		d.fail("a shard's outcome is 0 or 1 but was %d", failed)
		return s
	}
	s.Total, s.Searched, s.MaxScore = d.signed(), d.signed(), d.float()
	s.Hits = list(d, nil, 9, func() Hit { return Hit{d.text(), d.float()} })
	return s
}

// String describes the shard as OpenSearch writes it.
func (s ShardID) String() string { return fmt.Sprintf("[%s][%d]", s.Index, s.Shard) }
