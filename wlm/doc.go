// Package wlm is the throttle of a node: it admits a search, with a permit of
// its bucket or without one, or refuses it with a 429.
//
// A bucket is (group id, attribute, value): one for the group, or one for each
// user or role that is searching. [Throttle.Admit] decides from the state that
// the search read, takes the permit, and counts a refusal; [Permit.Release]
// gives it back.
//
// Three profiles set all of [Switches]: submitted and reviewed are the pull
// request before and after its review, upstream is what OpenSearch made of it.
//
// Promises, which the tests name by number. They hold under profile reviewed;
// each value of a switch that plants a flaw says which one it breaks. Under
// upstream all hold but 4, for names that end in blanks or hold a U+001F.
//
//  1. Bounded: check and increment are one step. A bucket never holds more
//     permits than the limit by which the last one was admitted, and never
//     less than none; the ledger panics rather than break this.
//  2. Returned: a permit is given back exactly once, to the bucket it was
//     taken from, however often and from wherever Release is called.
//  3. Small: a bucket exists only while it holds permits. Memory follows the
//     active buckets, not the users.
//  4. Distinct: names are compared byte for byte, as the authenticator handed
//     them over. Two that differ never share a bucket, equal ones always do.
//  5. Kept: whoever found the bucket full is refused, whatever happens to the
//     count; under monitor: observes unless its group only watches.
//  6. Attributed: a refusal is counted on its own group or not at all, and
//     [Rejection] says which.
//  7. Lenient: a group that is stored with faults is not throttled, the node
//     warns once about it, and other groups are enforced.
//  8. Private: nothing that leaves the package (errors, statistics, steps,
//     logs) names a principal, but for the text of a rejection under
//     rejection_text: names_group, which is for the refused client itself.
//  9. Once: under nested: exempt a search that others started is counted by the
//     one that was counted first, and holds no permit of its own.
//
// [Throttle.ApplySettings] and [Throttle.ClusterChanged] are called by the
// applier's goroutine alone; everything else may be called from any goroutine.
// No lock is held at a step of the probe or while a function of [Config] runs.
// The package starts no goroutine, reads no clock, and imports the standard
// library and packages cluster, probe and wire only.
package wlm
