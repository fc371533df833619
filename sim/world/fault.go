package world

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// faults are those in force. Each has one function that ends it, which is
// called once: at its time, or when everything heals.
type faults struct {
	mu     sync.Mutex
	active []*fault // oldest first
	delays []*delay
	counts []*countFault
}

type fault struct {
	text    string
	end     func()
	network bool    // it is one of links
	down    *member // that a crash keeps down; nil: it is no crash
}

type delay struct {
	nodes    []string
	step     probe.Step
	listener string
	by       scenario.Range
}

type countFault struct {
	node  string // "" for every one
	group string // id; "" for every one
}

// begin notes a fault that has begun.
func (f *faults) begin(one *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = append(f.active, one)
}

// end ends a fault unless that has been done.
func (f *faults) end(one *fault) bool {
	f.mu.Lock()
	i := slices.Index(f.active, one)
	if i >= 0 {
		f.active = slices.Delete(f.active, i, i+1)
	}
	f.mu.Unlock()
	if i >= 0 {
		one.end()
	}
	return i >= 0
}

// all returns the faults in force, oldest first.
func (f *faults) all() []*fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.active)
}

// fault puts a fault in force, for so long, or until everything heals if it is
// 0.
func (w *world) fault(text string, length scenario.Duration, end func()) {
	w.inForce(&fault{text: text, end: end}, length)
}

func (w *world) inForce(one *fault, length scenario.Duration) {
	w.faults.begin(one)
	w.event(history.Event{Kind: history.FaultBegin, Detail: one.text})
	if length == 0 {
		return
	}
	w.after(time.Duration(length), func() { w.endFault(one) })
}

func (w *world) endFault(one *fault) {
	if w.faults.end(one) {
		w.event(history.Event{Kind: history.FaultEnd, Detail: one.text})
	}
}

// after does something later, unless the world heals before.
func (w *world) after(d time.Duration, f func()) {
	w.run(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-w.healed:
		}
	})
}

// heal ends every fault.
func (w *world) heal() {
	close(w.healed)
	for _, one := range w.faults.all() {
		w.endFault(one)
	}
}

// partition cuts the links between each two sides.
func (w *world) partition(p *scenario.Partition) error {
	sides, err := w.sides(p.Sides)
	if err != nil {
		return err
	}
	var cuts []*netsim.Cut
	heal := func() {
		for _, c := range cuts {
			c.Heal()
		}
	}
	text := "partition"
	for i, a := range sides {
		for _, b := range sides[i+1:] {
			cut := w.net.Partition
			if p.OneWay {
				cut = w.net.PartitionOneWay
			}
			c, err := cut(a, b)
			if err != nil {
				heal()
				return err
			}
			cuts = append(cuts, c)
			text += " " + c.String()
		}
	}
	w.inForce(&fault{text: text, end: heal, network: true}, p.For)
	return nil
}

// sides returns the nodes of each side.
func (w *world) sides(sides []scenario.Side) ([][]string, error) {
	var named []string
	lists := make([][]string, len(sides))
	for i, s := range sides {
		for _, name := range s.Nodes {
			m := w.resolve(name)
			if m == nil {
				return nil, errors.New("no node leads at this moment")
			}
			if slices.Contains(named, m[0].name) {
				return nil, errors.New(m[0].name + " leads at this moment and is on two sides")
			}
			named = append(named, m[0].name)
			lists[i] = append(lists[i], m[0].name)
		}
	}
	for i, s := range sides {
		if s.Word != scenario.Rest {
			continue
		}
		for _, name := range w.nodeNames() {
			if !slices.Contains(named, name) {
				lists[i] = append(lists[i], name)
			}
		}
	}
	return lists, nil
}

// linkFault makes links worse. Where several are about one link the one that
// began last decides, and when it ends the one before it.
func (w *world) linkFault(l *scenario.Link) error {
	sides, err := w.sides(l.Sides)
	if err != nil {
		return err
	}
	one := &linkFault{faults: w.linkFaults(&l.Network)}
	for i, a := range sides {
		for j, b := range sides {
			if i == j || l.OneWay && j < i {
				continue
			}
			for _, from := range a {
				for _, to := range b {
					one.links = append(one.links, [2]string{from, to})
				}
			}
		}
	}
	w.worse.add(w.net, one)
	w.inForce(&fault{text: "link " + one.faults.String(), end: func() { w.worse.remove(w.net, one) }, network: true}, l.For)
	return nil
}

// linkFaults is the cluster's network with what a fault sets in its place.
func (w *world) linkFaults(n *scenario.Network) netsim.Faults {
	usual := w.file.Cluster.Network
	f := netsim.Faults{Latency: netRange(*usual.Latency), Loss: usual.Loss, Duplicate: usual.Duplicate, Reorder: usual.Reorder}
	if n.Latency != nil {
		f.Latency = netRange(*n.Latency)
	}
	for _, share := range []struct {
		to   *float64
		from float64
	}{{&f.Loss, n.Loss}, {&f.Duplicate, n.Duplicate}, {&f.Reorder, n.Reorder}} {
		if share.from != 0 {
			*share.to = share.from
		}
	}
	return f
}

type linkFault struct {
	links  [][2]string
	faults netsim.Faults
}

