package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/wlm"
)

// RaftNetwork is how a node's replica meets the others.
type RaftNetwork struct {
	Address  string // host:port under which the others reach Listener
	Listener net.Listener
	Dial     func(ctx context.Context, address string) (net.Conn, error)
}

// GossipNetwork is how a node's gossip meets the others.
type GossipNetwork struct {
	Address string // host:port under which the others reach Network
	Network gossip.Network
	Key     []byte         // encrypts gossip; nil: plain text
	Timings gossip.Timings // zero fields have gossip's defaults
}

// HTTPNetwork is how clients reach a node.
type HTTPNetwork struct {
	Address  string       // host:port for members to show; "" for a node without HTTP
	Listener net.Listener // nil: the node has no HTTP server
}

// Config says what a node is and what world it lives in.
type Config struct {
	Name  string         // unique in the cluster
	ID    string         // 22 URL-safe characters, the same after a restart; a node that lost its disk has a new one
	Roles []cluster.Role // at least one

	ClusterName string       // shown to clients; default "wlmsim"
	Switches    wlm.Switches // the profile

	Raft    RaftNetwork
	Gossip  GossipNetwork
	HTTP    HTTPNetwork
	Store   *replica.Store
	Timings replica.Timings // zero fields have raft's defaults

	// Bootstrap are the voters of a new cluster. It is ignored when the store
	// has a state. Empty with an empty store: the node waits for a leader to
	// add it.
	Bootstrap []replica.Server
	// Settings are proposed by the first leader of a new cluster.
	Settings cluster.SettingsChange
	// Seeds are gossip addresses to join, tried until one answers.
	Seeds []string

	DataNode datanode.Config // Workers, Queue and Seed; the node fills in the rest
	Seed     uint64          // of the node's ids
	// Now stamps groups, rules and indices. Nothing else reads it, so that a
	// node's wall clock may be wrong. Default time.Now.
	Now func() time.Time
	// ManagerTimeout bounds the wait for a leader. Default 30 s, as in
	// OpenSearch.
	ManagerTimeout time.Duration

	REST rest.Config // of the HTTP API: Version, QueryGroupAlias, Users, AllowHolds, Canary; the node fills in the rest
	// Front returns what the HTTP API talks to in place of the node, for a
	// world that watches what comes in by it; nil: the node itself.
	Front     func(rest.Cluster, rest.Searcher) (rest.Cluster, rest.Searcher)
	Hooks     []probe.Hook // see the node's steps after its own holds
	Holds     bool         // give the node a [probe.Holds], for tests and --allow-holds
	OnMembers func([]gossip.Member)
	// CountFault makes the count of a group's rejection fail; see
	// [wlm.Config].
	CountFault func(group string) error
	// Started hears of each admitted search before anything is done for it;
	// see [coordinator.Config].
	Started []func(ctx context.Context, r coordinator.Request) error
	OnStop  func(error) // the replica or the applier stopped the node's state; nil: it is logged
	Log     *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.ClusterName == "" {
		c.ClusterName = "wlmsim"
	}
	c.REST.Dimension = c.Switches.DimensionKey
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ManagerTimeout == 0 {
		c.ManagerTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) check() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Name == "", "a node needs a name")
	fault(len(c.ID) != idLength, "node %q: an id has %d characters but this one is %q", c.Name, idLength, c.ID)
	fault(len(c.Roles) == 0, "node %q: a node needs at least one role of %s, %s", c.Name, cluster.Manager, cluster.Data)
	for _, r := range c.Roles {
		fault(r != cluster.Manager && r != cluster.Data, "node %q: role %q is unknown: one of %s, %s", c.Name, r, cluster.Manager, cluster.Data)
	}
	fault(c.Raft.Listener == nil || c.Raft.Dial == nil || c.Raft.Address == "", "node %q: the raft network is not complete", c.Name)
	fault(c.Gossip.Network.Listener == nil || c.Gossip.Network.Dial == nil || c.Gossip.Address == "", "node %q: the gossip network is not complete", c.Name)
	fault(c.Store == nil, "node %q: a node needs a store", c.Name)
	fault(c.ManagerTimeout < 0, "node %q: manager timeout %v is negative", c.Name, c.ManagerTimeout)
	return errors.Join(faults...)
}

// closeListeners closes what the node was handed to listen on.
func (c Config) closeListeners() error {
	var errs []error
	for _, l := range []net.Listener{c.HTTP.Listener, c.Raft.Listener, c.Gossip.Network.Listener} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if c.Gossip.Network.Packets != nil {
		errs = append(errs, c.Gossip.Network.Packets.Close())
	}
	return errors.Join(errs...)
}
