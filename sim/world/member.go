package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
)

// Ports of a node at its first address. At a new one they are 100 further.
const (
	GossipPort = 7946
	RaftPort   = 8300

	httpPort = 9200
	portStep = 100
)

// member is a node's place in the world: what outlives a crash of the node.
type member struct {
	w     *world
	name  string
	role  cluster.Role
	host  *netsim.Host
	store *replica.Store
	gate  gate
	disk  *diskFault
	seed  stream
	clock atomic.Int64 // how far its wall clock is ahead, in nanoseconds
	away  atomic.Bool  // it left and is not expected back yet, or was refused
	moves atomic.Int32 // to new addresses so far

	// The driver's alone, or of the goroutine that restarts the member.
	lives   int    // starts so far
	disks   int    // disks so far; each has an id of its own
	id      string // of its disk
	founder bool   // one of the voters of the new cluster

	current atomic.Pointer[life] // nil while it is down

	mu   sync.Mutex
	past []*life // those that have ended, for their books
}

// life is one run of a member's node.
type life struct {
	m      *member
	number int // among the lives of all members of the name, from 1
	node   *node.Node
	gone   chan struct{} // closed at the instant of the crash, or when it is closed
	once   sync.Once
	errs   chan error  // why the node's state stopped, if it did, for who waits for that
	broken atomic.Bool // the node's state has stopped
}

func (l *life) end() { l.once.Do(func() { close(l.gone) }) }

func (l *life) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// newMember makes the place of a node on a host; the host has the node's name
// unless that is taken.
func (w *world) newMember(name, host string, founder bool) *member {
	role := cluster.Data
	if name[0] == 'm' {
		role = cluster.Manager
	}
	m := &member{
		w: w, name: name, role: role, host: w.net.Host(host), founder: founder,
		seed: w.seed.named("node", host), disks: 1,
	}
	m.disk = &diskFault{seed: m.seed.named("disk")}
	m.store = w.newStore(host)
	m.store.SetFault(m.disk.op)
	m.id = m.newID()
	return m
}

func (w *world) newStore(name string) *replica.Store {
	if w.file.Cluster.Storage == "bolt" {
		return replica.Bolt(filepath.Join(w.dir, name))
	}
	return replica.Memory()
}

func (m *member) newID() string {
	return node.NewID(m.seed.named("id").at(uint64(m.disks)).seed())
}

func (m *member) port(base int) int { return base + int(m.moves.Load())*portStep }

func (m *member) gossipAddress() string { return m.host.Address(m.port(GossipPort)) }
func (m *member) raftAddress() string   { return m.host.Address(m.port(RaftPort)) }

// start begins a life of the member. The members before it are its seeds.
func (m *member) start() error {
	l := &life{m: m, number: m.w.nextLife(m.name), gone: make(chan struct{}), errs: make(chan error, 1)}
	c, err := m.config(l)
	if err != nil {
		return err
	}
	if l.node, err = node.Start(c); err != nil {
		return err
	}
	m.lives++
	m.current.Store(l)
	m.w.event(history.Event{Kind: history.NodeStarted, Node: m.name, Life: l.number, Detail: m.id})
	return nil
}

func (m *member) config(l *life) (node.Config, error) {
	w, seed := m.w, m.seed.at(uint64(l.number))
	c := node.Config{
		Name: m.name, ID: m.id, Roles: []cluster.Role{m.role}, Switches: w.switches, Store: m.store,
		Settings: w.settings(), Seeds: w.seedsOf(m), Seed: seed.named("ids").seed(),
		DataNode: datanode.Config{Workers: w.file.Cluster.Workers, Queue: w.file.Cluster.Queue, Seed: w.seed.named("service").seed()},
		Now:      func() time.Time { return time.Now().Add(time.Duration(m.clock.Load())) },
		Hooks:    w.hooks(l), Holds: w.holding, CountFault: w.countFault(m.name),
		Started: []func(context.Context, coordinator.Request) error{admitted}, Log: w.options.Log,
		OnStop: func(err error) {
			l.broken.Store(true)
			w.event(history.Event{Kind: history.FaultBegin, Node: m.name, Life: l.number, Detail: "the state of " + m.name + " stops: " + err.Error()})
			select {
			case l.errs <- err:
			default: // one reason is enough
			}
		},
	}
	if m.founder && m.lives == 0 {
		c.Bootstrap = w.founders()
	}
	if w.options.explored != nil && m.role == cluster.Manager {
		c.Timings = succession(slices.Index(w.list(), m), w.file.Cluster.Managers)
	}
	return c, m.listen(&c, l)
}

