// Package streams opens many short streams over few connections. It stands
// between a node's sockets and memberlist, which dials a stream for each
// message it sends: a connection on which a stream has ended at both ends is
// kept, and carries the next stream to the same address. Nothing of a stream is
// looked at or changed, so that what is encrypted stays so.
//
// Only live nodes use it. A simulated network dials for nothing, and there each
// stream is one that a cut, a crash or an exploration treats by itself.
//
// # Promises
//
//  1. A connection carries one stream at a time, so no stream waits for
//     another one's reader, and none sees a byte of another. It carries the next
//     one only after this end has closed the last one and the other end has
//     said that it has, too.
//  2. A connection that broke is never given out once this node has been told:
//     the next stream is dialled, and that a dial is refused reaches its
//     caller. So a peer that is gone is found to refuse as if nothing were kept.
//  3. A stream that this end has closed and the other end has not costs its
//     connection after Bounds.Wait and Bounds.Patience, and with it those kept
//     to that address: the next stream is dialled, which finds out about a cut.
//     What was written still travels, as with any connection that is closed.
//  4. A stream waits for such a connection, Bounds.Wait at the most, rather than
//     dial another one: a sender that is faster than its receiver sends fewer
//     and larger messages, if it packs what comes meanwhile.
//  5. Connections kept are bounded by Bounds.Kept an address and Bounds.KeepFor
//     in time, accepted ones by Bounds.Accepted and twice that time, and each
//     of either holds a frame of at most 64 KiB. A stream that is not read
//     fills its connection's window and nothing else.
//  6. Bytes that are no frames cost their connection, and a word in the log.
//  7. Close ends every connection, stream and goroutine, and waits for the
//     goroutines.
//
// # What a stream is not
//
// The accepting end sees a stream when its first byte arrives, so the dialling
// end must speak first, and within Bounds.KeepFor. A stream that has been closed
// at the dialling end gives EOF at the other only after Bounds.Wait and
// Bounds.Patience. After a Write that failed, also by its deadline, a stream is
// broken. Otherwise streams are as package net describes a Conn.
package streams
