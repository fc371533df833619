// Package gossip tells a node who else is in the cluster and carries its messages to them. It is the only importer of
// hashicorp/memberlist, and everything it shows of it is plain types: a network to hand in, members, bytes.
//
// # Promises
//
//  1. A message goes to the life of a member that was current when it was sent, never to a later one. A life is one run
//     of a node: its name, its address and its start. memberlist knows lives, callers know names.
//  2. A request has exactly one outcome: the answer, the handler's error, a refusal that says it was not handled, or an
//     error that says the outcome is unknown. A request or a one-way message is never sent twice; an answer that did not
//     get through is, a few times, and again when its requester is heard. A request
//     that was lost with its stream, as over a cut, is found out and fails with ErrGone within some eight times
//     Timings.Stream of the time when the two hear each other again. An answer meant for an earlier life of the requester is dropped.
//  3. A requester that gives up, dies, or closes ends the context of its handlers.
//  4. A member whose address refuses a dial is dead in this node's view at once, and what waits for it fails with
//     ErrGone. It is alive again when a packet or a stream comes from it, or gossip hears of it anew. While requests wait
//     for a silent member, its address is dialled every Timings.Check.
//  5. What waits for one life is packed: one dial carries everything that queued up during the dial before. Queues are
//     bounded in messages and bytes, packs too, and so are the requests handled at a time.
//  6. A node that comes back under its name at another address is taken back as soon as its old address refuses, names
//     another life, or does not answer within Timings.NameProbe. If the old address answers, the newcomer's Join fails
//     with ErrNameTaken and no node ever sends it anything meant for the first.
//  7. Dead members are remembered, and their addresses tried every Timings.Rejoin, so that the two sides of a cut find
//     each other again however long it was. Members that left are forgotten.
//  8. Bytes that are no message are logged and dropped whole; they never stop the node.
//  9. Close ends every goroutine this package started and waits for it.
//
// # Order and ownership
//
// Messages carry no order among each other: two messages to one member may be handled in either order. Bodies belong to
// this package from the call on, and to the handler from its call on.
//
// Every exported method may be called from any goroutine, also from a Handler and from OnChange, except Close, which waits
// for both. No lock is held across a send, a wait or a callback.
//
// memberlist has no way to wait for its own goroutines: probes of members that do not answer outlive Close by up to
// Timings.Linger. They reach nothing of this package any more.
package gossip
