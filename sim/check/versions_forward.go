package check

import (
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// versionsForward: a node's published version never goes back, and no version
// is skipped by a listener. Within a life each version that is published is
// greater than the one before; then the same listeners hear of it as of the
// first one, in the same order; only then comes the next. A snapshot may make
// the version jump, for the node as for its listeners.
type versionsForward struct {
	findings
	lives map[life]*publication
}

// publication is how far a life is.
type publication struct {
	version   uint64
	published bool     // a version was, ever
	notified  bool     // the last listener has heard of it
	heard     int      // listeners that have heard of it
	listeners []string // those of the first version
	complete  bool     // listeners has all of them
}

func newVersionsForward() *versionsForward {
	return &versionsForward{lives: map[life]*publication{}}
}

func (c *versionsForward) Name() scenario.Promise { return scenario.VersionsForward }

func (c *versionsForward) Kinds() []string {
	return []string{string(probe.ApplierPublished), string(probe.ApplierNotify), string(probe.ApplierNotified)}
}

func (c *versionsForward) Observe(e *history.Event) {
	p := c.lives[lifeOf(e)]
	if p == nil {
		p = &publication{}
		c.lives[lifeOf(e)] = p
	}
	switch probe.Step(e.Kind) {
	case probe.ApplierPublished:
		c.publish(e, p)
	case probe.ApplierNotify:
		c.notify(e, p)
	case probe.ApplierNotified:
		c.end(e, p)
	}
}

func (c *versionsForward) publish(e *history.Event, p *publication) {
	if p.published && e.Version <= p.version {
		c.add("a node's published version went back", "%v: from %d to %d at %v", lifeOf(e), p.version, e.Version, e.At)
	}
	if p.published && !p.notified {
		c.add("a version was skipped by a listener", "%v: version %d was published before all had heard of %d, at %v", lifeOf(e), e.Version, p.version, e.At)
	}
	p.version, p.published, p.notified, p.heard = e.Version, true, false, 0
}

func (c *versionsForward) notify(e *history.Event, p *publication) {
	switch {
	case !p.published || e.Version != p.version || p.notified:
		c.add("a listener heard of a version that is not the published one", "%v, listener %s: version %d, published %d, at %v", lifeOf(e), e.Listener, e.Version, p.version, e.At)
		return
	case !p.complete:
		p.listeners = append(p.listeners, e.Listener)
	case p.heard == len(p.listeners) || p.listeners[p.heard] != e.Listener:
		c.add("listeners heard of a version in another order than of the first", "%v, listener %s: version %d, listener number %d of %q, at %v", lifeOf(e), e.Listener, e.Version, p.heard+1, p.listeners, e.At)
	}
	p.heard++
}

func (c *versionsForward) end(e *history.Event, p *publication) {
	if !p.published || e.Version != p.version || p.notified || p.heard < len(p.listeners) {
		c.add("a version was skipped by a listener", "%v: version %d counts as applied, published %d, %d of %d listeners heard of it, at %v", lifeOf(e), e.Version, p.version, p.heard, len(p.listeners), e.At)
	}
	p.notified, p.complete = true, true
}

func (c *versionsForward) Finish(*Facts) Result { return c.result(c.Name()) }
