package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

// Propose has a command committed and waits until it is applied everywhere;
// see promise 1. It returns a *cluster.Error when the command is refused, when
// no leader was found in time, or with kind OutcomeUnknown when the leader was
// lost half way.
func (n *Node) Propose(ctx context.Context, c cluster.Command) (*rest.Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := n.checkUnnamed(c); err != nil {
		return nil, err
	}
	body, err := cluster.EncodeCommand(c)
	if err != nil {
		return nil, err
	}
	n.pending.Add(1)
	defer n.pending.Add(-1)
	answer, err := n.askLeader(ctx, kindPropose, body, func(ctx context.Context) ([]byte, error) {
		a, err := n.lead(ctx, c)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	})
	if err != nil {
		return nil, err
	}
	var a proposeAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown: the leader's answer cannot be read: %v", err)
	}
	return &rest.Result{Version: a.Version, Acknowledged: a.Acknowledged, Group: a.Group, Rule: a.Rule, Index: a.Index}, nil
}

// checkUnnamed refuses what makes no sense where nobody is named. The node that
// takes a request asks, and the leader again.
func (n *Node) checkUnnamed(c cluster.Command) error {
	if !n.config.REST.NoPrincipals {
		return nil
	}
	return n.config.Switches.DimensionKey.CheckUnnamed(c)
}

// askLeader has the leader answer a message: through local when this node
// leads, else over gossip. It looks for a leader for up to the manager
// timeout, and asks again only when the message surely did nothing.
func (n *Node) askLeader(ctx context.Context, k kind, body []byte, local func(context.Context) ([]byte, error)) ([]byte, error) {
	deadline := time.NewTimer(n.config.ManagerTimeout)
	defer deadline.Stop()
	for {
		changed, members := n.raftChanged.next(), n.membersChanged.next()
		leader, _, term := n.replica.Leader()
		var answer []byte
		err := errNoLeader
		switch {
		case leader == "":
		case leader == n.config.Name:
			answer, err = local(ctx)
		default:
			answer, err = n.askOther(ctx, leader, term, k, body)
		}
		if err != errNoLeader && cluster.KindOf(err) != notLeadingKind {
			return answer, n.known(err)
		}
		select {
		case <-deadline.C:
			return nil, cluster.Errorf(cluster.NotDiscovered, "no cluster manager was found within %v", n.config.ManagerTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
		}
		if !n.await(retryInterval, changed, members) {
			return nil, errClosed
		}
	}
}

// errNoLeader means that nobody has acted on a message and it may be sent
// again.
var errNoLeader = errors.New("no leader")

// notLeadingKind is how a node refuses what only a leader may answer. It never
// reaches a client.
const notLeadingKind cluster.Kind = "not_leader"

var errClosed = cluster.Errorf(cluster.ClusterBlock, "the node is closing")

func (n *Node) notLeader() error {
	return cluster.Errorf(notLeadingKind, "node [%s] does not lead", n.config.Name)
}

// known turns the errors of the parts into refusals for the client.
func (n *Node) known(err error) error {
	switch {
	case err == nil, cluster.KindOf(err) != "":
		return err
	case errors.Is(err, replica.ErrOutcomeUnknown):
		return cluster.Errorf(cluster.OutcomeUnknown, "%v", err) // it begins with these words
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown: the wait ended: %v", err)
	case errors.Is(err, replica.ErrClosed):
		return errClosed
	}
	return cluster.Errorf(cluster.IllegalState, "%v", err)
}

// askOther sends a message to the leader and waits for the answer, a newer
// term, or the loss of the leader, whatever comes first.
func (n *Node) askOther(ctx context.Context, leader string, term uint64, k kind, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	n.run(func() {
		defer close(watched)
		n.watchTerm(ctx, leader, term, cancel)
	})
	answer, err := n.gossip.Request(ctx, leader, append([]byte{byte(k)}, body...))
	lost := context.Cause(ctx)
	cancel(nil)
	<-watched
	if err == nil {
		answer, err = open(answer)
	}
	switch {
	case err == nil:
		return answer, nil
	case cluster.KindOf(err) == notLeadingKind, errors.Is(err, gossip.ErrUnknownMember), errors.Is(err, gossip.ErrFull), errors.Is(err, gossip.ErrNotSent):
		return nil, errNoLeader
	case cluster.KindOf(err) != "":
		return nil, err
	case errors.Is(lost, errLeaderLost):
		return nil, cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown: leader [%s] of term %d was lost before it answered", leader, term)
	case errors.Is(err, gossip.ErrGone):
		return nil, cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown: the connection to leader [%s] broke before it answered", leader)
	}
	return nil, cluster.Errorf(cluster.OutcomeUnknown, "outcome unknown: leader [%s] did not answer: %v", leader, err)
}

var errLeaderLost = errors.New("the leader was lost")

// watchTerm cancels a wait as soon as raft shows a newer term.
func (n *Node) watchTerm(ctx context.Context, leader string, term uint64, cancel context.CancelCauseFunc) {
	for {
		changed := n.raftChanged.next()
		if name, _, now := n.replica.Leader(); now > term || (name != "" && name != leader) {
			cancel(errLeaderLost)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-n.ctx.Done():
			cancel(errLeaderLost)
			return
		}
	}
}

// lead commits a command as the leader and waits until every member that is
// alive has applied it, or until the publish timeout.
func (n *Node) lead(ctx context.Context, c cluster.Command) (*proposeAnswer, error) {
	if err := n.checkUnnamed(c); err != nil {
		return nil, err
	}
	state, err := n.replica.Propose(ctx, c)
	if _, elsewhere := errors.AsType[*replica.NotLeaderError](err); elsewhere {
		return nil, n.notLeader()
	}
	if err != nil {
		return nil, n.known(err)
	}
	answer := &proposeAnswer{Version: state.Version(), Acknowledged: n.awaitApplied(ctx, state)}
	switch c := c.(type) {
	case *cluster.CreateGroup:
		answer.Group = state.GroupNamed(c.Group.Name)
	case *cluster.UpdateGroup:
		answer.Group = state.GroupNamed(c.Name)
	case *cluster.CreateRule:
		answer.Rule = state.Rule(c.Rule.ID)
	case *cluster.UpdateRule:
		answer.Rule = state.Rule(c.ID)
	case *cluster.CreateIndex:
		answer.Index = state.Index(c.Name)
	}
	return answer, nil
}
