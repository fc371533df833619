package coordinator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// merge makes one answer of what the data nodes sent, or the error that stands
// for it. taken is, for each shard that answered, how many of its hits are in
// the answer of a scroll; nil for other searches.
func (s *search) merge(p *plan) (r *Response, taken map[wire.ShardID]int, err error) {
	found, failures := s.collect(p)
	if len(failures) > 0 {
		if len(found) == 0 {
			return nil, nil, newSearchError(AllShardsFailed, failures)
		}
		if !s.allowsPartial() {
			return nil, nil, newSearchError(PartialFailure, failures)
		}
	}
	r = &Response{
		TimedOut:     s.ending == byTimeout,
		Group:        s.group,
		Permit:       s.permit.Held(),
		Shards:       ShardSummary{Total: p.shards, Successful: len(found), Failed: len(failures), Failures: failures},
		Relation:     "eq",
		PointID:      s.request.PointID,
		ReducePhases: reducePhases(len(found), s.limits.reduce),
	}
	for _, a := range found {
		r.Count += a.Total
		r.MaxScore = max(r.MaxScore, a.MaxScore)
	}
	if r.Total = r.Count; r.Total > MaxTrackedHits {
		r.Total, r.Relation = MaxTrackedHits, "gte"
	}
	if s.scrolls() {
		taken = make(map[wire.ShardID]int, len(found))
	}
	if !s.request.Count {
		r.Hits = mergeHits(found, s.request.From, s.request.Size, taken)
	}
	return r, taken, nil
}

// collect sorts the shards of the last fan-out into those that answered and
// those that are missing, sorted.
func (s *search) collect(p *plan) (found []*wire.ShardAnswer, failures []ShardFailure) {
	found = make([]*wire.ShardAnswer, 0, p.shards)
	failures = append(failures, p.missing...)
	for i := range s.calls {
		found, failures = s.calls[i].collect(found, failures, s.limits.timeout)
	}
	sortFailures(failures)
	return found, failures
}

func (s *search) allowsPartial() bool {
	if s.request.AllowPartial != nil {
		return *s.request.AllowPartial
	}
	return s.state.AllowPartialResults()
}

// collect sorts what came of a call into shards that answered and shards that
// failed.
func (k *call) collect(found []*wire.ShardAnswer, failures []ShardFailure, limit time.Duration) ([]*wire.ShardAnswer, []ShardFailure) {
	if whole := k.failure(limit); whole != nil {
		for _, shard := range k.target.shards {
			failures = append(failures, ShardFailure{shard.Index, shard.Shard, k.target.node, whole})
		}
		return found, failures
	}
	for i := range k.answer.Shards {
		a := &k.answer.Shards[i]
		if a.Failure != nil {
			failures = append(failures, ShardFailure{a.Shard.Index, a.Shard.Shard, k.target.node, a.Failure})
		} else {
			found = append(found, a)
		}
	}
	return found, failures
}

// failure returns why none of a call's shards can be used, or nil.
func (k *call) failure(limit time.Duration) *cluster.Error {
	switch {
	case !k.done:
		return errUnanswered(k.target.node, limit)
	case k.err != nil:
		return failureOf(k.target.node, k.err)
	}
	if why := misfit(&k.request, k.answer); why != nil {
		return cluster.Errorf(wire.BadAnswer, "[%s] sent an answer that does not fit: %v", k.target.node, why)
	}
	return nil
}

// misfit says why an answer is none to a request, or nil.
func misfit(r *wire.SearchRequest, a *wire.SearchAnswer) error {
	if a == nil {
		return fmt.Errorf("there is no answer")
	}
	if len(a.Shards) != len(r.Shards) {
		return fmt.Errorf("it has %d shards, %d were asked for", len(a.Shards), len(r.Shards))
	}
	for i := range a.Shards {
		s := &a.Shards[i]
		switch {
		case s.Shard != r.Shards[i]:
			return fmt.Errorf("it has shard %v in place of %v", s.Shard, r.Shards[i])
		case s.Failure != nil:
		case s.Total < 0 || s.Total > math.MaxInt64/cluster.MaxShards/maxIndicesOfSum:
			return fmt.Errorf("shard %v counts %d documents", s.Shard, s.Total)
		case len(s.Hits) > r.From+r.Size || int64(len(s.Hits)) > s.Total:
			return fmt.Errorf("shard %v has %d hits of %d documents, at most %d were asked for", s.Shard, len(s.Hits), s.Total, r.From+r.Size)
		case !ordered(s.Hits):
			return fmt.Errorf("the hits of shard %v are out of order", s.Shard)
		}
	}
	return nil
}

// maxIndicesOfSum is how many indices of the greatest size can be summed up
// before a count of documents could overflow.
const maxIndicesOfSum = 1 << 20

// ordered says whether hits are by falling score, then id. A score that is no
// number is in no order.
func ordered(hits []wire.Hit) bool {
	for i := range hits {
		if math.IsNaN(hits[i].Score) {
			return false
		}
		if i > 0 && (hits[i-1].Score < hits[i].Score || hits[i-1].Score == hits[i].Score && hits[i-1].ID > hits[i].ID) {
			return false
		}
	}
	return true
}

// cursor stands before the best hit of a shard that is not merged yet.
type cursor struct {
	answer *wire.ShardAnswer
	next   int
}

func (c cursor) hit() *wire.Hit { return &c.answer.Hits[c.next] }

// compare orders cursors by promise 7.
func (c cursor) compare(d cursor) int {
	a, b := c.hit(), d.hit()
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(c.answer.Shard.Index, d.answer.Shard.Index),
		cmp.Compare(c.answer.Shard.Shard, d.answer.Shard.Shard),
	)
}

// mergeHits returns hits from to from+size of all shards. The lists of the
// shards are ordered; no two are of one shard.
// taken, if not nil, gets an entry for each shard.
func mergeHits(found []*wire.ShardAnswer, from, size int, taken map[wire.ShardID]int) []Hit {
	cursors := make([]cursor, 0, len(found))
	all := 0
	for _, a := range found {
		all += len(a.Hits)
		if taken != nil {
			taken[a.Shard] = 0
		}
		if len(a.Hits) > 0 {
			cursors = append(cursors, cursor{answer: a})
		}
	}
	n := max(0, min(all-from, size))
	hits := make([]Hit, 0, n)
	slices.SortFunc(cursors, cursor.compare) // a sorted slice is a heap
	for i := 0; len(hits) < n; i++ {
		best := &cursors[0]
		if i >= from {
			hits = append(hits, Hit{best.answer.Shard.Index, best.hit().ID, best.hit().Score})
		}
		if taken != nil {
			taken[best.answer.Shard]++
		}
		if best.next++; best.next == len(best.answer.Hits) {
			last := len(cursors) - 1
			cursors[0] = cursors[last]
			cursors = cursors[:last]
		}
		sink(cursors)
	}
	return hits
}

// sink restores the order of a heap whose top has changed.
func sink(heap []cursor) {
	for top := 0; ; {
		least := 2*top + 1
		if least >= len(heap) {
			return
		}
		if right := least + 1; right < len(heap) && heap[right].compare(heap[least]) < 0 {
			least = right
		}
		if heap[top].compare(heap[least]) <= 0 {
			return
		}
		heap[top], heap[least] = heap[least], heap[top]
		top = least
	}
}
