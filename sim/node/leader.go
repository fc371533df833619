package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

// Groups returns the workload groups as the leader has them; see promise 2.
func (n *Node) Groups(ctx context.Context) ([]*cluster.Group, error) {
	body, err := n.askLeader(ctx, kindGroups, nil, func(ctx context.Context) ([]byte, error) {
		groups, err := n.leaderGroups(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(groups)
	})
	if err != nil {
		return nil, err
	}
	var groups []*cluster.Group
	return groups, json.Unmarshal(body, &groups)
}

func (n *Node) leaderGroups(ctx context.Context) ([]*cluster.Group, error) {
	if err := n.verify(ctx); err != nil {
		return nil, err
	}
	return n.replica.State().Groups(), nil
}

// leaderCommit returns an index that covers all that was committed before the
// call.
func (n *Node) leaderCommit(ctx context.Context) (uint64, error) {
	if err := n.verify(ctx); err != nil {
		return 0, err
	}
	return n.replica.AppliedIndex(), nil
}

// verify makes sure that this node leads and has applied what was committed
// before the call.
func (n *Node) verify(ctx context.Context) error {
	err := n.replica.VerifyLeader(ctx)
	if err != nil && ctx.Err() == nil {
		return n.notLeader() // a read may be asked again
	}
	return err
}

// takeOver gives a new cluster its settings.
func (n *Node) takeOver() error {
	if n.replica.State().Version() > 0 || len(n.config.Settings.Persistent)+len(n.config.Settings.Transient) == 0 {
		return nil
	}
	if err := n.replica.VerifyLeader(n.ctx); err != nil {
		return err
	}
	if n.replica.State().Version() > 0 {
		return nil
	}
	_, err := n.replica.Propose(n.ctx, &cluster.PutSettings{SettingsChange: n.config.Settings})
	return err
}

// catchUp makes the node ready once it has applied what was committed when it
// started, and is itself in the state.
func (n *Node) catchUp() {
	for {
		changed, members := n.raftChanged.next(), n.membersChanged.next()
		err := n.catchUpOnce()
		if err == nil {
			n.coordinator.RefreshRules()
			n.ready.Store(true)
			close(n.caughtUp)
			n.log.Info("the node is ready", "version", n.State().Version())
			return
		}
		n.log.Debug("the node is not ready yet", "error", err)
		if !n.await(retryInterval, changed, members) {
			return
		}
	}
}

func (n *Node) catchUpOnce() error {
	answer, err := n.askLeader(n.ctx, kindCommit, nil, func(ctx context.Context) ([]byte, error) {
		index, err := n.leaderCommit(ctx)
		return strconv.AppendUint(nil, index, 10), err
	})
	if err != nil {
		return err
	}
	index, err := strconv.ParseUint(string(answer), 10, 64)
	if err != nil {
		return err
	}
	// Raft does not tell when it has applied an entry that is no command.
	for wait := time.Millisecond; n.replica.AppliedIndex() < index; wait = min(2*wait, retryInterval) {
		if !n.sleep(wait) {
			return errClosed
		}
	}
	state := n.replica.State()
	if self := state.Node(n.config.Name); self == nil || self.ID != n.config.ID {
		return fmt.Errorf("the state of version %d does not know this node yet", state.Version())
	}
	return n.applier.Wait(n.ctx, state.Version())
}

// Ready waits until the node has caught up with the cluster since its start.
func (n *Node) Ready(ctx context.Context) error {
	select {
	case <-n.caughtUp:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return errClosed
	}
}

// takeOut removes a node from raft and from the state. It first waits until
// this node has heard that the other one is leaving, since it would be taken in
// again otherwise.
func (n *Node) takeOut(ctx context.Context, name string) error {
	if !n.replica.IsLeader() {
		return n.notLeader()
	}
	for {
		changed := n.membersChanged.next()
		if !n.stays(name) {
			break
		}
		if !n.await(retryInterval, changed, ctx.Done()) {
			return errClosed
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if n.replica.State().Node(name) != nil {
		if _, err := n.replica.Propose(ctx, &cluster.RemoveNode{Name: name}); err != nil {
			return n.leading(err)
		}
	}
	return n.leading(n.replica.Remove(ctx, name))
}

// stays says whether a member is alive and not about to leave.
func (n *Node) stays(name string) bool {
	for _, m := range n.gossip.Members() {
		if m.Name == name {
			return m.Alive && !leaving(m)
		}
	}
	return false
}

// leading turns raft's word that this node does not lead into a refusal that
// makes the sender look for another leader.
func (n *Node) leading(err error) error {
	if _, elsewhere := errors.AsType[*replica.NotLeaderError](err); elsewhere {
		return n.notLeader()
	}
	return n.known(err)
}
