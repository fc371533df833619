// Package netsim is a network in memory: hosts with stable addresses that
// listen, dial and exchange datagrams through the interfaces of package net,
// over links with latency, loss, duplication, reordering and cuts. It uses
// package time as it is. In a bubble (package sim/bubble) its time is virtual;
// outside one it works as well, in real time.
//
// Promises:
//
//  1. Streams are reliable whatever the faults: bytes arrive exactly and in
//     order. Loss shows as retransmission delay. A cut holds bytes back, and
//     they arrive after it heals; a writer blocks when its window is full.
//  2. A dial costs one round trip. It is refused when nobody listens or the
//     host is down, and waits in silence across a cut, until the cut heals or
//     the dial times out.
//  3. Datagrams are lost, doubled and held back in the shares that the link's
//     Faults say, arrive in order of sending otherwise, and are dropped without
//     a word by a cut, a full queue, a port nobody listens on, a host that is
//     down.
//  4. A crash of a host fails its own connections at once and resets those of
//     its peers after the link's latency. A connection closed with unread
//     bytes, or written to after its peer closed it, is reset.
//  5. What is drawn for a message follows from the seed, the names of the two
//     hosts, the port and the number of the message on its stream or link
//     alone. A message more in one place, or another share of loss, moves no
//     latency elsewhere.
//  6. Events happen in order of their instants, and those of one instant in
//     order of their making. One goroutine and one timer deliver for the whole
//     network, so driven from one goroutine of a bubble, the same calls give
//     the same deliveries.
//  7. Taps see every byte before it can arrive, and also those that never
//     will.
//  8. Memory is bounded: by a window a stream, a queue a socket, a backlog a
//     listener, and a number of datagrams under way a link. Close ends every
//     call and the network's goroutine.
//  9. No lock is held while a tap, an observer or a caller waits or runs.
//  10. HoldBack takes streams out of the hands of time: what it names, bytes or
//     the making and ending of connections, arrives when Deliver says so, in the
//     order of each stream and in any order between streams, and nothing is lost
//     when it ends.
//
// Reads, writes, dials and accepts may be called from any goroutine. Left out
// on purpose: bandwidth (a message of any size takes the latency), the travel
// time of window credit (only a cut delays it), connections that TCP gives up
// after a quarter of an hour without an answer.
package netsim
