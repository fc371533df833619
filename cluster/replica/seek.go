package replica

import (
	"time"

	"github.com/hashicorp/raft"
)

// Bounds of the search for a leader; see promise 8.
const (
	// stagger keeps voters from campaigning at one moment: the nth by name
	// waits n of it first, and n+1 of it after another was heard asking.
	stagger = 25 * time.Millisecond
	// firstWait and lastWait bound the growing time between two attempts.
	firstWait = 2 * time.Millisecond
	lastWait  = time.Second
	// maxAttempts is how often a voter asks in one time without a leader, about
	// ten seconds in all. After that raft's own timeouts must do.
	maxAttempts = 20
	// patience is how long one attempt waits for the others' answers.
	patience = 250 * time.Millisecond
	// settled is how long a leader must be known before the next loss of one
	// counts as a new time without a leader.
	settled = 5 * time.Second
)

// search is what seekLeader remembers of a time without a leader.
type search struct {
	attempts int
	wait     time.Duration
	next     time.Time // no attempt before
	led      bool      // this replica was the last leader it knew of
	since    time.Time // a leader has been known since then; zero: none is
	handing  bool      // it led, cannot write any more, and hands over
}

// never is a delay that only a signal ends.
const never = time.Duration(-1)

// seekLeader helps to a leader while none is known.
func (r *Replica) seekLeader() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var s search
	busy := newBusy()
	for {
		if delay := r.seek(&s, busy, time.Now()); delay == never {
			timer.Stop()
		} else {
			timer.Reset(delay)
		}
		select {
		case <-r.done:
			return
		case <-r.ask:
		case <-timer.C:
		}
	}
}

// seek makes an attempt if its time has come, and returns the delay to the
// next look.
func (r *Replica) seek(s *search, busy *busy, now time.Time) time.Duration {
	self, others, rank := r.electorate()
	leader, _, term := r.Leader()
	if leader == "" {
		s.since = time.Time{}
	}
	switch {
	case rank < 0: // without a vote
		*s = search{}
		return never
	case leader != "":
		return s.follow(leader == r.cfg.Name, now)
	case r.raft.State() != raft.Follower: // raft is about it
		return never
	case r.session.crashed(): // and says nothing more
		return never
	}
	deposed := s.led && r.session.unfit.Load()
	if deposed && !s.handing {
		*s = search{led: true, handing: true}
	}
	s.next = laterOf(s.next, r.firstMoment(s, rank, deposed, now))
	if now.Before(s.next) {
		return s.next.Sub(now)
	}
	if s.attempts == maxAttempts {
		return never
	}
	s.attempts++
	s.wait = min(max(firstWait, 2*s.wait), lastWait)
	s.next = now.Add(s.wait)
	switch {
	case deposed && s.attempts <= len(others):
		// Once: whoever takes the request leads, or raft's timeouts must do. A
		// node that cannot write may not hear who leads.
		s.led = !r.nominate(others[s.attempts-1], busy)
	case !r.session.unfit.Load() && r.electable(others, busy):
		// The others' answers took a while: whoever has been voted for since
		// then is not disturbed.
		if leader, _, later := r.Leader(); leader != "" || later != term {
			break
		}
		r.nominate(self, busy)
		// A campaign that fails met another one, or messages are slow: then
		// the next is raft's own, unless that takes long.
		s.next = now.Add(r.cfg.Timings.Election * time.Duration(2+rank))
	}
	return max(0, time.Until(s.next))
}

// follow notes that a leader is known. One that is lost again at once was
// perhaps deposed by such an attempt, and must not make them begin anew.
func (s *search) follow(self bool, now time.Time) time.Duration {
	s.led, s.handing = self, false
	if s.since.IsZero() {
		s.since = now
	}
	if left := settled - now.Sub(s.since); left > 0 {
		return left
	}
	*s = search{led: self, since: s.since}
	return never
}

// firstMoment returns before when this voter must not try.
func (r *Replica) firstMoment(s *search, rank int, deposed bool, now time.Time) time.Time {
	if deposed {
		return now
	}
	var start time.Time
	if s.attempts == 0 && s.next.IsZero() {
		start = now.Add(time.Duration(rank) * stagger)
	}
	if rival := r.rival.Load(); rival != 0 {
		start = laterOf(start, time.Unix(0, rival).Add(time.Duration(rank+1)*stagger))
	}
	return start
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// electorate returns this voter, the other voters by name, and this one's rank
// among all; -1 if it has no vote.
func (r *Replica) electorate() (self Server, others []Server, rank int) {
	servers, err := r.Servers()
	if err != nil {
		return Server{}, nil, -1
	}
	rank = -1
	voters := 0
	for _, s := range servers {
		if !s.Voter {
			continue
		}
		if s.Name == r.cfg.Name {
			self, rank = s, voters
		} else {
			others = append(others, s)
		}
		voters++
	}
	return self, others, rank
}

// electable asks the other voters whether they would elect this one now. It
// is raft's pre-vote, which changes nothing on who is asked.
func (r *Replica) electable(others []Server, busy *busy) bool {
	index, term, err := r.session.lastEntry()
	if err != nil {
		r.cfg.Log.Warn("no election can be asked for", "error", err)
		return false
	}
	return r.majority(others, patience, func(other Server) bool {
		if !busy.take(other.Name) {
			return false
		}
		defer busy.give(other.Name)
		return r.wouldElect(other, index, term)
	})
}

// wouldElect asks one voter. If that one is at a newer term it is asked again
// beyond it: an election that fails for the term alone brings this server up to
// it, and the next one can succeed.
func (r *Replica) wouldElect(other Server, index, term uint64) bool {
	ask := raft.RequestPreVoteRequest{
		RPCHeader: r.header(), Term: r.session.term.Load() + 1, LastLogIndex: index, LastLogTerm: term,
	}
	for range 2 {
		var answer raft.RequestPreVoteResponse
		err := r.transport.RequestPreVote(raft.ServerID(other.Name), raft.ServerAddress(other.Address), &ask, &answer)
		if err != nil {
			return false
		}
		if answer.Granted || answer.Term < ask.Term {
			return answer.Granted
		}
		ask.Term = answer.Term + 1
	}
	return false
}

// nominate sends a voter raft's request to start an election now, and waits a
// little for it to be taken. It says whether that was so.
func (r *Replica) nominate(voter Server, busy *busy) bool {
	if !busy.take(voter.Name) {
		return false
	}
	taken := make(chan error, 1)
	r.workers.Go(func() {
		defer busy.give(voter.Name)
		taken <- r.transport.TimeoutNow(raft.ServerID(voter.Name), raft.ServerAddress(voter.Address),
			&raft.TimeoutNowRequest{RPCHeader: r.header()}, &raft.TimeoutNowResponse{})
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-taken:
		if err != nil {
			r.cfg.Log.Info("the voter was not reached", "voter", voter.Name, "error", err)
		}
		return err == nil
	case <-timer.C:
	case <-r.done:
	}
	return false
}

func (r *Replica) header() raft.RPCHeader {
	return raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(r.cfg.Name), Addr: []byte(r.cfg.Address),
	}
}
