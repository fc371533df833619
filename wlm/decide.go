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
	faulty              // the group is stored with faults
	anonymous           // no user or role to throttle by
)

// decision is what becomes of a search before any bucket is looked at. Key and
// limit are set when a permit is needed.
type decision struct {
	reason reason
	key    bucketKey
	limit  int
}

// applied is what the throttle keeps of the state that was applied last.
type applied struct {
	mode cluster.Mode
	// faulty has an entry for every group of that state, since to find out
	// costs more than the rest of a search's admission.
	faulty map[*cluster.Group]bool
}

func (a *applied) isFaulty(g *cluster.Group) bool {
	if faulty, known := a.faulty[g]; known {
		return faulty
	}
	return len(g.Faults()) > 0
}

// after returns what to keep of the next state. Groups never change, so what
// is known of one that stays still holds.
func (a *applied) after(next *cluster.State) *applied {
	kept := &applied{mode: next.Mode(), faulty: make(map[*cluster.Group]bool, len(next.Groups()))}
	for _, g := range next.Groups() {
		kept.faulty[g] = a.isFaulty(g)
	}
	return kept
}

// decide says which bucket a search needs a permit of, or why none. The order
// of the checks is the pull request's; a group's resiliency mode makes no
// difference there. It is a function of its arguments alone.
func decide(ctx context.Context, in *applied, state *cluster.State, groupID string, j joiner) decision {
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
	case in.isFaulty(group):
		return decision{reason: faulty}
	}
	needed := decision{
		key:   bucketKey{group: group.ID, attribute: group.Throttling.Attribute},
		limit: int(*group.Throttling.NodeLimit),
	}
	if needed.key.attribute == cluster.ByGroup {
		return needed
	}
	p := carried(ctx)
	if p == nil {
		return decision{reason: anonymous}
	}
	if needed.key.value = j.value(p, needed.key.attribute); needed.key.value == "" {
		return decision{reason: anonymous}
	}
	return needed
}
