package replica

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// VerifyLeader returns nil if, at some moment during the call, this replica
// was the leader with a majority's consent, and State covers every command
// that any leader had acknowledged before the call. So what is read from State
// afterwards is linearizable.
//
// raft's own check is not asked: it counts an answer to a message that went
// out before the call, which may have been on its way for long.
func (r *Replica) VerifyLeader(ctx context.Context) error {
	return r.await(ctx, func() error {
		_, _, term := r.Leader()
		if err := r.prepare(term); err != nil {
			return err
		}
		// Whoever hears of no majority for a lease is no leader any more.
		_, others, _ := r.electorate()
		if !r.majority(others, r.cfg.Timings.Lease, func(s Server) bool { return r.follows(s, term) }) || !r.leads(term) {
			return raft.ErrNotLeader
		}
		return nil
	})
}

// leads says whether this replica is the leader of a term.
func (r *Replica) leads(term uint64) bool {
	// A leader leaves its term only after it has ceased to lead.
	return r.IsLeader() && r.session.term.Load() == term
}

// follows sends raft's heartbeat of a term that this replica leads.
func (r *Replica) follows(s Server, term uint64) bool {
	//lint:ignore SA1019 raft itself still reads Leader
	beat := raft.AppendEntriesRequest{RPCHeader: r.header(), Term: term, Leader: []byte(r.cfg.Address)}
	var answer raft.AppendEntriesResponse
	err := r.transport.AppendEntries(raft.ServerID(s.Name), raft.ServerAddress(s.Address), &beat, &answer)
	return err == nil && answer.Success && answer.Term == term
}

// majority asks all other voters at once, and says whether, with this one, a
// majority said yes in time.
func (r *Replica) majority(others []Server, patience time.Duration, ask func(Server) bool) bool {
	answers := make(chan bool, len(others))
	for _, other := range others {
		r.workers.Go(func() { answers <- ask(other) })
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	needed := (len(others) + 1) / 2 // beside this one's own
	for open := len(others); needed > 0; open-- {
		if open < needed {
			return false
		}
		select {
		case yes := <-answers:
			if yes {
				needed--
			}
		case <-timer.C:
			return false
		case <-r.done:
			return false
		}
	}
	return true
}
