// Package check judges a run by the promises of package scenario that are always
// checked: one file a promise.
//
// A [Check] sees the events of a run one by one, in order, so that nothing has
// to be kept for it, and at the end the [Facts] that only the end shows. Its
// [Result] is held, broken or undecided; only held is good. A [Set] hands
// events to the checks that want them.
//
// What the events have to be:
//
//   - Every event of every life of every node, also those of a life that was
//     crashed until nothing of it is left, in one order in which each
//     goroutine's own events are in the order in which it reached them.
//   - [history.RequestSent] before a search reaches its node, and
//     [history.RequestAnswered] once after the node's last event of that
//     search; also where the answer is that there is none.
//   - No two searches that are sent to one node have one name.
//
// Promises:
//
//  1. No check says held of what it could not see: with facts missing that it
//     needs it is undecided.
//  2. A message of a broken promise is a sentence that is always the same for
//     the same fault, then the values of the first time that it was seen, then
//     how many more there were.
//  3. What a check keeps is bounded by what is under way at one time and by
//     the number of nodes, lives, groups and, up to [MaxPrincipals],
//     principals; the search for an order of a history is bounded by
//     [MaxOperations] and [MaxSearch]. Beyond, it is undecided.
//  4. Verdicts depend on the events and the facts alone: on no clock and no
//     order of a map.
//
// Neither a Set nor a Check is safe for concurrent use: whoever puts events in
// order has a lock of his own.
package check
