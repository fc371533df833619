package gossip

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// peer is one life of another member.
type peer struct {
	life    string
	name    string
	address string
	node    *memberlist.Node // where to send; nameless, so that the sender itself says what a refused dial means

	out     outbox
	waiting atomic.Int32 // calls that wait for this life
	serving serving      // what this life waits for

	// The view's mutex guards the rest.
	member  Member
	meta    string    // the metadata that member was read from
	listed  bool      // memberlist holds it to be alive or suspect
	refused bool      // its address refused a dial since it was last heard
	over    bool      // it left, or another life answers at its address: it cannot come back
	dead    time.Time // when it was last found gone
	lastMet time.Time // when it last sent something
	session context.Context
	end     context.CancelFunc
}

func (p *peer) alive() bool { return p.listed && !p.refused && !p.over }

// view is who is in the cluster, as this node sees it: the lives it knows, and for every name the current one.
type view struct {
	base    context.Context // of every session
	changed func()          // must not block
	orphans func()          // told when calls wait for a life that is gone; must not block

	mu    sync.Mutex
	self  Member
	peers map[string]*peer // by life
	names map[string]*peer // the current life of each other member
}

func newView(base context.Context, self Member, changed, orphans func()) *view {
	return &view{base: base, changed: changed, orphans: orphans, self: self, peers: make(map[string]*peer), names: make(map[string]*peer)}
}

// peer returns the record of a life, new if it must be.
func (v *view) peer(life string) (*peer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peerLocked(life)
}

func (v *view) peerLocked(life string) (*peer, error) {
	if p := v.peers[life]; p != nil {
		return p, nil
	}
	name, address, err := parseLife(life)
	if err != nil {
		return nil, err
	}
	p := &peer{
		life: life, name: name, address: address.String(),
		node:   &memberlist.Node{Addr: address.Addr().AsSlice(), Port: address.Port()},
		member: Member{Name: name, Address: address.String()},
	}
	v.peers[life] = p
	return p, nil
}

// sessionLocked opens a session if the last one ended. It ends when the life is found gone; everything that waits for
// the life, or that it waits for, hangs on it.
func (v *view) sessionLocked(p *peer) context.Context {
	if p.session == nil || p.session.Err() != nil {
		p.session, p.end = context.WithCancel(v.base)
	}
	return p.session
}

// session returns the running session of a life, for what it asks of this node.
func (v *view) session(p *peer) context.Context {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sessionLocked(p)
}

// target returns the current life of a name, and its session.
func (v *view) target(name string) (*peer, context.Context, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.names[name]
	switch {
	case p == nil:
		return nil, nil, fmt.Errorf("%w: %q", ErrUnknownMember, name)
	case !p.alive():
		return nil, nil, goneError(name, false, nil)
	}
	return p, v.sessionLocked(p), nil
}

// joined takes in that memberlist holds a life to be alive. If another life of its name is alive as well, that one is
// returned, and stays current.
func (v *view) joined(life string, said Member, meta []byte) (p, rival *peer, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p, err = v.peerLocked(life); err != nil {
		return nil, nil, err
	}
	if p.over {
		return p, nil, nil
	}
	p.listed, p.refused = true, false
	p.saysLocked(said, meta)
	if p.name == v.self.Name {
		return p, nil, nil
	}
	current := v.names[p.name]
	if current != nil && current != p && current.alive() {
		return p, current, nil
	}
	v.names[p.name] = p
	v.sessionLocked(p)
	v.changed()
	return p, nil, nil
}

// replace puts a rival in the place of a current life that did not answer, if both still are what they were.
func (v *view) replace(current, rival *peer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names[rival.name] != current || !rival.alive() {
		return
	}
	v.goneLocked(current)
	v.names[rival.name] = rival
	v.sessionLocked(rival)
	v.changed()
}

// knows reports whether a life was taken in with just this before, so that it needs no second look.
func (v *view) knows(n *memberlist.Node) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.peers[n.Name]
	return p != nil && p.meta != "" && p.meta == string(n.Meta) && p.node.Addr.Equal(n.Addr) && p.node.Port == n.Port
}

// saysLocked takes in what a life says of itself.
func (p *peer) saysLocked(said Member, meta []byte) {
	p.member, p.meta = said, string(meta)
	p.member.Name, p.member.Address = p.name, p.address
}

// updated takes in new metadata of a life.
func (v *view) updated(life string, said Member, meta []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.peers[life]
	if p == nil {
		return
	}
	p.saysLocked(said, meta)
	v.changed()
}

// died takes in that memberlist holds a life to be dead.
func (v *view) died(life string) {
	v.lose(life, func(p *peer) { p.listed = false })
}

// refuses takes in that a life's address refused a dial.
func (v *view) refuses(life string) {
	v.lose(life, func(p *peer) { p.refused = true })
}

