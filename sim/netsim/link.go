package netsim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// link is the way from one host to another. It exists from its first use.
type link struct {
	from, to *Host
	own      *Faults // set by SetLink
	cuts     int     // how many cuts it is part of
	underWay int     // datagrams
	flows    map[flowKey]*flow
	stalled  []*half // halves of streams that a cut holds back, in that order
}

// flowKey names what draws from one stream of chance on a link.
type flowKey struct {
	purpose string // "datagram" or "stream"
	port    int    // of the destination
}

// flow is one stream of chance, with what else a purpose has to remember.
type flow struct {
	link  *link
	seed  uint64
	count uint64 // datagrams sent, or connections begun
	last  int64  // when the last datagram in order arrives
}

// linkLocked returns the link from h to another host, or to itself.
func (h *Host) linkLocked(to *Host) *link {
	l := h.links[to]
	if l == nil {
		l = &link{from: h, to: to, flows: make(map[flowKey]*flow)}
		h.links[to] = l
	}
	return l
}

func (l *link) flowLocked(purpose string, port int) *flow {
	key := flowKey{purpose, port}
	f := l.flows[key]
	if f == nil {
		seed := derive(l.from.net.cfg.Seed, l.from.name, l.to.name, purpose, strconv.Itoa(port))
		f = &flow{link: l, seed: seed}
		l.flows[key] = f
	}
	return f
}

// next returns the generator of the flow's next message.
func (f *flow) next() random {
	f.count++
	return message(f.seed, f.count)
}

// faultsLocked returns how the link behaves now.
func (l *link) faultsLocked() Faults {
	cfg := &l.from.net.cfg
	common := &cfg.Link
	if l.from == l.to {
		common = &cfg.Loopback
	}
	if l.own == nil {
		return *common
	}
	faults := *l.own
	fill(&faults.Latency, common.Latency)
	return faults
}

// SetLink gives the link from one host to another faults of its own, in place
// of those that it had, until ClearLink or Heal. What is under way already is
// not touched. It fails for a host that does not exist and for faults out of
// bounds.
func (n *Network) SetLink(from, to string, faults Faults) error {
	if err := faults.check(); err != nil {
		return fmt.Errorf("netsim: link %s -> %s: %w", from, to, err)
	}
	return n.changeLink(from, to, &faults)
}

// ClearLink lets the link from one host to another behave as others do. It
// fails for a host that does not exist.
func (n *Network) ClearLink(from, to string) error { return n.changeLink(from, to, nil) }

func (n *Network) changeLink(from, to string, faults *Faults) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ends, err := n.namedLocked([]string{from, to})
	if err != nil {
		return err
	}
	l := ends[0].linkLocked(ends[1])
	l.own = faults
	n.changed = slices.DeleteFunc(n.changed, func(c *link) bool { return c == l })
	if faults != nil {
		n.changed = append(n.changed, l)
	}
	return nil
}

// namedLocked returns the hosts of these names, or an error with every name
// that is none.
func (n *Network) namedLocked(names []string) ([]*Host, error) {
	var (
		hosts []*Host
		errs  []error
	)
	for _, name := range names {
		h := n.byName[name]
		if h == nil {
			errs = append(errs, fmt.Errorf("netsim: no host %q", name))
		}
		hosts = append(hosts, h)
	}
	return hosts, errors.Join(errs...)
}

// Cut is a partition that is in force until it heals. Cuts may overlap: a link
// works again when the last one of its cuts has healed.
type Cut struct {
	net    *Network
	text   string
	links  []*link
	healed bool
}

// Partition cuts every link between a host of a and one of b, in both
// directions. It fails when a name is no host, or stands on both sides.
func (n *Network) Partition(a, b []string) (*Cut, error) { return n.cut(a, b, true) }

// PartitionOneWay cuts every link from a host of the first list to one of the
// second; the other direction goes on working. It fails as Partition does.
func (n *Network) PartitionOneWay(from, to []string) (*Cut, error) { return n.cut(from, to, false) }

func (n *Network) cut(a, b []string, both bool) (*Cut, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left, err1 := n.namedLocked(a)
	right, err2 := n.namedLocked(b)
	err := errors.Join(err1, err2, disjoint(a, b))
	if err != nil {
		return nil, err
	}
	c := &Cut{net: n, text: cutText(a, b, both)}
	for _, x := range left {
		for _, y := range right {
			c.links = append(c.links, x.linkLocked(y))
			if both {
				c.links = append(c.links, y.linkLocked(x))
			}
		}
	}
	for _, l := range c.links {
		l.cuts++
		l.stallHeldLocked()
	}
	n.cuts = append(n.cuts, c)
	return c, nil
}

func disjoint(a, b []string) error {
	var errs []error
	for _, name := range a {
		if slices.Contains(b, name) {
			errs = append(errs, fmt.Errorf("netsim: host %q is on both sides of the cut", name))
		}
	}
	return errors.Join(errs...)
}

func cutText(a, b []string, both bool) string {
	arrow := " -> "
	if both {
		arrow = " | "
	}
	return strings.Join(a, ", ") + arrow + strings.Join(b, ", ")
}

// String returns the cut as "m1 | m2, m3", or "m1 -> m2, m3" if it is one-way.
func (c *Cut) String() string { return c.text }

// Heal ends the cut. What streams held back is sent again, and arrives after
// the link's latency. Calling it again does nothing.
func (c *Cut) Heal() {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.healLocked()
}

// Heal ends every cut, and lets every link behave as the config says. Hosts that
// are down stay down.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.changed {
		l.own = nil
	}
	n.changed = nil
	for len(n.cuts) > 0 {
		n.cuts[0].healLocked()
	}
}

func (c *Cut) healLocked() {
	if c.healed {
		return
	}
	c.healed = true
	c.net.cuts = slices.DeleteFunc(c.net.cuts, func(o *Cut) bool { return o == c })
	for _, l := range c.links {
		if l.cuts--; l.cuts == 0 {
			l.resumeLocked()
		}
	}
}

// resumeLocked sends what the link held back: messages of streams, and the
// window credit of those that the link's sender has read.
func (l *link) resumeLocked() {
	stalled := l.stalled
	l.stalled = nil
	for _, h := range stalled {
		h.resumeLocked()
	}
	for c := range l.from.conns.All() {
		if c.in.owed > 0 && c.in.back == l {
			c.in.owed = 0
			c.in.writers.wake()
		}
	}
}
