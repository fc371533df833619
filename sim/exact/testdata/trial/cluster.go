package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

const (
	raftPort   = 9300
	gossipPort = 9400
)

var names = []string{"m1", "m2", "m3", "d1", "d2"}

// trial is the cluster of one run.
type trial struct {
	seed  uint64
	dir   string
	trace *trace
	net   *netsim.Network
	nodes []*node.Node // in the order of names
}

// live is the whole run, inside its bubble.
func live(seed uint64, long time.Duration, dir string, t *trace, planted func()) (err error) {
	network, err := netsim.New(netsim.Config{Seed: seed, Taps: []netsim.Tap{t}, Observe: func(d netsim.Delivery) { t.note("delivery", d) }})
	if err != nil {
		return err
	}
	c := &trial{seed: seed, dir: dir, trace: t, net: network}
	defer func() { err = errors.Join(err, c.close()) }()
	for i := range names {
		if err := c.start(i); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := within(time.Minute, n.Ready); err != nil {
			return err
		}
	}
	group, err := c.prepare()
	if err != nil {
		return err
	}
	return c.drive(long, group, planted)
}

func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}

// start starts a node; the managers have Bolt files.
func (c *trial) start(i int) error {
	name := names[i]
	host := c.net.Host(name)
	raft, err1 := host.Listen(raftPort)
	meet, err2 := host.Listen(gossipPort)
	packets, err3 := host.ListenPacket(gossipPort)
	switches, err4 := wlm.Profile(wlm.ProfileReviewed)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	own := c.seed*100 + uint64(i)
	enabled := string(cluster.Enabled)
	config := node.Config{
		Name: name, ID: node.NewID(own), Switches: switches, Seed: own, Roles: []cluster.Role{cluster.Data}, Store: replica.Memory(),
		Raft:     node.RaftNetwork{Address: host.Address(raftPort), Listener: raft, Dial: host.Dial},
		Gossip:   node.GossipNetwork{Address: host.Address(gossipPort), Network: gossip.Network{Listener: meet, Dial: host.Dial, Packets: packets}},
		Settings: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled}},
		Hooks:    []probe.Hook{c.trace},
	}
	if name[0] == 'm' {
		config.Roles, config.Store = []cluster.Role{cluster.Manager}, replica.Bolt(filepath.Join(c.dir, name))
		for _, other := range names[:3] {
			config.Bootstrap = append(config.Bootstrap, replica.Server{Name: other, Address: c.net.Host(other).Address(raftPort), Voter: true})
		}
	}
	for _, other := range names[:i] {
		config.Seeds = append(config.Seeds, c.net.Host(other).Address(gossipPort))
	}
	n, err := node.Start(config)
	if err == nil {
		c.nodes = append(c.nodes, n)
	}
	return err
}

func (c *trial) close() error {
	errs := []error{c.net.Close()}
	for _, n := range slices.Backward(c.nodes) {
		errs = append(errs, n.Close())
	}
	time.Sleep(time.Minute) // memberlist waits out its timers after it was shut down
	return errors.Join(errs...)
}

// prepare makes an index and a group.
func (c *trial) prepare() (group string, err error) {
	limit := int64(2)
	group = c.nodes[0].NewID()
	return group, within(time.Minute, func(ctx context.Context) error {
		_, err1 := c.nodes[0].Propose(ctx, &cluster.CreateIndex{Name: "logs", UUID: node.NewID(c.seed), Shards: 6})
		_, err2 := c.nodes[3].Propose(ctx, &cluster.CreateGroup{Group: cluster.Group{
			ID: group, Name: "analytics", ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.5},
			Throttling: &cluster.Throttling{Attribute: cluster.ByUsername, NodeLimit: &limit},
		}})
		return errors.Join(err1, err2)
	})
}

// drive puts load on every node, changes the group all the while, and cuts the
// first manager off for a third of that time.
func (c *trial) drive(long time.Duration, group string, planted func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var all sync.WaitGroup
	for i := range c.nodes {
		all.Go(func() { c.load(ctx, i, group, planted) })
	}
	all.Go(func() { c.change(ctx, group) })
	time.Sleep(long / 3)
	cut, err := c.net.Partition(names[:1], names[1:])
	if err != nil {
		return err
	}
	time.Sleep(long / 3)
	cut.Heal()
	all.Wait()
	return within(time.Minute, func(ctx context.Context) error {
		for _, n := range c.nodes {
			groups, err := n.Groups(ctx)
			c.trace.note("groups", len(groups), err)
		}
		return nil
	})
}

// load sends searches to a node: four clients of two users, each of which waits a drawn
// time between two.
func (c *trial) load(ctx context.Context, i int, group string, planted func()) {
	var clients sync.WaitGroup
	for k := range 4 {
		clients.Go(func() {
			draw := rand.New(rand.NewPCG(c.seed, uint64(i*100+k)))
			for ctx.Err() == nil {
				time.Sleep(time.Duration(draw.Int64N(int64(100 * time.Millisecond))))
				planted()
				own := wlm.WithPrincipal(ctx, wlm.Principal{User: fmt.Sprint("user", k/2)})
				service := time.Duration(draw.Int64N(int64(50 * time.Millisecond)))
				_, err := c.nodes[i].Search(own, coordinator.Request{Index: "logs", GroupHeader: group, Size: 10, ServiceTime: service, Query: []byte("{}")})
				c.trace.note("answer", names[i], k, err)
			}
		})
	}
	clients.Wait()
}

// change gives the group another limit every second.
func (c *trial) change(ctx context.Context, group string) {
	for n := 0; ctx.Err() == nil; n++ {
		limit := int64(1 + n%2)
		_, err := c.nodes[1+n%4].Propose(ctx, &cluster.UpdateGroup{Name: "analytics", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(limit)}})
		c.trace.note("changed", n, err)
		time.Sleep(time.Second)
	}
}
