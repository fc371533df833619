package netsim_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// action is one step of a random run over streams.
type action struct {
	what   string
	stream int // which direction of which connection
	size   int
	pause  time.Duration
	loss   float64
}

func actions() *rapid.Generator[[]action] {
	one := rapid.Custom(func(t *rapid.T) action {
		return action{
			what:   rapid.SampledFrom([]string{"write", "write", "read", "read", "sleep", "cut", "cut one way", "heal", "lose"}).Draw(t, "what"),
			stream: rapid.IntRange(0, 3).Draw(t, "stream"),
			size:   rapid.IntRange(1, 300).Draw(t, "size"),
			pause:  time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")),
			loss:   rapid.Float64Range(0, 0.9).Draw(t, "loss"),
		}
	})
	return rapid.SliceOfN(one, 1, 60)
}

// direction is one direction of a connection beside its naive model: the bytes
// that were given to Write, in order.
type direction struct {
	from, to net.Conn
	sizes    chan int
	wrote    chan struct{}
	model    []byte
	got      []byte
}

// next returns the bytes that a write of this size writes: no two places alike
// within 64 KiB, so that a swap or a gap shows.
func (d *direction) next(size int) (b []byte) {
	for range (size + 1) / 2 {
		n := len(d.model)/2 + len(b)/2
		b = append(b, byte(n>>8), byte(n))
	}
	return b
}

func (d *direction) write() {
	defer close(d.wrote)
	for size := range d.sizes {
		b := d.next(size)
		d.model = append(d.model, b...)
		must(d.from.Write(b))
	}
	check(d.from.(interface{ CloseWrite() error }).CloseWrite())
}

func (d *direction) read(size int) {
	check(d.to.SetReadDeadline(time.Now().Add(time.Millisecond)))
	b := make([]byte, size)
	k, err := d.to.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		panic(err)
	}
	d.got = append(d.got, b[:k]...)
}

// play runs the actions over two connections, heals everything, and returns
// what each direction sent and got.
func play(seed uint64, todo []action) (directions []*direction, err error) {
	err = bubble.Run(func() {
		n := must(netsim.New(netsim.Config{Seed: seed, Window: 256}))
		defer n.Close()
		for range 2 {
			near, far := connected(n)
			directions = append(directions, &direction{from: near, to: far}, &direction{from: far, to: near})
		}
		for _, d := range directions {
			d.sizes, d.wrote = make(chan int, len(todo)), make(chan struct{})
			go d.write()
		}
		for _, a := range todo {
			act(n, directions[a.stream], a)
		}
		n.Heal()
		for _, d := range directions {
			close(d.sizes)
		}
		for _, d := range directions {
			check(d.to.SetReadDeadline(time.Time{}))
			d.got = append(d.got, must(io.ReadAll(d.to))...)
			<-d.wrote
		}
	})
	return directions, err
}

func act(n *netsim.Network, d *direction, a action) {
	sides := []string{"a", "b"}
	switch a.what {
	case "write":
		d.sizes <- a.size
	case "read":
		d.read(a.size)
	case "sleep":
		time.Sleep(a.pause)
	case "cut":
		must(n.Partition(sides[:1], sides[1:]))
	case "cut one way":
		must(n.PartitionOneWay(sides[a.stream%2:][:1], sides[1-a.stream%2:][:1]))
	case "heal":
		n.Heal()
	case "lose":
		check(n.SetLink("a", "b", netsim.Faults{Loss: a.loss}))
	}
}

func TestStreamsArriveExactlyWhateverTheFaultsThatHeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		directions, err := play(rapid.Uint64().Draw(t, "seed"), actions().Draw(t, "actions"))
		require.NoError(t, err)
		for i, d := range directions {
			if !bytes.Equal(d.model, d.got) {
				t.Fatalf("direction %d: sent %d bytes, got %d other ones", i, len(d.model), len(d.got))
			}
		}
	})
}

