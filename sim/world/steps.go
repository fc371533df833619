package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// start is one start of a step.
type start struct {
	at     time.Duration
	number int    // of the step, from 0
	path   string // in the file
	step   *scenario.Step
}

// starts lists every start of every step, repeated ones too, in order of time;
// those of one instant in file order.
func (w *world) starts() []start {
	var all []start
	for i := range w.file.Steps {
		s := &w.file.Steps[i]
		times, every := 1, time.Duration(0)
		if s.Repeat != nil {
			times, every = s.Repeat.Times, time.Duration(s.Repeat.Every)
		}
		for k := range times {
			all = append(all, start{time.Duration(s.At) + time.Duration(k)*every, i, fmt.Sprintf("steps[%d]", i), s})
		}
	}
	slices.SortStableFunc(all, func(a, b start) int { return cmp.Compare(a.at, b.at) })
	return all
}

// drive starts every step at its time and the loads, and returns at the end of
// the last thing that the file gives a time to, but not before the body of
// [Drive] has returned. An error means that the body did not return.
func (w *world) drive(b *playing) error {
	for _, l := range w.loads {
		w.client(l.run)
	}
	end := w.end()
	for _, s := range w.starts() {
		if err := w.waitUntil(s.at, b); err != nil {
			return err
		}
		if err := w.begin(s); err != nil {
			w.failed.add(Check{
				Name: s.step.Name(), Verdict: check.Undecided, Line: w.file.Line(s.path),
				Message: fmt.Sprintf("the step at %v could not be done: %v", s.at, err),
			})
		}
	}
	if err := w.waitUntil(end, b); err != nil {
		return err
	}
	return w.waitForBody(b)
}

// end returns when the last thing ends that the file gives a time to.
func (w *world) end() time.Duration {
	var end time.Duration
	for _, s := range w.starts() {
		end = max(end, s.at+lengthOf(&s.step.Action))
	}
	for _, l := range w.loads {
		end = max(end, time.Duration(l.spec.From)+l.length())
	}
	return end
}

// begin starts a step. Only what could not even be started is an error.
func (w *world) begin(s start) error {
	a := &s.step.Action
	switch {
	case a.Request() != nil:
		return w.request(a)
	case a.Cancel != nil:
		w.cancelStep(a.Cancel)
	case a.Hold != nil:
		return w.hold(a.Hold)
	case a.Release != nil:
		return w.release(a.Release)
	case a.Partition != nil:
		return w.partition(a.Partition)
	case a.Link != nil:
		return w.linkFault(a.Link)
	case a.Crash != nil:
		return w.crash(a.Crash)
	case a.Restart != nil:
		w.client(func() { w.restartNow(a.Restart) }) // the node's end may take time
	case a.Heal != nil:
		w.healNetwork()
	case a.Leave != nil:
		return w.leave(a.Leave)
	case a.Join != nil:
		return w.join(a.Join)
	case a.TransferLeadership != nil:
		w.transfer(a.TransferLeadership)
	case a.Disk != nil:
		return w.diskFault(a.Disk)
	case a.Delay != nil:
		return w.delayStep(a.Delay)
	case a.StarveGossip != nil:
		return w.starve(a.StarveGossip)
	case a.Clock != nil:
		w.member(a.Clock.Node).clock.Store(int64(a.Clock.Offset))
	case a.FailCounts != nil:
		return w.failCounts(a.FailCounts)
	case a.Expect != nil:
		w.expectNow(s)
	}
	return nil
}

// request sends the request of a step.
func (w *world) request(a *scenario.Action) error {
	members := w.resolve(a.Request().Via)
	if members == nil {
		return errNoLeader
	}
	switch {
	case a.Search != nil:
		return w.searchStep(a.Search, members[0])
	case a.MultiSearch != nil:
		w.multiSearchStep(a.MultiSearch, members[0])
	default:
		return w.requestStep(a, members[0])
	}
	return nil
}

func (w *world) holdsOf(name string) (*probe.Holds, error) {
	l := w.member(name).current.Load()
	if l == nil {
		return nil, fmt.Errorf("node %s is down", name)
	}
	return l.node.Holds(), nil
}

func (w *world) hold(h *scenario.Hold) error {
	holds, err := w.holdsOf(h.Node)
	if err != nil {
		return err
	}
	filter := probe.Filter{Search: h.Search, Listener: h.Listener, Count: h.Count}
	if h.Group != "" {
		filter.Group = w.ids.group(h.Group)
	}
	w.event(history.Event{Kind: history.FaultBegin, Node: h.Node, Detail: "hold " + string(h.Step)})
	return holds.Hold(h.Step, filter)
}

func (w *world) release(r *scenario.Release) error {
	holds, err := w.holdsOf(r.Node)
	if err != nil {
		return err
	}
	w.event(history.Event{Kind: history.FaultEnd, Node: r.Node, Detail: "hold " + string(r.Step)})
	if !holds.Release(r.Step) {
		return fmt.Errorf("%s of %s is not held: the node was started again since", r.Step, r.Node)
	}
	return nil
}

