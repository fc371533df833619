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

// find returns what a shard holds for a query: the best window documents by
// falling score.
func find(shard wire.ShardID, query []byte, window int) wire.ShardAnswer {
	place := stream(hashNumber(hashBytes(0, shard.Index), uint64(shard.Shard)))
	documents := leastDocuments + place.next()%(mostDocuments-leastDocuments)
	names := place.next()

	matches := stream(hashBytes(uint64(place), query))
	total := matches.next() % (documents/8 + 1)
	start := matches.next() % documents
	answer := wire.ShardAnswer{Shard: shard, Total: int64(total), Searched: int64(documents)}
	if total == 0 {
		return answer
	}
	score := 1 + 15*matches.unit()
	answer.MaxScore = float64(float32(score))
	n := min(window, int(total))
	ids := idTexts(names, start, documents, n)
	if n > 0 {
		answer.Hits = make([]wire.Hit, n)
	}
	for i := range answer.Hits {
		answer.Hits[i] = wire.Hit{ID: ids[i*idLength : (i+1)*idLength], Score: float64(float32(score))}
		score *= 1 - (0.0005 + 0.002*matches.unit()) // scores fall strictly, also as float32
	}
	return answer
}

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