// traffic drives a mixture of everything from one goroutine and returns the log
// of deliveries. The extra host sends only if asked to.
func traffic(t *testing.T, seed uint64, extra bool, loss float64) (log []string) {
	cfg := netsim.Config{
		Seed:    seed,
		Link:    netsim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05},
		Observe: func(d netsim.Delivery) { log = append(log, d.String()) },
	}
	inBubble(t, cfg, func(n *netsim.Network) {
		near, far := connected(n)
		from, to := must(n.Host("a").ListenPacket(5)), must(n.Host("b").ListenPacket(5))
		other := must(n.Host("c").ListenPacket(5))
		check(n.SetLink("c", "b", netsim.Faults{Loss: loss}))
		var cut *netsim.Cut
		for i := range 300 {
			must(from.WriteTo(make([]byte, i), to.LocalAddr()))
			must(near.Write(make([]byte, 10)))
			if extra {
				must(other.WriteTo(make([]byte, i), to.LocalAddr()))
			}
			time.Sleep(time.Millisecond)
			switch i {
			case 100:
				cut = must(n.Partition([]string{"a"}, []string{"b"}))
			case 150:
				cut.Heal()
			case 200:
				must(io.ReadFull(far, make([]byte, 1000)))
			case 250:
				_, err := n.Host("a").Dial(background, "b:9")
				if err == nil {
					panic("nobody listens")
				}
			}
		}
		n.Host("b").Crash()
		time.Sleep(time.Minute)
	})
	return log
}

// between returns the lines of a log about one ordered pair of hosts.
func between(log []string, pair string) (lines []string) {
	for _, line := range log {
		if strings.Contains(line, pair) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestOneSeedGivesOneLogOfDeliveries(t *testing.T) {
	first := traffic(t, 7, true, 0)
	require.Greater(t, len(first), 500)
	require.Equal(t, first, traffic(t, 7, true, 0))
	require.NotEqual(t, first, traffic(t, 8, true, 0))
	all := strings.Join(first, "\n")
	for _, kind := range []string{"datagram", "dropped by a cut", "dropped no socket", "dialled", "connected", "refused", "data", "reset"} {
		require.True(t, strings.Contains(all, kind), kind)
	}
}

func TestEventsHaveInstantsOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, line := range traffic(t, 7, true, 0) {
		at, _, _ := strings.Cut(line, " ")
		require.NotContains(t, seen, at, line)
		seen[at] = line
	}
}

func TestADrawMoreInOnePlaceMovesNothingElsewhere(t *testing.T) {
	alone := between(traffic(t, 7, false, 0), "a -> b")
	require.Equal(t, alone, between(traffic(t, 7, true, 0), "a -> b"))

	// What is lost changes, when the rest arrives does not.
	lossless, lossy := traffic(t, 7, true, 0), traffic(t, 7, true, 0.5)
	require.Equal(t, alone, between(lossy, "a -> b"))
	some, all := between(lossy, "c -> b"), between(lossless, "c -> b")
	require.Less(t, len(some), len(all))
	require.Less(t, 0, len(common(some, all)), "of %d", len(some))
}

// common returns the lines that stand in both.
func common(a, b []string) (both []string) {
	in := map[string]bool{}
	for _, line := range b {
		in[line] = true
	}
	for _, line := range a {
		if in[line] {
			both = append(both, line)
		}
	}
	return both
}

func ExampleNetwork() {
	err := bubble.Run(func() {
		latency := netsim.Range{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}
		n, err := netsim.New(netsim.Config{Seed: 1, Link: netsim.Faults{Latency: latency}})
		if err != nil {
			panic(err)
		}
		defer n.Close()

		listener, err := n.Host("m1").Listen(9300)
		if err != nil {
			panic(err)
		}
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			fmt.Fprint(conn, "hello from m1")
			conn.Close()
		}()

		start := time.Now()
		conn, err := n.Host("m2").Dial(background, "m1:9300")
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(conn)
		fmt.Printf("%s after %s, %v\n", text, time.Since(start).Round(time.Millisecond), err)
		conn.Close()
	})
	fmt.Println(err)
	// Output:
	// hello from m1 after 20ms, <nil>
	// <nil>
}
