package wire

import (
	"encoding/binary"
	"fmt"
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

// SearchRequest asks a data node to search some of its shards.
type SearchRequest struct {
	Headers     []Header
	Search      string // the search's X-Opaque-Id or number, for steps and histories
	Group       string // id of the workload group, for the data node's own counters
	Shards      []ShardID
	Query       []byte        // canonical text of the query; equal queries get equal answers
	From, Size  int           // hits wanted: the data node returns the best From+Size of each shard
	ServiceTime time.Duration // each shard's cost; negative: drawn from the index's distribution
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
}

// format is the first byte of every message; a node that meets another one
// refuses the message.
const format = 1

// AppendTo appends the request's binary form to b.
func (r *SearchRequest) AppendTo(b []byte) []byte {
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
	b = appendText(b, string(r.Query))
	b = binary.AppendUvarint(b, uint64(r.From))
	b = binary.AppendUvarint(b, uint64(r.Size))
	return binary.AppendVarint(b, int64(r.ServiceTime))
}

// DecodeSearchRequest reads what [SearchRequest.AppendTo] wrote.
func DecodeSearchRequest(data []byte) (*SearchRequest, error) {
	d := decoder{rest: data, whole: len(data)}
	d.expectFormat()
	r := &SearchRequest{}
	r.Headers = list(&d, 2, func() Header { return Header{d.text(), d.text()} })
	r.Search, r.Group = d.text(), d.text()
	r.Shards = list(&d, 2, d.shard)
	if query := d.text(); query != "" {
		r.Query = []byte(query)
	}
	r.From, r.Size = d.size(), d.size()
	r.ServiceTime = time.Duration(d.signed())
	return r, d.finish("search request")
}

// AppendTo appends the answer's binary form to b.
func (a *SearchAnswer) AppendTo(b []byte) []byte {
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
	return b
}

// DecodeSearchAnswer reads what [SearchAnswer.AppendTo] wrote.
func DecodeSearchAnswer(data []byte) (*SearchAnswer, error) {
	d := decoder{rest: data, whole: len(data)}
	d.expectFormat()
	a := &SearchAnswer{Shards: list(&d, 5, d.shardAnswer)}
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
	s.Hits = list(d, 9, func() Hit { return Hit{d.text(), d.float()} })
	return s
}

// String describes the shard as OpenSearch writes it.
func (s ShardID) String() string { return fmt.Sprintf("[%s][%d]", s.Index, s.Shard) }
