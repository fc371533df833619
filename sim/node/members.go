package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

// retryInterval is how soon a node tries again what did not work and what no
// news will announce.
const retryInterval = 100 * time.Millisecond

// await blocks until one of two channels is closed or the time is over. It
// says whether the node is still open.
func (n *Node) await(d time.Duration, a, b <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a:
	case <-b:
	case <-timer.C:
	case <-n.ctx.Done():
		return false
	}
	return true
}

// manageMembers is the leader's work on the membership: it takes over once a
// term, and brings raft and the state in line with what gossip says.
func (n *Node) manageMembers() {
	for {
		changed, members := n.raftChanged.next(), n.membersChanged.next()
		if n.config.OnMembers != nil {
			n.config.OnMembers(n.gossip.Members())
		}
		retry := time.Hour
		if err := n.manageOnce(); err != nil && n.ctx.Err() == nil {
			n.log.Debug("the membership is not in order yet", "error", err)
			retry = retryInterval
		}
		if !n.await(retry, changed, members) {
			return
		}
	}
}

func (n *Node) manageOnce() error {
	if !n.replica.IsLeader() {
		return nil
	}
	if err := n.takeOver(); err != nil {
		return err
	}
	servers, err := n.replica.Servers()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range n.gossip.Members() {
		if !m.Alive {
			continue
		}
		i := slices.IndexFunc(servers, func(s replica.Server) bool { return s.Name == m.Name })
		var server *replica.Server
		if i >= 0 {
			server = &servers[i]
		}
		errs = append(errs, n.settle(planMember(n.config.Name, m, server, n.replica.State().Node(m.Name)), m))
	}
	return errors.Join(errs...)
}

// memberStep is the next thing to do about a member.
type memberStep int

const (
	memberFine     memberStep = iota
	memberRemove              // it lost its disk: its vote must not count until it has caught up
	memberAdd                 // raft does not know it
	memberMove                // it has a new raft address
	memberDescribe            // the state does not know it, or not as it is
	memberPromote             // it may vote, once it has caught up
)

// planMember decides what comes next for a member that gossip sees alive. A
// leader that lost its disk was elected since, so it has caught up; to remove
// itself would leave the cluster without one.
func planMember(leader string, m gossip.Member, server *replica.Server, known *cluster.Node) memberStep {
	switch {
	case leaving(m):
		return memberFine
	case server != nil && known != nil && known.ID != m.ID && server.Voter && m.Name != leader:
		return memberRemove
	case server == nil:
		return memberAdd
	case server.Address != m.Raft:
		return memberMove
	case known == nil || known.ID != m.ID || !slices.Equal(roleNames(known.Roles), m.Roles):
		return memberDescribe
	case !server.Voter && slices.Contains(m.Roles, string(cluster.Manager)):
		return memberPromote
	}
	return memberFine
}

// leaving says whether a member has announced that it leaves: it then has no
// role any more.
func leaving(m gossip.Member) bool { return len(m.Roles) == 0 }

// settle does one step. What follows it comes with the news that it causes.
func (n *Node) settle(step memberStep, m gossip.Member) error {
	if step == memberFine {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.config.ManagerTimeout)
	defer cancel()
	var err error
	switch step {
	case memberRemove:
		n.log.Info("a voter came back without its disk and has to catch up before it votes again", "member", m.Name)
		err = n.replica.Remove(ctx, m.Name)
	case memberAdd:
		err = n.replica.AddNonvoter(ctx, m.Name, m.Raft)
	case memberMove:
		err = n.move(ctx, m)
	case memberDescribe:
		_, err = n.replica.Propose(ctx, &cluster.PutNode{Node: cluster.Node{Name: m.Name, ID: m.ID, Roles: rolesOf(m.Roles)}})
	case memberPromote:
		err = n.promote(ctx, m)
	}
	if err == nil {
		n.membersChanged.fire()
	}
	return err
}

// catchUpTimeout bounds how long the leader waits for one member to catch up
// before it looks after the others.
const catchUpTimeout = time.Second

// promote gives a member its vote once it has applied what the leader has.
func (n *Node) promote(ctx context.Context, m gossip.Member) error {
	waiting, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := n.askApplied(waiting, m.Name, n.replica.State().Version()); err != nil {
		return err
	}
	return n.replica.AddVoter(ctx, m.Name, m.Raft)
}

// move gives a raft member a new address and keeps its vote.
func (n *Node) move(ctx context.Context, m gossip.Member) error {
	servers, err := n.replica.Servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Name == m.Name && s.Voter {
			return n.replica.AddVoter(ctx, m.Name, m.Raft)
		}
	}
	return n.replica.AddNonvoter(ctx, m.Name, m.Raft)
}

func roleNames(roles []cluster.Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}

func rolesOf(names []string) []cluster.Role {
	roles := make([]cluster.Role, len(names))
	for i, name := range names {
		roles[i] = cluster.Role(name)
	}
	return roles
}
