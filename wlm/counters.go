package wlm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// counters are one group's, from the node's start.
type counters struct {
	completions, rejections, cancellations, throttled, wouldThrottle, failures atomic.Uint64
}

// throttled and wouldThrottle say which of them a full bucket moves.

func throttled(c *counters) *atomic.Uint64     { return &c.throttled }
func wouldThrottle(c *counters) *atomic.Uint64 { return &c.wouldThrottle }

// registry is the map from group id to counters, DEFAULT_WORKLOAD_GROUP's
// among them. One goroutine changes it; any may read.
type registry interface {
	// all returns the map at one instant, which nobody changes.
	all() (map[string]*counters, error)
	// begin and end stand around every change.
	begin()
	change(next map[string]*counters)
	end()
}

func newRegistry(s Counters) registry {
	safe := &safeRegistry{}
	safe.change(map[string]*counters{cluster.DefaultGroupID: {}})
	if s == CountersPlain {
		return &plainRegistry{safeRegistry: safe}
	}
	return safe
}

// safeRegistry replaces the map as a whole, so that readers never meet a
// change.
type safeRegistry struct {
	current atomic.Pointer[map[string]*counters]
}

func (r *safeRegistry) all() (map[string]*counters, error) { return *r.current.Load(), nil }
func (r *safeRegistry) begin()                             {}
func (r *safeRegistry) change(next map[string]*counters)   { r.current.Store(&next) }
func (r *safeRegistry) end()                               {}

// errOverlap is what a read under counters: plain meets during a write.
var errOverlap = errors.New("the map of counters was read during a write")

// plainRegistry fails every read while a write is open.
type plainRegistry struct {
	*safeRegistry
	open atomic.Bool
}

func (r *plainRegistry) begin() { r.open.Store(true) }
func (r *plainRegistry) end()   { r.open.Store(false) }

func (r *plainRegistry) all() (map[string]*counters, error) {
	if r.open.Load() {
		return nil, errOverlap
	}
	return r.safeRegistry.all()
}

// fallback says whose counters a rejection is counted on when its group, id,
// has none.
type fallback interface {
	instead(id string) (other string, count bool)
}

func newFallback(s MissingCounters) fallback {
	if s == MissingDefaultGroup {
		return defaultGroup{}
	}
	return skip{}
}

type skip struct{}

func (skip) instead(string) (string, bool) { return "", false }

type defaultGroup struct{}

func (defaultGroup) instead(string) (string, bool) { return cluster.DefaultGroupID, true }

// count moves the counter of a full bucket and returns the group on whose
// counters, "" if on nobody's.
func (t *Throttle) count(group string, which func(*counters) *atomic.Uint64) (on string, err error) {
	all, err := t.registry.all()
	if err != nil {
		return "", err
	}
	on = group
	if all[on] == nil {
		other, count := t.missing.instead(group)
		if !count {
			return "", nil
		}
		on = other
	}
	if err := t.countFault(group); err != nil {
		return "", err
	}
	which(all[on]).Add(1)
	return on, nil
}

// countFault asks [Config].CountFault; a panic there is a failure like another.
func (t *Throttle) countFault(group string) (err error) {
	if t.fault == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return t.fault(group)
}

// reconcile gives counters to the groups of a state that have none and drops
// those of groups that are gone, one write a group. Additions come first.
func (t *Throttle) reconcile(next *cluster.State) {
	now, _ := t.registry.all() // no write is open: only this goroutine opens one
	for _, g := range next.Groups() {
		if now[g.ID] == nil {
			t.rewrite(g.ID, func(m map[string]*counters) { m[g.ID] = &counters{} })
		}
	}
	for _, id := range gone(now, next) {
		t.rewrite(id, func(m map[string]*counters) { delete(m, id) })
	}
}

