package replica

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// Servers returns the configuration that this replica goes by, sorted by name.
// The newest change in it may not be committed yet.
func (r *Replica) Servers() ([]Server, error) {
	conf := r.raft.GetConfiguration()
	if err := conf.Error(); err != nil {
		return nil, err
	}
	var servers []Server
	for _, s := range conf.Configuration().Servers {
		servers = append(servers, Server{Name: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers, nil
}

// AddVoter adds a server with a vote, promotes a non-voter, or gives a voter a
// new address. Only the leader can; the errors are those of Propose. What is
// so already needs no change.
func (r *Replica) AddVoter(ctx context.Context, name, address string) error {
	return r.reconfigure(ctx, &Server{Name: name, Address: address, Voter: true}, func() raft.Future {
		return r.raft.AddVoter(raft.ServerID(name), raft.ServerAddress(address), 0, 0)
	})
}

// AddNonvoter adds a server that follows without a vote, or gives a server a
// new address; a voter stays one.
func (r *Replica) AddNonvoter(ctx context.Context, name, address string) error {
	return r.reconfigure(ctx, &Server{Name: name, Address: address}, func() raft.Future {
		return r.raft.AddNonvoter(raft.ServerID(name), raft.ServerAddress(address), 0, 0)
	})
}

// Remove takes a server out. A leader that removes itself steps down. A server
// that is not there needs no change.
func (r *Replica) Remove(ctx context.Context, name string) error {
	return r.reconfigure(ctx, nil, func() raft.Future { return r.raft.RemoveServer(raft.ServerID(name), 0, 0) })
}

// reconfigure does one change of the configuration, unless it has want.
func (r *Replica) reconfigure(ctx context.Context, want *Server, change func() raft.Future) error {
	if !r.IsLeader() {
		return r.notLeader()
	}
	servers, err := r.Servers()
	if err != nil {
		return err
	}
	if want != nil && slices.ContainsFunc(servers, want.covered) {
		return nil
	}
	return r.await(ctx, func() error { return change().Error() })
}

// covered says whether a server is all that s asks for.
func (s Server) covered(by Server) bool {
	return by.Name == s.Name && by.Address == s.Address && (by.Voter || !s.Voter)
}

// TransferLeadership makes another voter the leader, and returns when this
// replica has stepped down.
func (r *Replica) TransferLeadership(ctx context.Context) error {
	return r.await(ctx, func() error { return r.raft.LeadershipTransfer().Error() })
}

// TransferLeadershipTo makes a chosen voter the leader, and returns when this
// replica has stepped down. It fails for a server that is no voter.
func (r *Replica) TransferLeadershipTo(ctx context.Context, name string) error {
	servers, err := r.Servers()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name && s.Voter })
	if i < 0 {
		return fmt.Errorf("server %q is no voter", name)
	}
	return r.await(ctx, func() error {
		return r.raft.LeadershipTransferToServer(raft.ServerID(name), raft.ServerAddress(servers[i].Address)).Error()
	})
}