// crash kills nodes, and has each come back. One that is down stays so.
func (w *world) crash(c *scenario.Crash) error {
	members := w.resolve(c.Node)
	if members == nil {
		return errNoLeader
	}
	for _, m := range members {
		closed := m.crash()
		if closed == nil {
			continue
		}
		text := "crash of " + m.name
		if c.Disk == "lost" {
			text += ", disk lost"
		}
		w.inForce(&fault{text: text, down: m, end: func() {
			<-closed
			w.restart(m, c.Disk == "lost", c.NewAddress)
		}}, c.RestartAfter)
	}
	return nil
}

// restart begins another life of a member that is down.
func (w *world) restart(m *member, lost, moved bool) {
	if w.ctx.Err() != nil || w.member(m.name).current.Load() != nil { // another one has the name by now
		return
	}
	m.host.Restart()
	if moved {
		m.moves.Add(1)
	}
	var err error
	if lost {
		err = m.replaceDisk()
	}
	if err == nil {
		err = m.start()
	}
	if err != nil {
		w.failed.add(Check{Name: "restart", Verdict: check.Undecided, Message: fmt.Sprintf("node %s could not be started again: %v", m.name, err)})
	}
}

// leave takes a node out in an orderly way.
func (w *world) leave(l *scenario.Leave) error {
	members := w.resolve(l.Node)
	if members == nil {
		return errNoLeader
	}
	m := members[0]
	life := m.current.Load()
	if life == nil {
		return fmt.Errorf("node %s is down", m.name)
	}
	m.away.Store(true)
	gone := make(chan struct{})
	w.event(history.Event{Kind: history.FaultBegin, Node: m.name, Life: life.number, Detail: m.name + " leaves"})
	w.client(func() {
		defer close(gone)
		if err := life.node.Leave(w.ctx); err != nil {
			w.event(history.Event{Kind: history.FaultEnd, Node: m.name, Life: life.number, Detail: m.name + " leaves: " + err.Error()})
		}
		_ = m.close() // it has left
		w.event(history.Event{Kind: history.NodeStopped, Node: m.name, Life: life.number})
	})
	if l.ReturnAfter > 0 {
		w.fault(m.name+" away", l.ReturnAfter, func() {
			<-gone
			m.away.Store(false)
			w.restart(m, false, l.NewAddress)
		})
	}
	return nil
}

// join starts one more node. Under a name that is taken it gets a host of its
// own, as any second machine.
func (w *world) join(j *scenario.Join) error {
	host := j.Node
	if w.member(j.Node) != nil {
		host = fmt.Sprintf("%s-%d", j.Node, len(w.list()))
	}
	m := w.newMember(j.Node, host, false)
	w.add(m)
	x := exchange{sent: time.Now(), node: j.Node}
	if err := m.start(); err != nil {
		return err
	}
	w.client(func() {
		answer := w.joined(m)
		answer.Node, answer.Took = j.Node, time.Since(x.sent)
		w.answers.set(j.ID, answer)
	})
	return nil
}

// joined waits until a node is a member, or has been refused.
func (w *world) joined(m *member) scenario.Answer {
	l := m.current.Load()
	ctx, cancel := context.WithTimeout(w.ctx, w.settleBound())
	defer cancel()
	ready := make(chan error, 1)
	w.run(func() { ready <- l.node.Ready(ctx) })
	var err error
	select {
	case err = <-ready:
	case err = <-l.errs:
		cancel()
		<-ready
	}
	if err == nil {
		return scenario.Answer{Status: 200}
	}
	m.away.Store(true)
	_ = m.close()
	if errors.Is(err, gossip.ErrNameTaken) {
		return scenario.Answer{Status: 409, Error: scenario.Failure{Type: "name_taken", Reason: err.Error()}}
	}
	return scenario.Answer{Status: 503, Error: scenario.Failure{Type: "not_joined", Reason: err.Error()}}
}

// transfer moves the leadership. Whether that works out is up to the cluster:
// while nobody leads, as between two moves, there is nothing to move.
func (w *world) transfer(t *scenario.TransferLeadership) {
	m := w.leader()
	if m == nil {
		w.event(history.Event{Kind: history.FaultEnd, Detail: "leadership stays: " + errNoLeader.Error()})
		return
	}
	l := m.current.Load()
	if l == nil || m.name == t.To {
		return
	}
	text := "leadership of " + m.name + " moves"
	w.event(history.Event{Kind: history.FaultBegin, Node: m.name, Life: l.number, Detail: text})
	w.client(func() {
		if err := l.node.TransferLeadership(w.ctx, t.To); err != nil {
			text += ": " + err.Error()
		}
		w.event(history.Event{Kind: history.FaultEnd, Node: m.name, Life: l.number, Detail: text})
	})
}

// lengthOf is how long what a step begins goes on.
func lengthOf(a *scenario.Action) time.Duration {
	switch {
	case a.Partition != nil:
		return time.Duration(a.Partition.For)
	case a.Link != nil:
		return time.Duration(a.Link.For)
	case a.Crash != nil:
		return time.Duration(a.Crash.RestartAfter)
	case a.Leave != nil:
		return time.Duration(a.Leave.ReturnAfter)
	case a.Disk != nil:
		return time.Duration(a.Disk.For)
	case a.Delay != nil:
		return time.Duration(a.Delay.For)
	case a.StarveGossip != nil:
		return time.Duration(a.StarveGossip.For)
	case a.FailCounts != nil:
		return time.Duration(a.FailCounts.For)
	}
	return 0
}
