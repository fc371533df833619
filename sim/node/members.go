package node

import (
	"context"
	"encoding/json"
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
		state := n.replica.State()
		errs = append(errs, n.settle(planMember(m, server, state.Node(m.Name), n.acks.version(m.Name) >= state.Version()), m))
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
	memberPromote             // it may vote and has caught up
)

// planMember decides what comes next for a member that gossip sees alive.
func planMember(m gossip.Member, server *replica.Server, known *cluster.Node, caughtUp bool) memberStep {
	switch {
	case server != nil && known != nil && known.ID != m.ID && server.Voter:
		return memberRemove
	case server == nil:
		return memberAdd
	case server.Address != m.Raft:
		return memberMove
	case known == nil || known.ID != m.ID || !slices.Equal(roleNames(known.Roles), m.Roles):
		return memberDescribe
	case !server.Voter && slices.Contains(m.Roles, string(cluster.Manager)) && caughtUp:
		return memberPromote
	}
	return memberFine
}

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
		n.acks.forget(m.Name)
		err = n.replica.Remove(ctx, m.Name)
	case memberAdd:
		n.acks.forget(m.Name)
		err = n.replica.AddNonvoter(ctx, m.Name, m.Raft)
	case memberMove:
		err = n.move(ctx, m)
	case memberDescribe:
		_, err = n.replica.Propose(ctx, &cluster.PutNode{Node: cluster.Node{Name: m.Name, ID: m.ID, Roles: rolesOf(m.Roles)}})
	case memberPromote:
		err = n.replica.AddVoter(ctx, m.Name, m.Raft)
	}
	if err == nil {
		n.membersChanged.fire()
	}
	return err
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

// appliedVersions returns what each member has applied: from the leader, or,
// when it does not answer in time, of this node alone.
func (n *Node) appliedVersions(ctx context.Context) map[string]uint64 {
	if n.replica.IsLeader() {
		return n.acks.versions()
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	own := map[string]uint64{n.config.Name: n.applier.Applied()}
	leader, _, term := n.replica.Leader()
	if leader == "" {
		return own
	}
	answer, err := n.askOther(ctx, leader, term, kindMembers, nil)
	if err != nil {
		return own
	}
	versions := map[string]uint64{}
	if err := json.Unmarshal(answer, &versions); err != nil {
		return own
	}
	return versions
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
