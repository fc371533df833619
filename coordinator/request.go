package coordinator

import (
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// MaxTrackedHits is how far the hits of a search are counted; more are "gte",
// as with OpenSearch's default for track_total_hits.
const MaxTrackedHits = 10000

// Request is one search or count as a client asks for it. The principal is not
// in it: it stays in the context.
type Request struct {
	ID           string        // X-Opaque-Id; "": the coordinator numbers the search
	Index        string        // comma-separated names and patterns as they were sent; "": all
	GroupHeader  string        // workloadGroupId; "": none
	Query        []byte        // canonical text; must not be changed until the search's last data node has answered
	From, Size   int           // hits wanted; a count has neither
	ServiceTime  time.Duration // of each shard; negative: drawn from the index's distribution
	Timeout      time.Duration // 0: the group's or the cluster's default; negative: none
	AllowPartial *bool         // whether some shards may fail; nil: the cluster's default
	Count        bool          // only count
}

// Response is the answer to a search that completed. It belongs to the caller.
type Response struct {
	Took     time.Duration
	TimedOut bool   // some data node did not answer in time
	Group    string // id of the group that the search belonged to
	Permit   bool   // it held a permit
	Shards   ShardSummary
	Total    int64  // documents that match, up to MaxTrackedHits
	Relation string // "eq", or "gte" if there are more than Total
	MaxScore float64
	Hits     []Hit
	Count    int64 // all documents that match
}

// Hit is one document of an answer.
type Hit struct {
	Index string
	ID    string
	Score float64
}

// ShardSummary counts the shards of a search. Total is the sum of the
// others but Skipped, which are among the successful ones.
type ShardSummary struct {
	Total, Successful, Skipped, Failed int
	Failures                           []ShardFailure // by index, then shard
}

// ShardFailure is a shard that is missing from an answer, and why.
type ShardFailure struct {
	Index string
	Shard int
	Node  string
	*cluster.Error
}
