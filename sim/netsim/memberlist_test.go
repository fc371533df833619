package netsim_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/netsim"
)

// gossip is memberlist's Transport, made of a host.
type gossip struct {
	host    *netsim.Host
	stream  net.Listener
	packet  *netsim.PacketConn
	packets chan *memberlist.Packet
	streams chan net.Conn
	stop    chan struct{}
	ended   sync.WaitGroup
}

func newGossip(host *netsim.Host) *gossip {
	g := &gossip{
		host: host, stream: must(host.Listen(7946)), packet: must(host.ListenPacket(7946)),
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), stop: make(chan struct{}),
	}
	g.ended.Go(g.receive)
	g.ended.Go(g.accept)
	return g
}

func (g *gossip) receive() {
	for b := make([]byte, 65536); ; {
		k, from, err := g.packet.ReadFrom(b)
		if err != nil {
			return
		}
		select {
		case g.packets <- &memberlist.Packet{Buf: bytes.Clone(b[:k]), From: from, Timestamp: time.Now()}:
		case <-g.stop:
		}
	}
}

func (g *gossip) accept() {
	for {
		conn, err := g.stream.Accept()
		if err != nil {
			return
		}
		select {
		case g.streams <- conn:
		case <-g.stop:
			_ = conn.Close()
		}
	}
}

func (g *gossip) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return g.host.IP().AsSlice(), 7946, nil
}

func (g *gossip) WriteTo(b []byte, addr string) (time.Time, error) {
	_, err := g.packet.WriteToUDPAddrPort(b, netip.MustParseAddrPort(addr))
	return time.Now(), err
}

func (g *gossip) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return g.host.Dial(ctx, addr)
}

func (g *gossip) PacketCh() <-chan *memberlist.Packet { return g.packets }
func (g *gossip) StreamCh() <-chan net.Conn           { return g.streams }

func (g *gossip) Shutdown() error {
	close(g.stop)
	_ = g.stream.Close() // a crash has closed both
	_ = g.packet.Close()
	g.ended.Wait()
	return nil
}

func startMembers(n *netsim.Network, count int) (lists []*memberlist.Memberlist) {
	var seeds []string
	for i := range count {
		host := n.Host(fmt.Sprintf("m%d", i+1))
		cfg := memberlist.DefaultLANConfig()
		cfg.Name, cfg.Transport, cfg.LogOutput = host.Name(), newGossip(host), io.Discard
		cfg.EnableCompression = false
		list := must(memberlist.Create(cfg))
		if len(seeds) > 0 {
			must(list.Join(seeds))
		}
		lists, seeds = append(lists, list), append(seeds, host.Address(7946))
	}
	return lists
}

func stopMembers(lists []*memberlist.Memberlist) {
	for _, list := range lists {
		check(list.Shutdown())
	}
	// Push-and-pull exchanges under way end with their own timeout.
	time.Sleep(time.Minute)
}

func seen(lists []*memberlist.Memberlist) (counts []int) {
	for _, list := range lists {
		counts = append(counts, list.NumMembers())
	}
	return counts
}

func TestMemberlistMarksTheCutOffDeadAndTakesThemBack(t *testing.T) {
	cfg := netsim.Config{Seed: 1, Link: netsim.Faults{Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}}
	inBubble(t, cfg, func(n *netsim.Network) {
		lists := startMembers(n, 5)
		defer stopMembers(lists)
		time.Sleep(10 * time.Second)
		require.Equal(t, []int{5, 5, 5, 5, 5}, seen(lists))

		cut := must(n.Partition([]string{"m1"}, []string{"m2", "m3", "m4", "m5"}))
		// One that hears nobody doubts itself first: its probes come up to nine
		// times slower, and each suspicion lasts its whole 24 s.
		time.Sleep(3 * time.Minute)
		require.Equal(t, []int{1, 4, 4, 4, 4}, seen(lists))
		cut.Heal()
		must(lists[0].Join([]string{n.Host("m2").Address(7946)}))
		time.Sleep(3 * time.Minute)
		require.Equal(t, []int{5, 5, 5, 5, 5}, seen(lists))

		n.Host("m5").Crash()
		time.Sleep(3 * time.Minute)
		require.Equal(t, []int{4, 4, 4, 4}, seen(lists[:4]))
	})
}

// BenchmarkMemberlistMinute is one virtual minute of members that only gossip.
func BenchmarkMemberlistMinute(b *testing.B) {
	for _, count := range []int{10, 100} {
		b.Run(fmt.Sprintf("members=%d", count), func(b *testing.B) {
			for range b.N {
				inBubble(b, netsim.Config{}, func(n *netsim.Network) {
					lists := startMembers(n, count)
					time.Sleep(time.Minute)
					for _, list := range lists {
						check(list.Shutdown())
					}
					time.Sleep(time.Minute)
				})
			}
			b.ReportMetric(60*float64(b.N)/b.Elapsed().Seconds(), "times-wall")
		})
	}
}
