package node

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
)

// heard are the versions that members last said they have applied: for showing,
// and to ask nobody what it has said.
type heard struct {
	mu sync.Mutex
	of map[string]uint64
}

func (h *heard) set(name string, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string]uint64{}
	}
	h.of[name] = version
}

func (h *heard) get(name string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[name]
}

// awaitApplied waits until everybody who is alive has applied a version, and
// says whether all have within the publish timeout. A leader that publishes
// last begins only when the others are done, and has the timeout anew.
func (n *Node) awaitApplied(ctx context.Context, s *cluster.State) bool {
	waiting, cancel := context.WithTimeout(ctx, s.PublishTimeout())
	defer cancel()
	err := n.awaitOthers(waiting, s)
	if n.managerLast() {
		var again context.CancelFunc
		waiting, again = context.WithTimeout(ctx, s.PublishTimeout())
		defer again()
	}
	if own := n.applier.Wait(waiting, s.Version()); err == nil {
		err = own
	}
	if err != nil {
		n.log.Warn("not every member has applied a version in time", "version", s.Version(), "timeout", s.PublishTimeout(), "error", err)
	}
	return err == nil
}

// awaitOthers waits until every other member has applied a version: it asks
// each to answer when it has. A member that dies is not waited for any longer.
// The error is that ctx ended before.
func (n *Node) awaitOthers(ctx context.Context, s *cluster.State) error {
	var asked sync.WaitGroup
	for _, m := range n.gossip.Members() {
		if m.Alive && m.Name != n.config.Name && s.Node(m.Name) != nil && n.heard.get(m.Name) < s.Version() {
			asked.Go(func() { n.awaitMember(ctx, m, s.Version()) })
		}
	}
	asked.Wait()
	return ctx.Err()
}

// awaitMember asks a member until it has applied a version, is dead, or ctx
// ends.
func (n *Node) awaitMember(ctx context.Context, m gossip.Member, version uint64) {
	for {
		changed := n.membersChanged.next()
		if !n.gossip.Alive(m.Name) {
			return
		}
		if n.askApplied(ctx, m.Name, version) == nil || ctx.Err() != nil {
			return
		}
		if !n.await(retryInterval, changed, ctx.Done()) {
			return
		}
	}
}

// askApplied asks a member to answer once it has applied a version.
func (n *Node) askApplied(ctx context.Context, name string, version uint64) error {
	answer, err := n.gossip.Request(ctx, name, strconv.AppendUint([]byte{byte(kindApplied)}, version, 10))
	if err != nil {
		return err
	}
	applied, err := openJSON[uint64](answer)
	if err == nil {
		n.heard.set(name, applied)
	}
	return err
}

// handleApplied answers when this node has applied a version.
func (n *Node) handleApplied(ctx context.Context, body []byte) ([]byte, error) {
	version, err := strconv.ParseUint(string(body), 10, 64)
	if err != nil {
		return nil, cluster.Errorf(cluster.Parsing, "decode version: %v", err)
	}
	if err := n.applier.Wait(ctx, version); err != nil {
		return nil, err
	}
	return json.Marshal(n.applier.Applied())
}

// refreshTimeout bounds how long [Node.Refresh] waits for members.
const refreshTimeout = time.Second

// Refresh implements [rest.Cluster].
func (n *Node) Refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, m := range n.gossip.Members() {
		if m.Alive && m.Name != n.config.Name {
			asked.Go(func() { _ = n.askApplied(ctx, m.Name, 0) }) // who does not answer keeps the old version
		}
	}
	asked.Wait()
}
