package world

import (
	"context"
	"fmt"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Exploration is how an explorer holds a whole cluster in its hand.
type Exploration struct {
	// Hook sees the steps of every node, after the record, and may keep them
	// waiting.
	Hook probe.Hook
	// Body runs once the cluster stands; see [Drive].
	Body func(*Cluster)
	// End is told what expressions know, at the end.
	End func(scenario.Env)
}

// Explore runs the cluster of a file for an explorer: without HTTP, over links
// that take a nanosecond and lose nothing, since what is explored is order. Of
// the file's steps, load and expectations nothing runs. What is checked, and
// what is an error, is as with [Drive].
func Explore(f *scenario.File, o Options, x Exploration) (*Result, error) {
	alone := *f
	alone.Steps, alone.Load, alone.Expect, alone.Breaks = nil, nil, nil, nil
	o.explored, o.HTTP = &x, false
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	return runWith(&alone, o, x.Body)
}

// Network returns the network between the nodes.
func (c *Cluster) Network() *netsim.Network { return c.w.net }

// Settle waits until a manager leads and the cluster is in order: it moves the
// leadership there, and waits as long as the end of a run would. It is an error
// if that does not come about.
func (c *Cluster) Settle(leader string) error {
	w := c.w
	deadline := time.Now().Add(w.settleBound())
	for {
		err := w.unsettled()
		if m := w.leader(); err == nil && m.name != leader {
			l := m.current.Load()
			err = l.node.TransferLeadership(w.ctx, leader)
			if err == nil {
				err = fmt.Errorf("node %s leads and not %s", m.name, leader)
			}
		}
		switch {
		case err == nil:
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("not settled after %v: %w", w.settleBound(), err)
		}
		time.Sleep(settleInterval)
	}
}

// Heal ends every fault in force: cuts heal, and nodes that crashed are started
// again. It returns when they have been.
func (c *Cluster) Heal() {
	for _, one := range c.w.faults.all() {
		c.w.endFault(one)
	}
}

// Ask carries out an action of an explore block as its client, on the caller's
// goroutine: a request, a cancel, or what the cluster has to get over. There is
// no way there and back, and the clock moves only if a node waits for it. A
// search has an id. The answer is known to expressions when Ask returns. Who
// asks a node that is down, or goes down meanwhile, learns just that.
func (c *Cluster) Ask(a *scenario.Action) (scenario.Answer, error) {
	w := c.w
	switch {
	case a.Cancel != nil:
		if d, ok := w.left.take(a.Cancel.Search); ok {
			d.leave()
			d.stop()
		}
		return scenario.Answer{Status: 200}, nil
	case a.Disturbs():
		return w.askDisturbance(a)
	case a.Request() == nil:
		return scenario.Answer{}, fmt.Errorf("%s is not for an explorer", a.Name())
	}
	members := w.resolve(a.Request().Via)
	if members == nil {
		return scenario.Answer{}, errNoLeader
	}
	l, err := w.up(members[0].name)
	switch {
	case err != nil && a.Search != nil:
		return w.askDown(a, members[0].name, scenario.SearchAnswer{Answer: broke(members[0].name, refusedText)}), err
	case err != nil:
		full := empty(a)
		*common(&full) = broke(members[0].name, refusedText)
		return w.askDown(a, members[0].name, deref(full)), err
	case a.Search != nil:
		return w.askSearch(a.Search, l), nil
	}
	w.event(history.Event{Kind: history.WriteBegin, Node: l.m.name, Detail: describe(a)})
	var full any
	switch {
	case a.GetGroups != nil:
		full = w.getGroups(a.GetGroups, l)
	case a.GetStats != nil:
		full = w.getStats(a.GetStats, l)
	default:
		full = explain(w.write(a, l))
	}
	answer := common(&full)
	answer.Node = l.m.name
	if l.isGone() {
		full = empty(a)
		answer = common(&full)
		*answer = broke(l.m.name, resetText)
	}
	w.event(history.Event{Kind: history.WriteEnd, Node: l.m.name, Status: answer.Status, Detail: describe(a)})
	w.answers.set(a.ID(), deref(full))
	return *answer, nil
}

// askDown gives the answer of a node that is down.
func (w *world) askDown(a *scenario.Action, node string, full any) scenario.Answer {
	w.answers.set(a.ID(), full)
	return broke(node, refusedText)
}

// askDisturbance does what the cluster has to get over. It is an error if that
// cannot be begun, as without a leader that is named.
func (w *world) askDisturbance(a *scenario.Action) (scenario.Answer, error) {
	var err error
	switch {
	case a.TransferLeadership != nil:
		return w.askTransfer(a.TransferLeadership), nil
	case a.Crash != nil:
		err = w.crash(a.Crash)
	case a.Restart != nil:
		w.restartNow(a.Restart)
	case a.Partition != nil:
		err = w.partition(a.Partition)
	case a.Heal != nil:
		w.healNetwork()
	}
	if err != nil {
		return scenario.Answer{Status: 503, Error: scenario.Failure{Reason: err.Error()}}, err
	}
	return scenario.Answer{Status: 200}, nil
}

func (w *world) askSearch(s *scenario.Search, l *life) scenario.Answer {
	roles := w.file.Users[s.User].Roles
	ctx, stop := context.WithCancel(w.principal(s.User, roles))
	client, leave := context.WithCancel(w.ctx)
	defer stop()
	defer leave()
	w.left.set(s.ID, departure{node: l.m.name, leave: leave, stop: stop})
	defer w.left.take(s.ID)
	r := coordinator.Request{ID: s.ID, Index: s.Index, Size: s.Size, Timeout: time.Duration(s.Timeout), AllowPartial: s.AllowPartial}
	if s.Group != "" {
		r.GroupHeader = w.ids.group(s.Group)
	}
	w.tally.send()
	w.event(history.Event{Kind: history.RequestSent, Node: l.m.name, Search: s.ID, Detail: w.owner(s.User, roles)})
	response, err := l.node.Search(ctx, r)
	answer := scenario.SearchAnswer{Answer: explain(err), Shards: summary(response, err)}
	answer.Node = l.m.name
	if response != nil {
		answer.Permit, answer.TimedOut = response.Permit, response.TimedOut
	}
	switch {
	case client.Err() != nil:
		answer = scenario.SearchAnswer{Answer: broke(l.m.name, gaveUpText)}
	case l.isGone():
		answer = scenario.SearchAnswer{Answer: broke(l.m.name, resetText), Shards: answer.Shards}
	}
	w.tally.end(outcomeOf(answer.Answer, client.Err() != nil)) // the clock stands still, or passes for nobody
	w.event(history.Event{Kind: history.RequestAnswered, Node: l.m.name, Search: s.ID, Status: answer.Status, Detail: answer.Error.Type})
	w.answers.set(s.ID, answer)
	return answer.Answer
}

// succession is how long a manager of so many, the first one being 0, does
// without a leader's word in an exploration, before it asks for votes. Who has
// heard of a leader gives nobody its vote, so that the last one to miss it takes
// over: m1 at the start, and then the first of those that can.
func succession(manager, managers int) replica.Timings {
	heartbeat := time.Second
	if manager > 0 {
		heartbeat <<= managers - manager
	}
	return replica.Timings{Heartbeat: heartbeat, Election: heartbeat, Lease: heartbeat / 2}
}

// askTransfer moves the leadership; 503 if it stays.
func (w *world) askTransfer(t *scenario.TransferLeadership) scenario.Answer {
	m := w.leader()
	if m == nil {
		return scenario.Answer{Status: 503, Error: scenario.Failure{Reason: errNoLeader.Error()}}
	}
	l := m.current.Load()
	if l == nil || m.name == t.To {
		return scenario.Answer{Status: 200}
	}
	w.event(history.Event{Kind: history.FaultBegin, Node: m.name, Life: l.number, Detail: "leadership of " + m.name + " moves"})
	err := l.node.TransferLeadership(w.ctx, t.To)
	w.event(history.Event{Kind: history.FaultEnd, Node: m.name, Life: l.number, Detail: "leadership of " + m.name + " moves"})
	if err != nil {
		return scenario.Answer{Status: 503, Error: scenario.Failure{Reason: err.Error()}}
	}
	return scenario.Answer{Status: 200}
}
