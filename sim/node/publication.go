package node

import (
	"context"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// managerLast says whether a leader publishes a version after the others.
func (n *Node) managerLast() bool {
	return n.config.Switches.Publication == wlm.PublicationManagerLast
}

// holdBack is the applier's gate under the publication manager_last. As
// OpenSearch's manager does, a leader applies a version when every other live
// member has acknowledged it, has died, or cluster.publish.timeout has passed
// since raft handed it over. A node that does not lead, or that loses the lead
// meanwhile, has nothing to wait for: it applies as a follower does.
//
// Versions are committed one after the other without waiting for each other's
// acknowledgements, so the leader is never behind for longer than the timeout,
// however many versions a stuck member has not applied.
func (n *Node) holdBack(ctx context.Context, next *cluster.State, since time.Time) {
	select {
	case <-n.started:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithDeadline(ctx, since.Add(next.PublishTimeout()))
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() {
		n.untilDeposed(ctx)
		cancel()
	})
	if err := n.awaitOthers(ctx, next); err != nil && n.replica.IsLeader() {
		n.log.Debug("this leader applies a version that not every member has acknowledged", "version", next.Version())
	}
	cancel()
	watching.Wait()
}

// untilDeposed waits until this node does not lead, or ctx ends.
func (n *Node) untilDeposed(ctx context.Context) {
	for {
		changed := n.raftChanged.next()
		if !n.replica.IsLeader() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
