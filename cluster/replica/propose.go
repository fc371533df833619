package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Propose makes a command part of the log and returns the state that it made,
// no other command's. Only the leader can.
//
// When it returns a state, a majority has stored the entry and this replica
// has delivered the state. The followers deliver it one message later: a
// barrier follows each change at once, and carries the news that the change is
// committed.
//
// Errors: a *[cluster.Error] if the command is refused, by its own Validate or
// by the state; *[NotLeaderError]; a *[StoreError] if this node could not
// store it; [ErrClosed]; and, with [ErrOutcomeUnknown] in the chain, whatever
// came between when raft had the command already, the end of ctx included.
func (r *Replica) Propose(ctx context.Context, c cluster.Command) (*cluster.State, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	data, err := cluster.EncodeCommand(c)
	if err != nil {
		return nil, err
	}
	if !r.IsLeader() {
		return nil, r.notLeader()
	}
	r.cfg.Probe.At(probe.Event{
		Step: probe.ClusterProposed, Version: r.State().Version(), Group: groupOf(r.State(), c),
		Detail: cluster.KindName(c), Touches: probe.WriteState,
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made := make(chan *cluster.State, 1)
	err = r.await(ctx, func() error {
		next, err := r.handOver(ctx, data)
		made <- next
		return err
	})
	switch {
	case err == nil:
		return <-made, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil, err
}

// groupOf returns the id of the group that a command is about, "" for another
// command or no such group.
func groupOf(s *cluster.State, c cluster.Command) string {
	var name string
	switch c := c.(type) {
	case *cluster.CreateGroup:
		return c.Group.ID
	case *cluster.UpdateGroup:
		name = c.Name
	case *cluster.DeleteGroup:
		name = c.Name
	}
	if g := s.GroupNamed(name); g != nil {
		return g.ID
	}
	return ""
}

// handOver makes room in the log and then hands one entry to raft.
func (r *Replica) handOver(ctx context.Context, data []byte) (*cluster.State, error) {
	select {
	case r.inHand <- struct{}{}:
		defer func() { <-r.inHand }()
	case <-r.done:
		return nil, ErrClosed
	}
	if r.due() {
		r.compactIfDue()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.apply(data)
}

// apply hands one entry to raft and waits for what the machine made of it.
func (r *Replica) apply(data []byte) (*cluster.State, error) {
	entry := r.raft.Apply(data, 0)
	if err := entry.Error(); err != nil {
		return nil, err
	}
	r.barrier.raise()
	switch made := entry.Response().(type) {
	case *cluster.State:
		return made, nil
	case refusal:
		return nil, made.reason
	case error: // committed, but this replica has stopped
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, made)
	default:
		panic(fmt.Sprintf("replica: the machine answered %T", made))
	}
}

// Leader returns the leader that this replica knows of, "" and "" if none, and
// the term. A newer term than before means that another leader may be there.
func (r *Replica) Leader() (name, address string, term uint64) {
	for {
		term = r.session.term.Load()
		at, id := r.raft.LeaderWithID()
		if r.session.term.Load() == term {
			return string(id), string(at), term
		}
	}
}

// IsLeader says whether this replica takes itself for the leader; only
// VerifyLeader can be sure.
func (r *Replica) IsLeader() bool { return r.raft.State() == raft.Leader }

// CommitIndex returns the last index that this replica knows to be committed.
// On a leader for which VerifyLeader has returned nil it covers everything
// that was ever acknowledged.
func (r *Replica) CommitIndex() uint64 { return r.raft.CommitIndex() }

// AppliedIndex returns the last index up to which every command's state has
// been delivered. It follows CommitIndex also over entries that carry none.
func (r *Replica) AppliedIndex() uint64 {
	sent := r.raft.AppliedIndex() // to the machine, which may not have seen it yet
	for at := r.settled.Load(); ; at++ {
		at = max(at, r.machine.current.Load().index)
		if at >= sent || !r.carriesNone(at+1) {
			r.settled.Store(max(at, r.settled.Load()))
			return at
		}
	}
}

// carriesNone says whether an entry is not the machine's business.
func (r *Replica) carriesNone(index uint64) bool {
	var entry raft.Log
	if err := r.session.backend.GetLog(index, &entry); err != nil {
		// Compacted: then a snapshot of the machine's state covers it.
		return index <= r.session.snapped.Load()
	}
	return entry.Type != raft.LogCommand
}
