package gossip_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/wlmsim/wlmsim/cluster/gossip"
)

// Two nodes on loopback: the second joins the first and asks it something.
func Example() {
	start := func(name string) *gossip.Gossip {
		streams, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		packets, err := net.ListenPacket("udp", streams.Addr().String())
		if err != nil {
			panic(err)
		}
		var dialer net.Dialer
		node, err := gossip.Start(gossip.Config{
			Self: gossip.Member{Name: name, Address: streams.Addr().String(), Roles: []string{"data"}},
			Network: gossip.Network{
				Listener: streams,
				Packets:  packets,
				Dial: func(ctx context.Context, address string) (net.Conn, error) {
					return dialer.DialContext(ctx, "tcp", address)
				},
			},
			Handler: func(_ context.Context, from string, body []byte) ([]byte, error) {
				return fmt.Appendf(nil, "%s heard %q from %s", name, body, from), nil
			},
			Timings: gossip.Timings{Dial: time.Minute}, // however busy the machine is
		})
		if err != nil {
			panic(err)
		}
		return node
	}

	d1, d2 := start("d1"), start("d2")
	defer d1.Close()
	defer d2.Close()
	if _, err := d2.Join(context.Background(), []string{d1.Members()[0].Address}); err != nil {
		panic(err)
	}
	answer, err := d2.Request(context.Background(), "d1", []byte("hello"))
	fmt.Println(string(answer), err)
	// Output: d1 heard "hello" from d2 <nil>
}
