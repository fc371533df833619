// Package cluster holds the values that a cluster agrees on and the only
// transition between them.
//
// A [State] is immutable: every accessor returns shared memory that nobody
// changes, so a State may be read from any goroutine without a lock and kept
// as long as one likes. The next State comes from [Apply] alone.
//
// Promises, which the tests name by number:
//
//  1. Apply is pure and total. On any input it returns a state or an error and
//     never both; it reads no clock, no randomness and no map order, and it
//     never panics. A refused command leaves the version where it was.
//  2. Strict on the way in: [Command.Validate] refuses whatever a client may
//     not write, with OpenSearch's message. Lenient on what is stored: Apply
//     keeps a group that Validate would refuse, and [Group.Faults] says what
//     is wrong with it, so that a node can warn and leave it unthrottled.
//     Throttling is written in one of two forms, [DimensionKey]; a command says
//     which it has, and what comes of it is judged by that form.
//  3. What [EncodeCommand] and [EncodeState] write, [DecodeCommand] and
//     [DecodeState] read back to an equal value; an unknown kind, field or
//     format, or a cut-off text, is an error and never a guess. The Encode
//     functions refuse what JSON cannot carry, text that is not UTF-8 and
//     numbers that are not finite; nothing that was decoded holds any.
//  4. [Diff] of two states lists every group, rule, index and node that was
//     added, removed or changed, sorted, and nothing else.
//
// The package imports the standard library only.
package cluster
