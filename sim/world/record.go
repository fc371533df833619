package world

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
)

// recorder puts everything that happens in one order, for the history and for
// the checks. The zero value records nothing, so that a run without either
// costs nothing.
type recorder struct {
	start time.Time

	mu     sync.Mutex
	log    *history.Log // nil: nothing is recorded
	checks *check.Set
	ops    []check.Operation
	open   map[asked]history.Event // requests without an answer
	ended  bool                    // what comes now is no part of the run
}

// end closes the records: they are judged, and nodes may still be busy.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// asked names a request that is under way.
type asked struct{ node, search, detail string }

// on says whether anything is recorded.
func (r *recorder) on() bool { return r.log != nil }

// event records one event at this moment.
func (r *recorder) event(e history.Event) {
	if !r.on() {
		return
	}
	e.At = time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	e = r.log.Add(e)
	switch e.Kind {
	case history.RequestSent:
		r.open[asked{node: e.Node, search: e.Search}] = e
	case history.RequestAnswered:
		delete(r.open, asked{node: e.Node, search: e.Search})
	case history.WriteBegin:
		r.open[asked{node: e.Node, detail: e.Detail}] = e
	case history.WriteEnd:
		delete(r.open, asked{node: e.Node, detail: e.Detail})
	}
	r.checks.Observe(e)
}

// unanswered returns the requests that have no answer, the oldest first.
func (r *recorder) unanswered() []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.open), func(a, b history.Event) int { return cmp.Compare(a.Seq, b.Seq) })
}

// Reach implements [probe.Hook] for the node of a life.
func (l *life) Reach(e probe.Event) { l.m.w.record.event(history.Of(0, l.number, e)) }

// operation notes a command on a group, or a read of all groups, with its
// outcome; call is when it was asked for.
func (r *recorder) operation(call time.Time, o check.Operation) {
	if !r.on() {
		return
	}
	o.Call, o.Return = call.Sub(r.start), time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
}

// operations returns those that were noted, in order of their outcomes.
func (r *recorder) operations() []check.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]check.Operation{}, r.ops...)
}

// proposed notes a command, if it is on a group, and its outcome.
func (r *recorder) proposed(node string, call time.Time, c cluster.Command, result *rest.Result, err error) {
	o := check.Operation{Node: node, Command: c, Err: err}
	switch c.(type) {
	case *cluster.CreateGroup, *cluster.UpdateGroup, *cluster.DeleteGroup:
	default:
		return
	}
	if result != nil {
		o.Group = result.Group
	}
	r.operation(call, o)
}