// gone returns the ids of counters whose groups a state does not have, sorted.
func gone(now map[string]*counters, next *cluster.State) []string {
	var ids []string
	for id := range now {
		if id != cluster.DefaultGroupID && next.Group(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// rewrite changes the map for one group. The write is open from before the
// first step until after the second.
func (t *Throttle) rewrite(group string, edit func(map[string]*counters)) {
	now, _ := t.registry.all()
	next := maps.Clone(now)
	edit(next)
	t.registry.begin()
	t.probe.At(probe.Event{Step: probe.MapWriteBegin, Group: group, Touches: probe.WriteMap | probe.WriteCounters})
	t.registry.change(next)
	t.probe.At(probe.Event{Step: probe.MapWriteEnd, Group: group, Touches: probe.WriteMap})
	t.registry.end()
}

// of returns a group's counters for all but rejections: an empty id is
// DEFAULT_WORKLOAD_GROUP's; nil if the group has none or they cannot be read.
func (t *Throttle) of(group string) *counters {
	if group == "" {
		group = cluster.DefaultGroupID
	}
	all, err := t.registry.all()
	if err != nil {
		t.log.Warn("a count is lost", "group", group, "error", err)
		return nil
	}
	return all[group]
}

// Completed counts a task of a search that ended well, on the coordinator or
// on a shard. As upstream, a group without counters falls to
// DEFAULT_WORKLOAD_GROUP, and so does an empty id.
func (t *Throttle) Completed(groupID string) {
	if c := t.of(groupID); c != nil {
		c.completions.Add(1)
	} else if c := t.of(cluster.DefaultGroupID); c != nil {
		c.completions.Add(1)
	}
}

// Failed counts a task that failed; not on another group if its own has no
// counters.
func (t *Throttle) Failed(groupID string) {
	if c := t.of(groupID); c != nil {
		c.failures.Add(1)
	}
}

// Cancelled counts a task that was cancelled for its group's use of a
// resource; not on another group if its own has no counters.
func (t *Throttle) Cancelled(groupID string) {
	if c := t.of(groupID); c != nil {
		c.cancellations.Add(1)
	}
}

// ResourceRejected counts a task that was rejected for its group's use of a
// resource; not on another group if its own has no counters. Throttled
// searches are not counted here.
func (t *Throttle) ResourceRejected(groupID string) {
	if c := t.of(groupID); c != nil {
		c.rejections.Add(1)
	}
}

// GroupStats are a group's counters on this node, from the node's start or the
// group's.
type GroupStats struct {
	ID            string
	Completions   uint64
	Rejections    uint64 // for the use of a resource
	Cancellations uint64
	Throttled     uint64
	// WouldThrottle counts the searches that monitor: observes let pass; nil
	// under monitor: rejects, where nothing of the kind is counted or printed.
	WouldThrottle *uint64 `json:",omitempty"`
	Failures      uint64  // counted, and not printed by _wlm/stats
}

func (c *counters) stats(id string) GroupStats {
	return GroupStats{
		ID:            id,
		Completions:   c.completions.Load(),
		Rejections:    c.rejections.Load(),
		Cancellations: c.cancellations.Load(),
		Throttled:     c.throttled.Load(),
		Failures:      c.failures.Load(),
	}
}

// Stats returns the counters of some groups, or of all if none is named,
// sorted by id and without repeats. An id without counters is a
// [cluster.ResourceNotFound] error. Under counters: plain it fails during a
// change of the groups.
func (t *Throttle) Stats(groupIDs []string) ([]GroupStats, error) {
	all, err := t.registry.all()
	if err != nil {
		return nil, fmt.Errorf("read the statistics: %w", err)
	}
	ids := slices.Clone(groupIDs)
	if len(ids) == 0 {
		ids = slices.AppendSeq(make([]string, 0, len(all)), maps.Keys(all))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	stats := make([]GroupStats, 0, len(ids))
	for _, id := range ids {
		c := all[id]
		if c == nil {
			return nil, cluster.Errorf(cluster.ResourceNotFound, "WorkloadGroup with id %s does not exist", id)
		}
		one := c.stats(id)
		t.full.show(&one, c)
		stats = append(stats, one)
	}
	return stats, nil
}
