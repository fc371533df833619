package wire

import "github.com/wlmsim/wlmsim/cluster"

// Kinds of a shard's failure that both sides know, beside those of package
// cluster.
const (
	// ShardNotFound: the shard lives elsewhere, or its index has no such shard.
	ShardNotFound cluster.Kind = "shard_not_found_exception"
	// NodeNotConnected: the shard's node is unknown or out of reach, or it left
	// before it answered.
	NodeNotConnected cluster.Kind = "node_not_connected_exception"
	// TimedOut: the shard's node did not answer in time.
	TimedOut cluster.Kind = "timeout_exception"
	// ContextMissing: the data node has no such context: it was freed, its time
	// is over, or the node was started anew.
	ContextMissing cluster.Kind = "search_context_missing_exception"
	// BadAnswer: the shard's node sent what is no answer to what it was asked.
	BadAnswer cluster.Kind = "transport_serialization_exception"
)