// ended takes in that a life is over for good. A member that left is forgotten.
func (v *view) ended(life string, leaves bool) {
	v.lose(life, func(p *peer) {
		p.over = true
		if leaves && v.names[p.name] == p {
			delete(v.names, p.name)
		}
	})
}

func (v *view) lose(life string, mark func(*peer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.peers[life]
	if p == nil {
		return
	}
	before, was := v.names[p.name], p.alive()
	mark(p)
	v.goneLocked(p)
	if next := v.successorLocked(p.name); next != nil && (v.names[p.name] == p || v.names[p.name] == nil) {
		v.names[p.name] = next
		v.sessionLocked(next)
	}
	if v.names[p.name] != before || before == p && was {
		v.changed()
	}
}

// goneLocked fails whatever waits for a life and ends what it waits for.
func (v *view) goneLocked(p *peer) {
	p.dead = time.Now()
	if p.end != nil {
		p.end()
	}
	if p.waiting.Load() > 0 {
		v.orphans()
	}
	p.out.drop()
}

// successorLocked finds another living life of a name, the smallest, so that the choice does not hang on map order.
func (v *view) successorLocked(name string) *peer {
	var next *peer
	for _, p := range v.peers {
		if p.name == name && p.alive() && name != v.self.Name && (next == nil || p.life < next.life) {
			next = p
		}
	}
	return next
}

// heard takes in a sign of life that came straight from a life.
func (v *view) heard(p *peer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.lastMet = time.Now()
	if p.refused && !p.over {
		p.refused = false
		v.changed()
	}
}

// find returns a known life or nil.
func (v *view) find(life string) *peer {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peers[life]
}

// members returns everybody by name.
func (v *view) members() []Member {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := []Member{v.self.clone()}
	for _, p := range v.names {
		m := p.member.clone()
		m.Alive = p.alive()
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// member returns the member of a name.
func (v *view) member(name string) (m Member, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if name == v.self.Name {
		return v.self.clone(), true
	}
	p := v.names[name]
	if p == nil {
		return Member{}, false
	}
	m = p.member.clone()
	m.Alive = p.alive()
	return m, true
}

func (v *view) isAlive(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if name == v.self.Name {
		return v.self.Alive
	}
	p := v.names[name]
	return p != nil && p.alive()
}

func (v *view) meta() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return encodeMeta(v.self)
}

func (v *view) updateSelf(change func(*Member) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	self := v.self.clone()
	if err := change(&self); err != nil {
		return err
	}
	v.self = self
	v.changed()
	return nil
}

// listed returns the lives that memberlist holds to be alive, in order.
func (v *view) listed() []*peer {
	return v.filter(func(p *peer) bool { return p.alive() })
}

// owing returns the lives that calls wait for.
func (v *view) owing() []*peer {
	return v.filter(func(p *peer) bool { return p.waiting.Load() > 0 })
}

func (v *view) filter(keep func(*peer) bool) []*peer {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*peer
	for _, p := range v.peers {
		if keep(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *peer) int { return strings.Compare(a.life, b.life) })
	return out
}

// whole reports whether every known member is alive.
func (v *view) whole() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.names {
		if !p.alive() {
			return false
		}
	}
	return true
}

// lost returns the addresses of the members that are not alive, in order of their names, and which addresses are alive.
func (v *view) lost() (addresses []string, alive map[string]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	alive = map[string]bool{v.self.Address: true}
	var dead []*peer
	for _, p := range v.names {
		if p.alive() {
			alive[p.address] = true
		} else {
			dead = append(dead, p)
		}
	}
	slices.SortFunc(dead, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	for _, p := range dead {
		addresses = append(addresses, p.address)
	}
	return addresses, alive
}

// prune forgets lives that nobody needs and members dead for longer than forget; of the dead, at most keep stay.
func (v *view) prune(now time.Time, forget time.Duration, keep int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var dead []*peer
	for _, p := range v.names {
		if !p.alive() {
			dead = append(dead, p)
		}
	}
	slices.SortFunc(dead, func(a, b *peer) int {
		if c := b.dead.Compare(a.dead); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for i, p := range dead {
		if i >= keep || now.Sub(p.dead) > forget {
			delete(v.names, p.name)
			v.changed()
		}
	}
	for life, p := range v.peers {
		if v.names[p.name] != p && !p.listed && now.Sub(p.lastMet) > quiet && p.unused() {
			if p.end != nil {
				p.end()
			}
			delete(v.peers, life)
		}
	}
}

// quiet is how long a life that memberlist does not hold alive must have been silent before its record may go.
const quiet = time.Minute

// unused reports whether nothing is under way with a life.
func (p *peer) unused() bool {
	idle, _ := p.out.idle()
	return idle && p.waiting.Load() == 0 && p.serving.none()
}

func (v *view) selfAddress() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.self.Address
}
