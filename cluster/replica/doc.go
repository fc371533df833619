// Package replica keeps one node's copy of the cluster's state in step with
// the others'. It is the only importer of hashicorp/raft and of its Bolt
// store, and shows neither: its seams are a listener, a dial function, a
// [Store] with a fault function, and callbacks.
//
// A [Replica] owns its raft, its transport and every goroutine it starts; the
// [Store] belongs to the caller and outlives the replica, so that a crashed
// node can be opened again on what it had written. All methods of both may be
// called from any goroutine.
//
// Promises, which the tests name by number:
//
//  1. Every replica hands over the same states in the same order: Deliver sees
//     each version that a command made, once a run, in order. A refused
//     command makes no version and is not delivered.
//  2. A restore replaces the state, it never merges; a snapshot shows the
//     state of one index and shares no memory that later changes.
//  3. An entry or a snapshot that this program does not know in full, or a
//     state that Deliver refuses, stops the replica with a message (OnStop, or
//     Open's error). It never goes on with a state that may differ.
//  4. Propose answers with the state that its command made, or with what
//     surely did not happen, or with [ErrOutcomeUnknown]. Never a false yes
//     or no.
//  5. A write that the store refuses leaves nothing behind, no half entry and
//     no half snapshot. A leader that cannot write steps down and asks another
//     voter to lead; with space back nothing has to be wiped. A term that
//     cannot be written is tried again until it can: until then the replica
//     takes no part.
//  6. The log is compacted when half of the threshold's entries have come
//     since the last snapshot. A leader proposes nothing beyond that until it
//     is done, so that its log never holds more than the threshold plus the
//     trailing entries (but while snapshots fail). A follower, which cannot
//     hold the leader up, compacts beside what comes in.
//  7. OnChange follows every change of leader, term and configuration;
//     changes that come while it runs are told by one more call. It never
//     holds raft up.
//  8. While no leader is known, a voter whose log a majority would elect asks
//     for that at once, by raft's own TimeoutNow, instead of waiting for a
//     timeout of a second or more. The others are asked first, by raft's
//     pre-vote, which changes nothing on them: no election is started while
//     any majority knows a leader, or from within a minority. The number of
//     attempts is bounded, with growing waits.
//  9. Close ends every goroutine and connection; a replica that closes as
//     leader answers its unfinished proposals.
//
// The order in which followers hear of a change is told in [Replica.Propose].
package replica