// disk makes a node's store fail or slow.
func (w *world) diskFault(d *scenario.Disk) error {
	members := w.resolve(d.Node)
	if members == nil {
		return errNoLeader
	}
	m := members[0]
	if d.Fault == "full" {
		empty := m.disk.fill()
		w.fault("disk of "+m.name+" full", d.For, func() {
			empty()
			m.revive()
		})
		return nil
	}
	w.fault("disk of "+m.name+" slow", d.For, m.disk.slowBy(d.By))
	return nil
}

var errNoLeader = errors.New("no node leads at this moment")

// starve shuts a node's gossip off.
func (w *world) starve(s *scenario.StarveGossip) error {
	members := w.resolve(s.Node)
	if members == nil {
		return errNoLeader
	}
	m := members[0]
	m.gate.close()
	w.fault("gossip of "+m.name+" starved", s.For, m.gate.reopen)
	return nil
}

// delayStep slows the arrivals at a step.
func (w *world) delayStep(d *scenario.Delay) error {
	members := w.resolve(d.Node)
	if members == nil {
		return errNoLeader
	}
	one := &delay{step: d.Step, listener: d.Listener, by: d.By}
	for _, m := range members {
		one.nodes = append(one.nodes, m.name)
	}
	w.faults.mu.Lock()
	w.faults.delays = append(w.faults.delays, one)
	w.faults.mu.Unlock()
	w.fault("delay at "+string(d.Step), d.For, func() {
		w.faults.mu.Lock()
		defer w.faults.mu.Unlock()
		w.faults.delays = slices.DeleteFunc(w.faults.delays, func(o *delay) bool { return o == one })
	})
	return nil
}

// failCounts makes the counting of rejections fail.
func (w *world) failCounts(c *scenario.FailCounts) error {
	one := &countFault{node: c.Node}
	if c.Node == scenario.All {
		one.node = ""
	}
	if c.Group != "" {
		one.group = w.ids.group(c.Group)
	}
	w.faults.mu.Lock()
	w.faults.counts = append(w.faults.counts, one)
	w.faults.mu.Unlock()
	w.fault("counts of "+c.Node+" fail", c.For, func() {
		w.faults.mu.Lock()
		defer w.faults.mu.Unlock()
		w.faults.counts = slices.DeleteFunc(w.faults.counts, func(o *countFault) bool { return o == one })
	})
	return nil
}

var errCountFails = errors.New("the counting of rejections fails on this node")

// countFault returns what a node's throttle asks before it counts a rejection;
// nil in a file without such faults.
func (w *world) countFault(node string) func(group string) error {
	if !w.has(func(a *scenario.Action) bool { return a.FailCounts != nil }) {
		return nil
	}
	f := &w.faults
	return func(group string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.counts {
			if (c.node == "" || c.node == node) && (c.group == "" || c.group == group) {
				return errCountFails
			}
		}
		return nil
	}
}

// has says whether the file has a step of some kind. A body may do anything.
func (w *world) has(kind func(*scenario.Action) bool) bool {
	return w.body != nil && w.options.explored == nil || slices.ContainsFunc(w.file.Steps, func(s scenario.Step) bool { return kind(&s.Action) })
}

// delays is a hook that slows the steps of a node.
type delays struct {
	w    *world
	node string
	seed stream
}

// Reach implements [probe.Hook]. The delay follows from what the event is
// about, and not from how many came before.
func (d *delays) Reach(e probe.Event) {
	ranges := d.w.delaysAt(&e)
	if len(ranges) == 0 {
		return
	}
	from := d.seed.named(string(e.Step), e.Search, e.Listener).at(e.Version).draws()
	var wait time.Duration
	for _, r := range ranges {
		wait += from.between(r)
	}
	time.Sleep(wait)
}

// delaysAt returns the delays in force for an event.
func (w *world) delaysAt(e *probe.Event) []scenario.Range {
	var ranges []scenario.Range
	if r, ok := w.file.Cluster.Delays[string(e.Step)]; ok {
		ranges = append(ranges, r)
	}
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	for _, o := range w.faults.delays {
		if o.step == e.Step && (o.listener == "" || o.listener == e.Listener) && slices.Contains(o.nodes, e.Node) {
			ranges = append(ranges, o.by)
		}
	}
	return ranges
}

// linkStack is the link faults in force, oldest first.
type linkStack struct {
	mu     sync.Mutex
	active []*linkFault
}

func (s *linkStack) add(n *netsim.Network, one *linkFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = append(s.active, one)
	s.applyLocked(n, one.links)
}

func (s *linkStack) remove(n *netsim.Network, one *linkFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = slices.DeleteFunc(s.active, func(o *linkFault) bool { return o == one })
	s.applyLocked(n, one.links)
}

// applyLocked lets each link behave as the newest fault about it says.
func (s *linkStack) applyLocked(n *netsim.Network, links [][2]string) {
	for _, l := range links {
		err := n.ClearLink(l[0], l[1])
		for _, o := range slices.Backward(s.active) {
			if slices.Contains(o.links, l) {
				err = n.SetLink(l[0], l[1], o.faults)
				break
			}
		}
		if err != nil { // names and shares were checked with the file
			panic(err)
		}
	}
}