// listen opens what the node listens on. Nothing is left open on an error.
func (m *member) listen(c *node.Config, l *life) error {
	raft, err := m.host.Listen(m.port(RaftPort))
	if err != nil {
		return fmt.Errorf("raft of %s: %w", m.name, err)
	}
	streams, err := m.host.Listen(m.port(GossipPort))
	if err != nil {
		return errors.Join(fmt.Errorf("gossip of %s: %w", m.name, err), raft.Close())
	}
	packets, err := m.host.ListenPacket(m.port(GossipPort))
	if err != nil {
		return errors.Join(fmt.Errorf("gossip of %s: %w", m.name, err), raft.Close(), streams.Close())
	}
	c.Raft = node.RaftNetwork{Address: m.raftAddress(), Listener: raft, Dial: m.host.Dial}
	c.Gossip = node.GossipNetwork{Address: m.gossipAddress(), Network: gossip.Network{Listener: streams, Packets: packets, Dial: m.host.Dial}}
	if m.w.starving {
		c.Gossip.Network = m.gate.network(c.Gossip.Network)
	}
	if !m.w.options.HTTP {
		return nil
	}
	if c.HTTP.Listener, err = m.host.Listen(m.port(httpPort)); err != nil {
		return errors.Join(fmt.Errorf("HTTP of %s: %w", m.name, err), raft.Close(), streams.Close(), packets.Close())
	}
	c.HTTP.Address = m.host.Address(m.port(httpPort))
	c.REST.Canary, c.Front = m.w.canaries.next, l.front
	return nil
}

// network puts a network behind the gate.
func (g *gate) network(n gossip.Network) gossip.Network {
	return gossip.Network{
		Listener: &gatedListener{Listener: n.Listener, gate: g, done: make(chan struct{})},
		Packets:  &gatedPackets{PacketConn: n.Packets, gate: g, done: make(chan struct{})},
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			c, err := n.Dial(ctx, address)
			if err != nil {
				return nil, err
			}
			return g.conn(c), nil
		},
	}
}

// close ends the current life, if there is one, and returns when nothing of it
// is left.
func (m *member) close() error {
	l := m.current.Swap(nil)
	if l == nil {
		return nil
	}
	l.end()
	err := l.node.Close()
	m.keep(l)
	return err
}

// crash ends the current life as a process that is killed at this instant:
// links are cut and the store is frozen before it returns. The channel is
// closed when nothing of the node is left; nil if the member was down.
func (m *member) crash() <-chan struct{} {
	l := m.current.Swap(nil)
	if l == nil {
		return nil
	}
	l.end()
	m.host.Crash()
	m.store.Freeze()
	m.w.event(history.Event{Kind: history.NodeCrashed, Node: m.name, Life: l.number})
	closed := make(chan struct{})
	m.w.run(func() {
		defer close(closed)
		_ = l.node.Close() // whatever it could not do any more does not matter to a process that was killed
		m.keep(l)
	})
	return closed
}

// revive restarts the member if its node's state has stopped by itself, as an
// operator does once the cause is gone.
func (m *member) revive() {
	l := m.current.Load()
	if l == nil || !l.broken.Load() {
		return
	}
	if closed := m.crash(); closed != nil {
		<-closed
		m.w.restart(m, false, false)
	}
}

// all returns the lives of the member, the oldest first.
func (m *member) all() []*life {
	m.mu.Lock()
	defer m.mu.Unlock()
	lives := slices.Clone(m.past)
	if l := m.current.Load(); l != nil {
		lives = append(lives, l)
	}
	return lives
}

func (m *member) keep(l *life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = append(m.past, l)
}

// replaceDisk empties the store, so that the node comes back as a new one of
// the same name. No life may have the store.
func (m *member) replaceDisk() error {
	if err := m.store.Lost(); err != nil {
		return fmt.Errorf("replace the disk of %s: %w", m.name, err)
	}
	m.disks++
	m.id = m.newID()
	return nil
}

func (m *member) String() string { return m.name + " (life " + strconv.Itoa(m.lives) + ")" }
