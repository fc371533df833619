// Package node assembles one node of a cluster from its parts: the raft
// replica, gossip, the applier, the throttle, the data node, the coordinator
// and the HTTP API. It is the only node there is. The live, the virtual, the
// explored and the exact world differ in the transports and the store that
// they hand to [Start] and in nothing else; the package knows nothing of
// virtual time.
//
// Promises:
//
//  1. [Node.Propose] answers a committed command when every member that is
//     alive in the leader's gossip view has applied it, or when
//     cluster.publish.timeout is over. It answers "outcome unknown" as soon as
//     the leader is lost half way, and never sends a command twice that may
//     have reached a leader.
//     Under the switch publication: manager_last the leader's own applier
//     holds the version back until the others are done, and the answer comes
//     after that; the lead lost, or no other member alive, ends the wait.
//  2. [Node.Groups] is answered by the leader, after the leader has applied
//     all that was committed before its term and has verified that it still
//     leads.
//  3. A node that has not caught up since its start is not ready: it refuses
//     searches and reads.
//  4. Gossip may give a raft member a new address. It never removes one.
//  5. [Node.Close] ends every goroutine of the node before it returns.
//
// All methods of a [Node] may be called from any goroutine.
package node
