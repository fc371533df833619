package live

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/sim/live/streams"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

// NodeOptions say how to start one node on this machine.
type NodeOptions struct {
	Name  string
	Roles []cluster.Role // default: both
	// HTTP, Raft and Gossip are ip:port to listen on. Port 0 takes the port
	// that the data folder remembers, or else any free one; "" is
	// 127.0.0.1:0.
	HTTP, Raft, Gossip string
	Join               []string // gossip addresses of members; none on an empty folder: a new cluster of this node
	DataDir            string   // required; made if it is not there
	Security           Security
	Switches           wlm.Switches
	Settings           cluster.SettingsChange // of a new cluster
	REST               rest.Config            // see [node.Config]
	Holds              bool
	Workers, Queue     int          // of a data node; 0: see [datanode.Config]
	Log                *slog.Logger // nil: no log
}

func (o NodeOptions) withDefaults() NodeOptions {
	for _, address := range []*string{&o.HTTP, &o.Raft, &o.Gossip} {
		if *address == "" {
			*address = "127.0.0.1:0"
		}
	}
	if len(o.Roles) == 0 {
		o.Roles = []cluster.Role{cluster.Manager, cluster.Data}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o NodeOptions) check() error {
	faults := []error{o.Security.check(append([]string{o.HTTP, o.Raft, o.Gossip}, o.Join...)...)}
	faults = append(faults, gossip.CheckName(o.Name))
	if o.DataDir == "" {
		faults = append(faults, errors.New("a node needs a data folder"))
	}
	for _, r := range o.Roles {
		if r != cluster.Manager && r != cluster.Data {
			faults = append(faults, fmt.Errorf("role %q is unknown: one of %s, %s", r, cluster.Manager, cluster.Data))
		}
	}
	return optionsError(errors.Join(faults...))
}

// OptionsError says that options were wrong, before anything was started.
type OptionsError struct{ error }

// Unwrap returns what was wrong.
func (e OptionsError) Unwrap() error { return e.error }

func optionsError(err error) error {
	if err == nil {
		return nil
	}
	return OptionsError{err}
}

// Addresses are where a node listens, as ip:port.
type Addresses struct {
	HTTP   string `json:"http"`
	Raft   string `json:"raft"`
	Gossip string `json:"gossip"`
}

// Node is a running node with its addresses.
type Node struct {
	*node.Node
	Addresses Addresses
	failed    chan error
}

// Failed gives the reason why the node cannot go on as a member, if that
// happens: another node has its name, or its replica stopped. The node still
// has to be closed.
func (n *Node) Failed() <-chan error { return n.failed }

// StartNode starts a node. It returns when the node listens, which is before
// it is part of a cluster; see [node.Node.Ready].
func StartNode(o NodeOptions) (*Node, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	raftTLS, httpTLS, err := o.Security.tlsConfigs()
	if err != nil {
		return nil, OptionsError{err}
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, err
	}
	remembered, err := loadIdentity(o.DataDir)
	if err != nil {
		return nil, err
	}
	if remembered.Name != "" && remembered.Name != o.Name {
		return nil, OptionsError{fmt.Errorf("folder %s belongs to node %q, not to %q", o.DataDir, remembered.Name, o.Name)}
	}
	founds := len(o.Join) == 0 && slices.Contains(o.Roles, cluster.Manager)
	if !founds && len(o.Join)+len(remembered.Peers) == 0 {
		return nil, OptionsError{fmt.Errorf("node %q is no manager and cannot begin a cluster: it needs the gossip address of a member to join", o.Name)}
	}
	s, err := listen(o, remembered)
	if err != nil {
		return nil, err
	}
	self := identity{Name: o.Name, ID: remembered.ID, PID: os.Getpid(), Roles: o.Roles, Raft: s.addresses.Raft, Gossip: s.addresses.Gossip, Peers: remembered.Peers}
	seed := randomSeed()
	if self.ID == "" {
		self.ID = node.NewID(seed)
	}
	if err := self.save(o.DataDir); err != nil {
		return nil, errors.Join(err, s.close())
	}
	kept, err := streams.New(streams.Config{Listener: s.gossip, Dial: streams.DialFunc(dialer(nil)), Log: o.Log})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	c := node.Config{
		Name: o.Name, ID: self.ID, Roles: o.Roles, Switches: o.Switches,
		Raft: node.RaftNetwork{Address: s.addresses.Raft, Listener: withinTLS(s.raft, raftTLS), Dial: dialer(raftTLS)},
		Gossip: node.GossipNetwork{
			Address: s.addresses.Gossip, Key: o.Security.GossipKey,
			Network: gossip.Network{Listener: kept, Packets: s.packets, Dial: kept.Dial},
		},
		HTTP:  node.HTTPNetwork{Address: s.addresses.HTTP, Listener: withinTLS(s.http, httpTLS)},
		Store: replica.Bolt(filepath.Join(o.DataDir, "raft")), Settings: o.Settings, Seeds: append(slices.Clone(o.Join), self.Peers...), Seed: seed,
		DataNode: datanode.Config{Workers: o.Workers, Queue: o.Queue, Seed: seed},
		REST:     o.REST, Holds: o.Holds, Log: o.Log,
		OnMembers: rememberPeers(o.DataDir, self, o.Log),
	}
	if founds {
		c.Bootstrap = []replica.Server{{Name: o.Name, Address: s.addresses.Raft, Voter: true}}
	}
	failed := make(chan error, 1)
	c.OnStop = func(err error) {
		select {
		case failed <- err:
		default: // one reason is enough
		}
	}
	n, err := node.Start(c)
	if err != nil {
		return nil, err
	}
	return &Node{Node: n, Addresses: s.addresses, failed: failed}, nil
}

// rememberPeers keeps the gossip addresses of the other members in the data
// folder. It is called from one goroutine of the node.
func rememberPeers(dir string, self identity, log *slog.Logger) func([]gossip.Member) {
	return func(members []gossip.Member) {
		var peers []string
		for _, m := range members {
			if m.Name != self.Name {
				peers = append(peers, m.Address)
			}
		}
		if slices.Equal(peers, self.Peers) {
			return
		}
		self.Peers = peers
		if err := self.save(dir); err != nil {
			log.Warn("the members were not written to the data folder", "folder", dir, "error", err)
		}
	}
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return binary.BigEndian.Uint64(b[:])
}

// sockets are what a node listens on.
type sockets struct {
	http, raft, gossip net.Listener
	packets            net.PacketConn
	addresses          Addresses
}

func (s *sockets) close() error {
	var errs []error
	for _, l := range []net.Listener{s.http, s.raft, s.gossip} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.packets != nil {
		errs = append(errs, s.packets.Close())
	}
	return errors.Join(errs...)
}

func listen(o NodeOptions, remembered identity) (*sockets, error) {
	s := &sockets{}
	var err error
	if s.http, err = net.Listen("tcp", o.HTTP); err != nil {
		return nil, fmt.Errorf("HTTP: %w", err)
	}
	address := portOf(o.Raft, remembered.Raft)
	if s.raft, err = net.Listen("tcp", address); err != nil {
		return nil, errors.Join(remembered.taken(o.DataDir, address, fmt.Errorf("raft: %w", err)), s.close())
	}
	address = portOf(o.Gossip, remembered.Gossip)
	if err := s.listenGossip(address); err != nil {
		return nil, errors.Join(remembered.taken(o.DataDir, address, fmt.Errorf("gossip: %w", err)), s.close())
	}
	s.addresses = Addresses{HTTP: s.http.Addr().String(), Raft: s.raft.Addr().String(), Gossip: s.gossip.Addr().String()}
	return s, nil
}

// gossipTries bounds how often a free TCP port is looked for whose UDP port is
// free too.
const gossipTries = 20

// listenGossip takes one port for streams and datagrams.
func (s *sockets) listenGossip(address string) (err error) {
	for range gossipTries {
		if s.gossip, err = net.Listen("tcp", address); err != nil {
			return err
		}
		if s.packets, err = net.ListenPacket("udp", s.gossip.Addr().String()); err == nil {
			return nil
		}
		err = errors.Join(err, s.gossip.Close())
		s.gossip = nil
	}
	return err
}

// portOf returns address, with the remembered one in place of port 0.
func portOf(address, remembered string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" || remembered == "" {
		return address
	}
	if rememberedHost, _, err := net.SplitHostPort(remembered); err == nil && rememberedHost == host {
		return remembered
	}
	return address
}
