package coordinator

import (
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// MaxTrackedHits is how far the hits of a search are counted; more are "gte",
// as with OpenSearch's default for track_total_hits.
const MaxTrackedHits = 10000

// Request is one search or count as a client asks for it, or the next page of a
// scroll. The principal is not in it: it stays in the context.
type Request struct {
	ID          string               // names the search at steps and to data nodes; "": the coordinator numbers it
	OpaqueID    string               // X-Opaque-Id, for the lists of tasks; "": none
	Index       string               // comma-separated names and patterns as they were sent; "": all
	Options     cluster.IndexOptions // how Index is read
	GroupHeader string               // workloadGroupId; "": none
	Query       []byte               // canonical text; must not be changed until the search's last data node has answered
	From, Size  int                  // hits wanted; a count has neither
	ServiceTime time.Duration        // of each shard; negative: drawn, see Service
	// Service is what each shard's service time is drawn from; the zero value:
	// its index's distribution.
	Service      cluster.ServiceTime
	AllowPartial *bool // whether some shards may fail; nil: the cluster's default
	Count        bool  // only count

	// Preference and Routing choose among the shards of the indices, see
	// [ParsePreference]; "": all of them.
	Preference, Routing string

	// What the search's group may say as well, see the package's policy 2. 0:
	// not given.
	Timeout             time.Duration // negative: none
	CancelAfter         time.Duration // negative: never
	MaxConcurrentShards int           // shards of one data node that are served at once
	BatchedReduce       int           // answers of shards that are reduced at once

	// Lookups are the searches that the rewrite of the query starts.
	Lookups []Lookup

	// Scroll, if positive, keeps the search open for that long so that its next
	// page can be asked for; of a next page, renews that. ScrollID asks for the
	// next page: of the fields above it takes ID, OpaqueID, GroupHeader and
	// AllowPartial.
	Scroll   time.Duration
	ScrollID string
	// PointID searches a point in time in place of Index, and KeepAlive, if
	// positive, keeps it for that long from now on.
	PointID   string
	KeepAlive time.Duration
}

// Lookup is a terms lookup that finds its terms by a query: a search that must
// have ended before the one that needs it can go on.
type Lookup struct {
	Index       string
	Query       []byte
	Routing     string
	ServiceTime time.Duration // of each shard; negative: drawn from the index's distribution
	Lookups     []Lookup      // of its own query
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

	ScrollID     string // with which to ask for the next page; "": it is no scroll
	PointID      string // of the point in time that was searched; "": none
	ReducePhases int    // how often answers of shards were reduced
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
