package netsim_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// streamLayer is what raft's NetworkTransport wants, made of a host.
type streamLayer struct {
	net.Listener
	host *netsim.Host
}

func (s streamLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.host.Dial(ctx, string(address))
}

// log is a state machine that keeps what it is given.
type log struct{ entries []string }

func (l *log) Apply(entry *raft.Log) any {
	l.entries = append(l.entries, string(entry.Data))
	return nil
}
func (l *log) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("no snapshots here") }
func (l *log) Restore(r io.ReadCloser) error       { return r.Close() }

// voter is one member of a raft cluster over the network.
type voter struct {
	name      string
	raft      *raft.Raft
	transport *raft.NetworkTransport
	log       *log
}

func startVoters(n *netsim.Network, names []string) (voters []*voter) {
	var servers raft.Configuration
	for _, name := range names {
		servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(name), Address: raft.ServerAddress(name + ":9300")})
	}
	for _, name := range names {
		host := n.Host(name)
		layer := streamLayer{must(host.Listen(9300)), host}
		transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: layer, MaxPool: 3, Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
		})
		cfg := raft.DefaultConfig()
		cfg.LocalID, cfg.Logger = raft.ServerID(name), hclog.NewNullLogger()
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		// The listener's address is an IP; the configuration has names.
		named := namedTransport{transport, raft.ServerAddress(name + ":9300")}
		check(raft.BootstrapCluster(cfg, store, store, snapshots, named, servers))
		v := &voter{name: name, transport: transport, log: &log{}}
		v.raft = must(raft.NewRaft(cfg, v.log, store, store, snapshots, named))
		voters = append(voters, v)
	}
	return voters
}

// namedTransport says a name where the transport would say an IP address.
type namedTransport struct {
	*raft.NetworkTransport
	name raft.ServerAddress
}

func (t namedTransport) LocalAddr() raft.ServerAddress { return t.name }

// stopVoters shuts all rafts down before any transport.
func stopVoters(voters []*voter) {
	for _, v := range voters {
		check(v.raft.Shutdown().Error())
	}
	for _, v := range voters {
		check(v.transport.Close())
		v.transport.CloseStreams()
	}
}

func leaders(voters []*voter) (found []*voter) {
	for _, v := range voters {
		if v.raft.State() == raft.Leader {
			found = append(found, v)
		}
	}
	return found
}

func TestRaftElectsALeaderLosesItToACutAndAgreesAfterwards(t *testing.T) {
	inBubble(t, netsim.Config{Seed: 1}, func(n *netsim.Network) {
		names := []string{"m1", "m2", "m3"}
		voters := startVoters(n, names)
		defer stopVoters(voters)
		time.Sleep(10 * time.Second)
		first := leaders(voters)
		require.Len(t, first, 1)
		for i := range 10 {
			check(first[0].raft.Apply(fmt.Append(nil, i), time.Second).Error())
		}

		rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == first[0].name })
		cut := must(n.Partition([]string{first[0].name}, rest))
		time.Sleep(20 * time.Second)
		second := leaders(voters)
		require.Len(t, second, 1, "the old one has stepped down")
		require.NotEqual(t, first[0].name, second[0].name)
		require.Error(t, first[0].raft.Apply([]byte("never"), time.Second).Error())
		check(second[0].raft.Apply([]byte("in the cut"), time.Second).Error())

		cut.Heal()
		time.Sleep(20 * time.Second)
		third := leaders(voters)
		require.Len(t, third, 1)
		check(third[0].raft.Apply([]byte("healed"), time.Second).Error())
		time.Sleep(time.Second)
		bubble.Wait() // the logs belong to raft's goroutines until they are blocked
		want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "in the cut", "healed"}
		for _, v := range voters {
			require.Equal(t, want, v.log.entries, v.name)
		}
	})
}

// BenchmarkRaftHour is one virtual hour of three idle voters.
func BenchmarkRaftHour(b *testing.B) {
	for range b.N {
		inBubble(b, netsim.Config{}, func(n *netsim.Network) {
			voters := startVoters(n, []string{"m1", "m2", "m3"})
			defer stopVoters(voters)
			time.Sleep(time.Hour)
		})
	}
	b.ReportMetric(3600*float64(b.N)/b.Elapsed().Seconds(), "times-wall")
}
