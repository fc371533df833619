package netsim_test

import (
	"context"
	"io"
	"testing"

	"github.com/wlmsim/wlmsim/sim/netsim"
)

// BenchmarkDatagram sends and receives datagrams of 100 bytes one by one: each
// has an instant of its own, so each moves the clock.
func BenchmarkDatagram(b *testing.B) {
	b.ReportAllocs()
	inBubble(b, netsim.Config{}, func(n *netsim.Network) {
		from := must(n.Host("a").ListenPacket(1))
		to := must(n.Host("b").ListenPacket(1))
		addr := to.LocalAddr()
		out, in := make([]byte, 100), make([]byte, 200)
		for range b.N { // b.Loop would read the virtual clock
			must(from.WriteTo(out, addr))
			_, _, err := to.ReadFrom(in)
			check(err)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkDatagramBurst has 100 datagrams under way at a time.
func BenchmarkDatagramBurst(b *testing.B) {
	const burst = 100
	b.ReportAllocs()
	inBubble(b, netsim.Config{}, func(n *netsim.Network) {
		from := must(n.Host("a").ListenPacket(1))
		to := must(n.Host("b").ListenPacket(1))
		addr := to.LocalAddr()
		out, in := make([]byte, 100), make([]byte, 200)
		for range b.N { // b.Loop would read the virtual clock
			for range burst {
				must(from.WriteTo(out, addr))
			}
			for range burst {
				_, _, err := to.ReadFrom(in)
				check(err)
			}
		}
	})
	b.ReportMetric(burst*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkStream has two ends play ball with 100 bytes over one connection.
func BenchmarkStream(b *testing.B) {
	b.ReportAllocs()
	inBubble(b, netsim.Config{}, func(n *netsim.Network) {
		l := must(n.Host("b").Listen(1))
		conn := must(n.Host("a").Dial(context.Background(), "b:1"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			far := must(l.Accept())
			defer far.Close()
			ball := make([]byte, 100)
			for {
				if _, err := io.ReadFull(far, ball); err != nil {
					return
				}
				must(far.Write(ball))
			}
		}()
		ball := make([]byte, 100)
		for range b.N { // b.Loop would read the virtual clock
			must(conn.Write(ball))
			must(io.ReadFull(conn, ball))
		}
		check(conn.Close())
		<-done
	})
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkDial dials, accepts and closes a connection.
func BenchmarkDial(b *testing.B) {
	b.ReportAllocs()
	inBubble(b, netsim.Config{}, func(n *netsim.Network) {
		l := must(n.Host("b").Listen(1))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				far, err := l.Accept()
				if err != nil {
					return
				}
				check(far.Close())
			}
		}()
		for range b.N { // b.Loop would read the virtual clock
			check(must(n.Host("a").Dial(context.Background(), "b:1")).Close())
		}
		check(l.Close())
		<-done
	})
}
