package datanode

import (
	"strings"

	"github.com/wlmsim/wlmsim/cluster/wire"
)

// MaxResultWindow bounds from + size of a search, as index.max_result_window
// does in OpenSearch.
const MaxResultWindow = 10000

// Bounds of what a shard holds.
const (
	leastDocuments = 1000
	mostDocuments  = 100000
	idLength       = 20 // characters, as of ids that OpenSearch makes
)

// place is what an index and a shard alone decide: where the streams of a shard
// begin.
type place stream

func placeOf(shard wire.ShardID) place {
	return place(hashNumber(hashBytes(0, shard.Index), uint64(shard.Shard)))
}

// matching returns where the stream of what a query finds begins. The query
// itself is needed no more.
func (p place) matching(query []byte) stream {
	s := stream(p)
	s.next()
	s.next()
	return stream(hashBytes(uint64(s), query))
}

// find returns the documents of a shard that come after skip others, at most
// window, by falling score.
func find(shard wire.ShardID, matches stream, skip, window int) wire.ShardAnswer {
	place := stream(placeOf(shard))
	documents := leastDocuments + place.next()%(mostDocuments-leastDocuments)
	names := place.next()

	total := matches.next() % (documents/8 + 1)
	start := matches.next() % documents
	answer := wire.ShardAnswer{Shard: shard, Total: int64(total), Searched: int64(documents)}
	if total == 0 {
		return answer
	}
	score := 1 + 15*matches.unit()
	answer.MaxScore = float64(float32(score))
	skip = min(skip, int(total))
	n := min(window, int(total)-skip)
	for range skip {
		score *= fall(&matches)
	}
	ids := idTexts(names, start+uint64(skip), documents, n)
	if n > 0 {
		answer.Hits = make([]wire.Hit, n)
	}
	for i := range answer.Hits {
		answer.Hits[i] = wire.Hit{ID: ids[i*idLength : (i+1)*idLength], Score: float64(float32(score))}
		score *= fall(&matches)
	}
	return answer
}

// fall is by how much the next score is less: strictly so, also as float32.
func fall(matches *stream) float64 { return 1 - (0.0005 + 0.002*matches.unit()) }

// idTexts returns the ids of n documents in a row, one after the other. mix is
// one-to-one and eleven digits hold all of it, so no two documents of a shard
// share an id.
func idTexts(names, start, documents uint64, n int) string {
	var text strings.Builder
	text.Grow(n * idLength)
	for i := range n {
		document := (start + uint64(i)) % documents
		var id [idLength]byte
		digits(id[:11], mix(names+document))
		digits(id[11:], mix(names^^document))
		text.Write(id[:])
	}
	return text.String()
}

// digits writes a number's lowest 6 bits first, as far as there is room.
func digits(text []byte, v uint64) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range text {
		text[i] = alphabet[v&63]
		v >>= 6
	}
}
