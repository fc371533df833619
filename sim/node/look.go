package node

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
)

// Members returns gossip's view of the cluster, this node included, sorted by
// name.
func (n *Node) Members() []gossip.Member { return n.gossip.Members() }

// Applied returns the version whose last listener has returned on this node.
func (n *Node) Applied() uint64 { return n.applier.Applied() }

// CaughtUp says whether [Node.Ready] has nothing left to wait for.
func (n *Node) CaughtUp() bool { return n.ready.Load() }

// Leading says whether this node takes itself for the leader, and in which
// term. Of two nodes that both do, the one with the higher term is right.
func (n *Node) Leading() (term uint64, leads bool) {
	_, _, term = n.replica.Leader()
	return term, n.replica.IsLeader()
}

// TransferLeadership has this node, which must lead, hand the leadership over
// to another manager, or to any if to is "". It returns when this node has
// stepped down.
func (n *Node) TransferLeadership(ctx context.Context, to string) error {
	if !n.replica.IsLeader() {
		return cluster.Errorf(cluster.NotDiscovered, "node [%s] does not lead", n.config.Name)
	}
	if to == "" {
		return n.known(n.replica.TransferLeadership(ctx))
	}
	return n.known(n.replica.TransferLeadershipTo(ctx, to))
}
