package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// SettleBound returns how long a cluster may take to settle once everything has
// healed: for gossip to meet again those it took for dead, to get over bad
// health and to exchange all it knows; for ten elections, and a snapshot to who
// lags far behind; for a command that waits for a manager and for everybody; and
// for a hundred messages one after another on its slowest way.
func SettleBound(f *scenario.File) time.Duration {
	const (
		rejoin, pushPull  = 3 * time.Second, 30 * time.Second
		election, request = 2 * time.Second, 10 * time.Second
		manager           = 30 * time.Second
	)
	publish := 30 * time.Second
	if text, given := f.Cluster.Settings[cluster.SettingPublishTimeout]; given {
		if d, err := cluster.ParseTime(string(text)); err == nil {
			publish = d
		}
	}
	slowest := time.Duration(0)
	if l := f.Cluster.Network.Latency; l != nil {
		slowest = time.Duration(l.Max)
	}
	for _, r := range f.Cluster.Delays {
		slowest = max(slowest, time.Duration(r.Max))
	}
	return 2*rejoin + gossip.Timings{}.Linger() + pushPull + 10*election + request + manager + publish + 100*slowest
}

func (w *world) settleBound() time.Duration { return SettleBound(w.file) }

// patience is how long the world lets requests go on after the last thing that
// the file gives a time to, before it heals: as long as a write waits for a
// manager and then for every node, with the defaults.
const patience = time.Minute

// drainBound is how long requests may take after everything has healed: as long
// as the cluster may take to settle, and the longest queue of the longest
// searches that the file can mean.
func (w *world) drainBound() time.Duration {
	longest := time.Duration(0)
	look := func(s *scenario.ServiceTime) {
		if s == nil {
			return
		}
		t := s.Cluster()
		longest = max(longest, 20*t.Mean, 10*t.P99, 1000*t.Min)
	}
	for _, x := range w.file.Cluster.Indices {
		look(x.ServiceTime)
	}
	for i := range w.file.Load {
		look(w.file.Load[i].ServiceTime)
	}
	for _, step := range w.said.Load().Steps {
		if s := step.Search; s != nil {
			look(s.ServiceTime)
		}
	}
	turns := 2 + w.file.Cluster.Queue/w.file.Cluster.Workers
	return w.settleBound() + time.Duration(turns)*longest
}

// await waits until a channel is closed, but not longer than a bound; it says
// whether the channel was.
func await(done <-chan struct{}, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// finish lets everything end: requests, faults, holds, and again requests; then
// the cluster settles. It returns how long that took, and what did not come about.
func (w *world) finish() (took time.Duration, err error) {
	answered := make(chan struct{})
	w.run(func() {
		w.clients.Wait()
		close(answered)
	})
	await(answered, patience)
	w.heal()
	w.releaseAll()
	w.event(history.Event{Kind: history.Healed})
	healed := time.Now()
	var unanswered error
	if !await(answered, w.drainBound()) {
		unanswered = fmt.Errorf("requests without an answer %v after everything had healed: %s", w.drainBound(), told(w.record.unanswered()))
		w.giveUp()
		<-answered
	}
	drained := time.Now()
	if err := errors.Join(unanswered, w.settle()); err != nil {
		return time.Since(drained), err
	}
	w.event(history.Event{Kind: history.Settled, Detail: time.Since(healed).String()})
	return time.Since(drained), nil
}

// maxTold bounds the requests that an error names.
const maxTold = 5

// told names events in one line.
func told(events []history.Event) string {
	var parts []string
	for i, e := range events {
		if i == maxTold {
			parts = append(parts, fmt.Sprintf("and %d more", len(events)-maxTold))
			break
		}
		parts = append(parts, e.String())
	}
	return strings.Join(parts, "; ")
}

// releaseAll ends every hold.
func (w *world) releaseAll() {
	for _, m := range w.list() {
		if l := m.current.Load(); l != nil && l.node.Holds() != nil {
			l.node.Holds().Close()
		}
	}
}

// settleInterval is how often the world looks whether the cluster has settled.
const settleInterval = 20 * time.Millisecond

// settle waits until the cluster has settled, and says what is not in order if
// it does not in time.
func (w *world) settle() error {
	deadline := time.Now().Add(w.settleBound())
	for {
		err := w.unsettled()
		if err == nil {
			return nil
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("not settled after %v: %w", w.settleBound(), err)
		}
		time.Sleep(settleInterval)
	}
}

// expected are the members that belong to the cluster at the end.
func (w *world) expected() []*member {
	return slices.DeleteFunc(w.list(), func(m *member) bool { return m.away.Load() })
}

// unsettled says what is not in order at this moment: every member is up and
// ready, all know the same leader, all see all, all have applied the same
// version, and nothing runs.
func (w *world) unsettled() error {
	members := w.expected()
	leader := w.leader()
	if leader == nil {
		return errors.New("no node leads")
	}
	head := leader.current.Load()
	if head == nil {
		return errors.New("no node leads")
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	slices.Sort(names)
	version := head.node.State().Version()
	var faults []error
	for _, m := range members {
		faults = append(faults, unsettledMember(m, leader.name, names, version))
	}
	return errors.Join(faults...)
}

func unsettledMember(m *member, leader string, names []string, version uint64) error {
	l := m.current.Load()
	if l == nil {
		return fmt.Errorf("node %s is down", m.name)
	}
	n := l.node
	state := n.State()
	var known []string
	for _, one := range state.Nodes() {
		known = append(known, one.Name)
	}
	switch {
	case !n.CaughtUp():
		return fmt.Errorf("node %s is not ready", m.name)
	case n.Leader() != leader:
		return fmt.Errorf("node %s takes %q for the leader and not %s", m.name, n.Leader(), leader)
	case n.Applied() != version || state.Version() != version:
		return fmt.Errorf("node %s has applied version %d and not %d", m.name, n.Applied(), version)
	case !slices.Equal(alive(n.Members()), names):
		return fmt.Errorf("node %s sees %s alive and not %s", m.name, list(alive(n.Members())), list(names))
	case !slices.Equal(known, names):
		return fmt.Errorf("node %s has %s in its state and not %s", m.name, list(known), list(names))
	case n.Coordinator().Running() > 0:
		return fmt.Errorf("node %s still leads %d searches", m.name, n.Coordinator().Running())
	}
	return nil
}

func alive(members []gossip.Member) []string {
	var names []string
	for _, m := range members {
		if m.Alive {
			names = append(names, m.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

func list(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}
