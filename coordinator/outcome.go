package coordinator

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// GroupOutcomes counts how the searches of one group ended on this node since
// its start. Uncounted are throttled searches, among those of Throttled, that
// the group's stats do not have.
type GroupOutcomes struct {
	Group                                              string // id
	Completed, Failed, Throttled, Cancelled, Uncounted uint64
}

// outcome is how a search ended.
type outcome uint8

const (
	failed outcome = iota
	completed
	throttled
	wasCancelled
)

// maxOutcomeGroups bounds the groups whose outcomes are kept apart, deleted ones
// included: 100 times as many as a cluster can have at once. Searches of later
// ones are counted on the default group.
const maxOutcomeGroups = 10000

// ledger counts outcomes. The zero value is ready.
type ledger struct {
	mu     sync.Mutex
	groups map[string]*GroupOutcomes
}

func (l *ledger) count(group string, o outcome, uncounted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.entry(group)
	switch o {
	case completed:
		g.Completed++
	case failed:
		g.Failed++
	case wasCancelled:
		g.Cancelled++
	case throttled:
		g.Throttled++
		if uncounted {
			g.Uncounted++
		}
	}
}

func (l *ledger) entry(group string) *GroupOutcomes {
	if l.groups == nil {
		l.groups = map[string]*GroupOutcomes{}
	}
	g := l.groups[group]
	if g == nil && len(l.groups) >= maxOutcomeGroups {
		group = cluster.DefaultGroupID
		g = l.groups[group]
	}
	if g == nil {
		g = &GroupOutcomes{Group: group}
		l.groups[group] = g
	}
	return g
}

func (l *ledger) list() []GroupOutcomes {
	l.mu.Lock()
	list := make([]GroupOutcomes, 0, len(l.groups))
	for _, g := range l.groups {
		list = append(list, *g)
	}
	l.mu.Unlock()
	slices.SortFunc(list, func(a, b GroupOutcomes) int { return cmp.Compare(a.Group, b.Group) })
	return list
}

// outcome decides how a search ended. One whose nested search was refused has
// failed, though its client is told of the refusal.
func (s *search) outcome(response *Response, err error) (o outcome, uncounted bool) {
	if response != nil {
		return completed, false
	}
	if rejection, ok := errors.AsType[*wlm.Rejection](err); ok && s.refused {
		return throttled, !rejection.Counted
	}
	if s.departed {
		return wasCancelled, false
	}
	return failed, false
}
