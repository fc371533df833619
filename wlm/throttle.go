package wlm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Config is what a Throttle is made of. The zero value is profile reviewed.
type Config struct {
	Switches Switches
	Seed     uint64 // of the hash that spreads the buckets; any value will do
	// Locks is how many locks guard the buckets, a power of two of at most
	// DefaultLocks; 0: DefaultLocks. Each takes 128 bytes. Under fewer, searches
	// that come at once wait for one another more often; nothing else changes.
	Locks int
	Probe *probe.Probe // nil: none
	Log   *slog.Logger // nil: nothing is logged
	// CountFault makes the count of a rejection of a group fail: a sink for
	// statistics that is broken. It may panic. nil: counts never fail by it.
	CountFault func(group string) error
}

func (c Config) filled() Config {
	c.Switches = c.Switches.filled()
	if c.Locks == 0 {
		c.Locks = DefaultLocks
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) check() error {
	faults := c.Switches.faults()
	if c.Locks < 1 || c.Locks > DefaultLocks || c.Locks&(c.Locks-1) != 0 {
		faults = append(faults, fmt.Errorf("a throttle cannot have %d locks: a power of two of at most %d", c.Locks, DefaultLocks))
	}
	return errors.Join(faults...)
}

// Throttle admits the searches of one node. See the package's promises.
type Throttle struct {
	probe      *probe.Probe
	log        *slog.Logger
	fault      func(group string) error
	applied    atomic.Pointer[applied]
	ledger     *ledger
	acquirer   acquirer
	key        cluster.DimensionKey
	join       joiner
	choose     chooser
	nested     nesting
	page       paging
	full       fullBucket
	text       rejectionText
	tags       tagging
	carrier    carrier
	registry   registry
	missing    fallback
	failure    countFailure
	failedOpen atomic.Uint64
	warned     map[string]bool // ids of groups with faults; ClusterChanged's alone
}

// New returns a Throttle that knows no group, and the mode of an empty state.
// It reports every fault of c at once.
func New(c Config) (*Throttle, error) {
	c = c.filled()
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &Throttle{
		probe:    c.Probe,
		log:      c.Log,
		fault:    c.CountFault,
		ledger:   &ledger{shards: make([]shard, c.Locks), seed: c.Seed},
		key:      c.Switches.DimensionKey,
		join:     newJoiner(c.Switches.PrincipalJoin),
		choose:   newChooser(c.Switches.RoleChoice),
		nested:   newNesting(c.Switches.Nested),
		page:     newPaging(c.Switches.Scroll),
		full:     newFullBucket(c.Switches.Monitor),
		text:     newRejectionText(c.Switches.RejectionText),
		tags:     newTagging(c.Switches.GroupHeader),
		carrier:  newCarrier(c.Switches.PrincipalCarrier),
		registry: newRegistry(c.Switches.Counters),
		missing:  newFallback(c.Switches.MissingCounters),
		failure:  newCountFailure(c.Switches.CountFailure),
	}
	t.acquirer = newAcquirer(c.Switches.Acquire, t.ledger, c.Probe)
	t.applied.Store((&applied{key: t.key}).after(cluster.Empty()))
	return t, nil
}

// ApplySettings takes over the cluster's mode of the next state, and notes
// which of its groups are stored with faults. It is a subscriber of the applier
// that runs before that state is readable, as upstream's settings do.
func (t *Throttle) ApplySettings(_, next *cluster.State) error {
	t.applied.Store(t.applied.Load().after(next))
	return nil
}

// ClusterChanged is a listener of the applier. It gives counters to new groups
// and drops those of groups that are gone, and warns once of each group that is
// stored with faults: again only after it was sound or gone in between.
func (t *Throttle) ClusterChanged(_, next *cluster.State) error {
	t.reconcile(next)
	var faulty map[string]bool // most states have none
	for _, g := range next.Groups() {
		if !t.applied.Load().isFaulty(g) {
			continue
		}
		if faulty == nil {
			faulty = map[string]bool{}
		}
		faulty[g.ID] = true
		if !t.warned[g.ID] {
			t.log.Warn("a workload group is stored with faults and is not throttled", "group", g.ID, "faults", g.Faults(t.key))
		}
	}
	t.warned = faulty
	return nil
}

// Admit decides on one search of a group that no other search has started, by
// the state that the search read. It returns nil if the search may run;
// p.Held() then says whether with a permit or without. Else it returns a
// [*Rejection]. search names the search at the steps; p must hold no permit.
//
// A search runs without a permit when the cluster's mode is not enabled, it has
// no group or the default one, state has no such group, the group is not
// throttled or is stored with faults, or ctx carries no user or role to
// throttle it by; under monitor: observes also when its bucket is full and its
// group only watches.
func (t *Throttle) Admit(ctx context.Context, state *cluster.State, groupID, search string, p *Permit) error {
	return t.AdmitNested(ctx, state, groupID, search, nil, p)
}

// AdmitNested is Admit for a search that another one has started, whose permit
// is parent, held or not; nil: none has. Under nested: exempt a search whose
// parent was counted, see [Permit.Counted], runs without a permit and is
// counted itself, so that its own ones are exempt as well.
func (t *Throttle) AdmitNested(ctx context.Context, state *cluster.State, groupID, search string, parent, p *Permit) error {
	if p.bucket != nil { // without the lock: nobody else has p at this time
		panic("wlm: a permit that is held is used for another search")
	}
	p.counted = false
	d := t.decide(ctx, state, groupID, parent)
	switch d.reason {
	case needsPermit:
	case exempt:
		p.counted = true
		return nil
	case faulty:
		t.failedOpen.Add(1)
		return nil
	default:
		return nil
	}
	a := attempt{key: d.key, hash: d.key.hash(t.ledger.seed), limit: d.limit, search: search, version: state.Version()}
	if t.probe.On() {
		t.probe.At(a.event(probe.AcquireBegin, 0, probe.ReadBucket|probe.WriteBucket))
	}
	held, ok := t.acquirer.acquire(&a, p)
	if !ok {
		return t.full.found(t, d.group, a, held, p)
	}
	p.counted = true
	if t.probe.On() {
		t.probe.At(a.event(probe.Acquired, held, 0))
	}
	return nil
}

// AdmitPage is Admit for the next page of a scroll, which has no parent: it
// runs without a permit under scroll: free.
func (t *Throttle) AdmitPage(ctx context.Context, state *cluster.State, groupID, search string, p *Permit) error {
	return t.page.admit(t, ctx, state, groupID, search, p)
}

// FailedOpen counts the searches that were admitted because their limit could
// not be found (a group stored with faults), or because a count failed under
// count_failure: swallows_rejection.
func (t *Throttle) FailedOpen() uint64 { return t.failedOpen.Load() }
