package gossip

import (
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. Most calls come under its locks, so none waits or calls back.
type delegate struct{ g *Gossip }

var (
	_ memberlist.Delegate      = delegate{}
	_ memberlist.EventDelegate = delegate{}
	_ memberlist.AliveDelegate = delegate{}
	_ memberlist.MergeDelegate = delegate{}
	_ memberlist.PingDelegate  = delegate{}
)

func (d delegate) NodeMeta(int) []byte { return d.g.view.meta() }

func (d delegate) NotifyMsg(b []byte) { d.g.receive(b) }

func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

func (delegate) LocalState(bool) []byte { return nil }

func (delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive keeps out whatever is no node of ours; the events below can rely on it.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	if d.g.view.knows(n) {
		return nil
	}
	_, address, err := parseLife(n.Name)
	if err != nil {
		return err
	}
	if n.Address() != address.String() {
		return fmt.Errorf("%w: %q is said to be at %s", errMalformed, n.Name, n.Address())
	}
	_, err = decodeMeta(n.Meta)
	return err
}

func (d delegate) NotifyJoin(n *memberlist.Node) {
	if n.Name == d.g.life {
		return
	}
	said, err := decodeMeta(n.Meta)
	if err != nil {
		return // NotifyAlive has said so
	}
	p, rival, err := d.g.view.joined(n.Name, said, n.Meta)
	switch {
	case err != nil:
	case p.name == d.g.cfg.Self.Name:
		d.g.cfg.Log.Log(d.g.ctx, unlessEarlier(d.g.view.selfAddress(), p), "gossip: another life of this node", "address", p.address)
	case rival != nil:
		d.g.spawn(func() { d.g.resolve(rival, p) })
	default:
		d.g.met()
	}
}

func (d delegate) NotifyUpdate(n *memberlist.Node) {
	if said, err := decodeMeta(n.Meta); err == nil && n.Name != d.g.life {
		d.g.view.updated(n.Name, said, n.Meta)
	}
}

func (d delegate) NotifyLeave(n *memberlist.Node) {
	if n.Name != d.g.life {
		d.g.view.died(n.Name)
	}
}

// NotifyMerge comes without a lock, in the goroutine that joins, and may wait.
func (d delegate) NotifyMerge(nodes []*memberlist.Node) error { return d.g.admit(nodes) }

func (delegate) AckPayload() []byte { return nil }

// NotifyPingComplete is a packet that came from the member itself.
func (d delegate) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	if p := d.g.view.find(n.Name); p != nil {
		d.g.view.heard(p)
	}
}
