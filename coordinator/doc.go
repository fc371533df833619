// Package coordinator leads one search through its life on the node that took
// it: read the state once, tag, admit, fan out, merge, give the permit back.
//
// It owns every goroutine that a search needs beside its caller's: the couriers,
// which carry requests to data nodes that are no [Sender]'s to ask, and are used
// again by later searches. [Coordinator.Close] ends them. The states it reads and the peers it asks are
// handed in; it knows neither the applier nor the data nodes.
//
// Promises:
//
//  1. A search reads the published state once, before anything else, and is
//     tagged, judged and spread by that version alone.
//  2. Admission comes before anything that can fail, but that a request has a
//     group twice. A rejection is the answer:
//     no listener hears of it, no data node is asked, nothing else is counted.
//     Whatever fails afterwards, an index that does not exist included, gives
//     the permit back.
//  3. The permit is released exactly once, on every path, before
//     [Coordinator.Search] returns: after success, failure, time-out, the
//     client's departure, and a panic or Goexit in any listener, hook, peer or
//     in the coordinator itself.
//  4. Each search has exactly one outcome, counted before Search returns:
//     completed, failed, throttled or cancelled. It is decided once, after the
//     answers are merged; what happens later does not change it.
//  5. One request goes to each data node that holds a shard of the search, all
//     at once. Every shard is in the answer or is a named failure: index, shard,
//     node and reason. Answers of data nodes are not trusted: one that does not
//     fit its request fails the shards that were asked for.
//  6. A search never waits for a peer past its time-out, the end of its
//     context or Close, whatever the peer does; the context that the peer was
//     given ends then.
//  7. Hits are ordered by falling score, then index, shard and id, so that
//     equal answers merge to equal results whatever order they arrive in.
//
// Tagging (policy 1). Rules are matched in a view of their own, which
// [Coordinator.RefreshRules] takes from the published state, as OpenSearch's
// nodes poll their rule index. A rule applies when every attribute that it names
// matches:
//
//   - principal.username and principal.role: a value equals the user, or one of
//     the roles, byte for byte;
//   - index_pattern: every expression of the request begins with one of the
//     values, with or without a '*', which is dropped. Expressions are compared
//     as they were sent: test_* is that text. A request that names no index
//     matches no pattern.
//
// The groups of the rules that apply are collected per attribute, and the
// attributes' sets are intersected. If that leaves one group, it is the tag.
// Otherwise the groups left (or all, if none is left: OpenSearch's resolvers
// differ here, and its documentation lets a username rule win over an index
// rule) are compared by attribute, username before role before index_pattern:
// the groups that have the attribute win over those that do not, and for
// index_pattern the longest prefix wins. Still more than one group: no tag. In
// mode disabled no rule is looked at.
//
// A request that no rule tags belongs to the group of its workloadGroupId
// header. That header is put once: what becomes of a request that has one and
// that a rule tags too, as a nested search does whose outer one has a group, is
// the switch group_header. An id that the state does not have, of a deleted
// group or one that is not yet known here, means no tag. Without a tag a search
// belongs to DEFAULT_WORKLOAD_GROUP: never throttled, only counted.
//
// The next page of a scroll is tagged by the indices that its scroll id names,
// as they were asked for; a search of a point in time by those that it holds.
//
// Settings of a group (policy 2). For the time-out, the interval after which a
// search is cancelled, the shards of a data node that are served at once and the
// answers that are reduced at once, what the request says goes before what its
// group says, and that before the cluster's setting; with
// override_request_values the group goes before the request. Without any of
// them a data node serves [DefaultConcurrentShards] of its shards at once, and
// all of them for the next page of a scroll. One message carries all shards of a
// node and the node itself counts, so that the shards after the first ones wait
// for no message, as they would in OpenSearch. search.max_buckets has
// no effect, since a simulated search has no aggregations and makes no buckets.
//
// Nested searches. A query that looks terms up by another query has that search
// run first, after the admission, as OpenSearch's rewrite does; see
// [Request.Lookups]. Each is a search of its own, with its own outcome; the first
// that fails is the failure of the outer one.
//
// Scrolls and points in time. What is kept from one request to the next is kept
// on the data nodes; the client's text names it, so any coordinator can go on.
// Both are bounded in number and time by the cluster's settings. One whose time
// is over is gone at once, where OpenSearch looks once a minute. To open and to
// end them takes no permit; whether a page does is the throttle's to say.
//
// All methods may be called from any goroutine.
package coordinator
