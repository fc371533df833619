package wlm

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster"
)

// reason is why a search needs no permit, or needsPermit.
type reason uint8

const (
	needsPermit  reason = iota
	modeOff             // the cluster's mode is not enabled
	untagged            // no group, or DEFAULT_WORKLOAD_GROUP
	unknownGroup        // the state has no group of that id
	unthrottled         // the group has no throttling
	exempt              // the search that started it was counted
	faulty              // the group is stored with faults
	anonymous           // no user or role to throttle by
)

// decision is what becomes of a search before any bucket is looked at. Group,
// key and limit are set when a permit is needed.
type decision struct {
	reason reason
	group  *cluster.Group
	key    bucketKey
	limit  int
}

// applied is what the throttle keeps of the state that was applied last.
type applied struct {
	key  cluster.DimensionKey
	mode cluster.Mode
	// faulty has an entry for every group of that state, since to find out
	// costs more than the rest of a search's admission.
	faulty map[*cluster.Group]bool
}

func (a *applied) isFaulty(g *cluster.Group) bool {
	if faulty, known := a.faulty[g]; known {
		return faulty
	}
	return len(g.Faults(a.key)) > 0
}

// after returns what to keep of the next state. Groups never change, so what
// is known of one that stays still holds.
func (a *applied) after(next *cluster.State) *applied {
	kept := &applied{key: a.key, mode: next.Mode()}
	if len(next.Groups()) > 0 {
		kept.faulty = make(map[*cluster.Group]bool, len(next.Groups()))
	}
	for _, g := range next.Groups() {
		kept.faulty[g] = a.isFaulty(g)
	}
	return kept
}

// decide says which bucket a search needs a permit of, or why none, in the
// order of OpenSearch's checks. A group whose limit is none, although it was
// given, counts as faulty before the parent is looked at, since the parent
// exempts from a limit and there is none.
func (t *Throttle) decide(ctx context.Context, state *cluster.State, groupID string, parent *Permit) decision {
	in := t.applied.Load()
	if in.mode != cluster.Enabled {
		return decision{reason: modeOff}
	}
	if groupID == "" || groupID == cluster.DefaultGroupID {
		return decision{reason: untagged}
	}
	group := state.Group(groupID)
	switch {
	case group == nil:
		return decision{reason: unknownGroup}
	case group.Throttling == nil:
		return decision{reason: unthrottled}
	}
	limit, throttles := group.Throttling.Limit()
	switch {
	case !throttles:
		return decision{reason: faulty}
	case t.nested.exempts(parent):
		return decision{reason: exempt}
	case in.isFaulty(group):
		return decision{reason: faulty}
	}
	needed := decision{
		group: group,
		key:   bucketKey{group: group.ID, attribute: t.key.Dimension(group.Throttling)},
		limit: int(limit),
	}
	if needed.key.attribute == cluster.ByGroup {
		return needed
	}
	p := carried(ctx)
	if p == nil {
		return decision{reason: anonymous}
	}
	if needed.key.value = t.join.value(p, needed.key.attribute, t.choose); needed.key.value == "" {
		return decision{reason: anonymous}
	}
	return needed
}
