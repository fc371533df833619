// Package rest is the HTTP API of a node: OpenSearch's routes for searches,
// workload groups, rules, stats and settings, in OpenSearch's shapes, and a few
// of the simulator's own under /_wlmsim.
//
// A [Handler] decodes, calls and encodes. It keeps no state of the cluster: what
// it answers comes from the [Cluster] and the [Searcher] that it was given. It
// is safe for concurrent use and works in a bubble of virtual time. It starts no
// goroutine but those of a multi-search, which end before its answer is written.
//
// Promises, which the tests name by number:
//
//  1. A body is taken only if it is one JSON object in UTF-8 of at most
//     [MaxBody] bytes, with nothing after it, in which every name is known, in
//     its own case, and stands once, and integers are written as plain digits
//     or, in throttling of the form by, as Java parses them. All else is
//     answered with 400 and a reason that names the field, and no command is
//     proposed.
//  2. In an update what is absent changes nothing, null clears its field, and
//     {} or null in place of settings or throttling removes the whole.
//  3. A principal's name reaches the [Searcher] byte for byte as it was sent:
//     by basic auth, or percent-encoded in [HeaderUser] and [HeaderRole]. Bad
//     encoding, and a name of more than [MaxName] bytes, is answered with 400.
//     The principal is in the context of a search and nowhere else.
//  4. Each path that is not in [Handler.Routes] is answered with 404, each
//     method that a path does not have with 405 and Allow, and each query
//     parameter that a route does not take with 400, all in OpenSearch's words.
//  5. One table turns a kind of refusal into a status. A write of which nobody
//     can say whether it happened is answered with 503 and the words "outcome
//     unknown".
//  6. What a search held is given back before the first byte of its answer is
//     written: the [Searcher] returns without a permit. A client that does not
//     read its answer costs at most [AnswerTimeout] of a connection.
//  7. Answers are valid JSON whatever bytes clients chose as names, and have
//     OpenSearch's fields in OpenSearch's order.
//
// # What differs from OpenSearch, by choice
//
//   - An unknown path is 404, not 400.
//   - _list/wlm_stats as JSON leaves the bars between its columns out. A node
//     knows what its simulated searches use, nothing, so that no cell says NA.
//   - _nodes and _nodes/stats show the operating system and the pool only of
//     the node that is asked: as many processors as OpenSearch gives a search
//     pool of that size, whatever the machine has.
//   - _cluster/state is what the asked node has published, with local or without.
//   - Tables of _cat leave out what no simulated node has: heap, load, documents.
//   - A search body may have query, from, size, timeout, track_total_hits,
//     pit, sort by _score or _doc, _source and ext; search_after is refused for
//     OpenSearch's reasons, and other parts, which would have to be made up, are
//     refused by name. The query is not evaluated: equal ones get equal answers.
//   - An index has one copy of each shard; number_of_replicas must be 0, and is
//     0 if absent.
//   - Numbers and booleans in place of text, and text in place of numbers, are
//     refused except in settings, in throttling of the form by, and in resource
//     limits.
//   - A simulated search uses no processor, memory or buckets. So the cluster's
//     thresholds, duress streak and enforcement interval, a group's resource
//     limits and its search.max_buckets are checked, stored and shown, and have
//     no effect. Its other settings have theirs.
//   - The rules are read from the state that is published on the node.
//   - A query is searched only for terms lookups that need another search, at
//     most [MaxLookups]; a multi-search has at most [MaxSubSearches] searches.
//   - A task that has ended leaves no result. Nodes list searches, their shards,
//     multi-searches and what opens or ends contexts, but not other requests.
//   - "ext": {"wlmsim": {"service_time": "500ms"}} sets what a search costs each
//     shard, or the distribution that each shard draws it from; the answer's header [HeaderPermit] says whether it held a permit.
package rest
