package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Network is how this node meets the others: sockets in a live node, memory in a simulated one.
type Network struct {
	// Listener accepts streams. It is closed by Close.
	Listener net.Listener
	// Packets carries datagrams of at most 1,400 bytes (a few more when encrypted). Addresses it is given are
	// *net.UDPAddr. It is closed by Close.
	Packets net.PacketConn
	// Dial opens a stream to "ip:port". An address at which nobody listens must give an error that is
	// syscall.ECONNREFUSED by errors.Is; that is what makes a member dead at once. It must return when ctx ends.
	// The connection's deadlines must work. It may be a stream on a connection that is kept, unless that broke.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Handler answers requests, and takes one-way messages (its result is dropped then). from is the sender's name. ctx ends
// when the requester gave up, died, or this node closes; for one-way messages only with this node. The text of the
// error travels to the requester as a RemoteError. A handler must return when ctx ends: Close waits for it.
type Handler func(ctx context.Context, from string, body []byte) ([]byte, error)

// Timings are the durations of gossip. Every zero means the default.
type Timings struct {
	// ProbeInterval is the time between two probes of one member each. Default 1 s.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a probe waits for a direct answer before it asks others to probe too. Default 500 ms.
	ProbeTimeout time.Duration
	// SuspicionMult times ProbeInterval (times log10 of the members, at least 1) is how long a silent member may still
	// refute before it is dead. Default 4.
	SuspicionMult int
	// GossipInterval is the time between two rounds of gossip. Default 200 ms.
	GossipInterval time.Duration
	// PushPull is the time between two full exchanges with a random member. Default 30 s.
	PushPull time.Duration
	// DeadMemory is how long gossip still goes to a dead member. Default 30 s.
	DeadMemory time.Duration
	// Rejoin is the time between two attempts to reach the addresses of dead members and of seeds never reached.
	// Default 3 s.
	Rejoin time.Duration
	// Forget is how long a dead member is remembered, to 16 times Rejoin. Default 24 h.
	Forget time.Duration
	// NameProbe is how long the old address of a name may take to answer before a new one takes its place. Default 1 s.
	NameProbe time.Duration
	// Check is how long a member that owes an answer may hear nothing from here before its address is dialled to see
	// whether it still listens. Default 500 ms.
	Check time.Duration
	// Dial bounds the opening of a stream. Default 1 s.
	Dial time.Duration
	// Stream bounds the whole life of a stream. Default 10 s.
	Stream time.Duration
	// Broadcast bounds how long Leave waits until gossip has passed its news on. Default 5 s.
	Broadcast time.Duration
}

// Bounds limit memory. Every zero means the default.
type Bounds struct {
	// OutboxMessages and OutboxBytes limit what may wait for one member. Answers have as much room again, so that a
	// member full of questions can still be answered. Defaults 8,192 and 32 MiB.
	OutboxMessages, OutboxBytes int
	// PackMessages and PackBytes limit one pack; a single larger message goes alone. Defaults 512 and 256 KiB.
	PackMessages, PackBytes int
	// MessageBytes limits one body, at most 16 MiB since memberlist reads 20 MiB. Default 4 MiB.
	MessageBytes int
	// Handled limits the requests and one-way messages handled at a time. Default 16,384.
	Handled int
	// Members limits the remembered dead members and the seeds never reached; the longest dead go first. Default 1,024.
	Members int
}

// Config is what Start needs.
type Config struct {
	// Self is this node: Name and Address are required, ID, Roles, Raft and HTTP travel with gossip (512 bytes together).
	// Address is what the others dial, "ip:port".
	Self Member
	// Life tells this start of the node from its other starts at the same address. Zero means the time of the start in
	// nanoseconds, which is enough unless a node can restart within one instant.
	Life uint64
	// Network is required.
	Network Network
	// Key encrypts all gossip and messages with AES when it has 16, 24 or 32 bytes. Empty: plain.
	Key []byte
	// Handler is required.
	Handler Handler
	// OnChange, if set, is called after the view of the members has changed, from one goroutine; changes that come
	// meanwhile are one more call.
	OnChange func()
	// Timings and Bounds default field by field.
	Timings Timings
	Bounds  Bounds
	// Log takes this package's and memberlist's log. Nil: none.
	Log *slog.Logger
}

const mib = 1 << 20

func (c Config) withDefaults(now time.Time) Config {
	if c.Life == 0 {
		c.Life = uint64(now.UnixNano())
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Timings = c.Timings.withDefaults()
	c.Bounds = c.Bounds.withDefaults()
	return c
}

func (t Timings) withDefaults() Timings {
	setDefault(&t.ProbeInterval, time.Second)
	setDefault(&t.ProbeTimeout, 500*time.Millisecond)
	setDefault(&t.SuspicionMult, 4)
	setDefault(&t.GossipInterval, 200*time.Millisecond)
	setDefault(&t.PushPull, 30*time.Second)
	setDefault(&t.DeadMemory, 30*time.Second)
	setDefault(&t.Rejoin, 3*time.Second)
	setDefault(&t.Forget, 24*time.Hour)
	setDefault(&t.NameProbe, time.Second)
	setDefault(&t.Check, 500*time.Millisecond)
	setDefault(&t.Dial, time.Second)
	setDefault(&t.Stream, 10*time.Second)
	setDefault(&t.Broadcast, 5*time.Second)
	return t
}

// maxScore is memberlist's bound on how far bad health stretches a probe.
const maxScore = 8

// Linger is how long goroutines of memberlist itself may outlive Close, while they wait for a member that does not answer.
// They end by themselves and reach nothing any more; only a bubble, which must not end before them, needs to sleep so long.
func (t Timings) Linger() time.Duration {
	t = t.withDefaults()
	return maxScore*t.ProbeInterval + t.ProbeTimeout
}

// lost is how long a request or an answer can be under way at the most: a stream ends after Stream at either end, and
// what was in it then is lost.
func (t Timings) lost() time.Duration { return 2 * t.Stream }

func (b Bounds) withDefaults() Bounds {
	setDefault(&b.OutboxMessages, 8192)
	setDefault(&b.OutboxBytes, 32*mib)
	setDefault(&b.PackMessages, 512)
	setDefault(&b.PackBytes, mib/4)
	setDefault(&b.MessageBytes, 4*mib)
	setDefault(&b.Handled, 16384)
	setDefault(&b.Members, 1024)
	return b
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check reports all faults of a config whose defaults are filled in.
func (c Config) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("gossip: "+format, args...)) }

	if err := CheckName(c.Self.Name); err != nil {
		faults = append(faults, err)
	}
	if _, err := parseAddress(c.Self.Address); err != nil {
		faults = append(faults, err)
	}
	if err := checkMeta(c.Self); err != nil {
		faults = append(faults, err)
	}
	if c.Network.Listener == nil || c.Network.Packets == nil || c.Network.Dial == nil {
		fault("the network needs a listener, packets and a dial function")
	}
	if c.Handler == nil {
		fault("a handler is required")
	}
	switch len(c.Key) {
	case 0, 16, 24, 32:
	default:
		fault("a key of %d bytes, want 16, 24 or 32", len(c.Key))
	}
	for _, d := range c.Timings.named() {
		if d.value <= 0 {
			fault("%s is %v, want more than 0", d.name, d.value)
		}
	}
	if c.Timings.SuspicionMult < 1 {
		fault("suspicion mult is %d, at least 1", c.Timings.SuspicionMult)
	}
	for _, n := range c.Bounds.named() {
		if n.value < 1 {
			fault("%s is %d, at least 1", n.name, n.value)
		}
	}
	if c.Bounds.MessageBytes > 16*mib {
		fault("message bytes is %d, at most %d", c.Bounds.MessageBytes, 16*mib)
	}
	if c.Bounds.PackBytes > 16*mib {
		fault("pack bytes is %d, at most %d", c.Bounds.PackBytes, 16*mib)
	}
	return errors.Join(faults...)
}

type named[T any] struct {
	name  string
	value T
}

func (t Timings) named() []named[time.Duration] {
	return []named[time.Duration]{
		{"probe interval", t.ProbeInterval}, {"probe timeout", t.ProbeTimeout}, {"gossip interval", t.GossipInterval},
		{"push/pull", t.PushPull}, {"dead memory", t.DeadMemory}, {"rejoin", t.Rejoin}, {"forget", t.Forget},
		{"name probe", t.NameProbe}, {"check", t.Check}, {"dial", t.Dial}, {"stream", t.Stream}, {"broadcast", t.Broadcast},
	}
}

func (b Bounds) named() []named[int] {
	return []named[int]{
		{"outbox messages", b.OutboxMessages}, {"outbox bytes", b.OutboxBytes}, {"pack messages", b.PackMessages},
		{"pack bytes", b.PackBytes}, {"message bytes", b.MessageBytes}, {"handled", b.Handled}, {"members", b.Members},
	}
}

// maxName keeps a life's name, which heads every packet and pack, small.
const maxName = 128

// CheckName returns why a node cannot have a name, or nil: it must not be empty,
// of more than 128 bytes, or hold a space, a control character, '@', '#' or '/'.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("gossip: a node needs a name")
	case len(name) > maxName:
		return fmt.Errorf("gossip: a name of %d bytes, at most %d", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '@' || r == '#' || r == '/' || r == 0x7f }):
		return fmt.Errorf("gossip: name %q contains a space, a control character, '@', '#' or '/'", name)
	}
	return nil
}

func parseAddress(address string) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return ap, fmt.Errorf("gossip: address %q, want ip:port", address)
	case ap.Addr().IsUnspecified() || ap.Port() == 0 || ap.Addr().Zone() != "":
		return ap, fmt.Errorf("gossip: address %q is none that others can dial", address)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}

// life names one run of a node, to memberlist and in every pack: name@address#start.
func life(name string, address netip.AddrPort, start uint64) string {
	return name + "@" + address.String() + "#" + strconv.FormatUint(start, 36)
}

// parseLife is the strict inverse of life.
func parseLife(s string) (name string, address netip.AddrPort, err error) {
	rest, start, ok := cutLast(s, '#')
	if !ok {
		return "", address, fmt.Errorf("%w: %q names no life", errMalformed, s)
	}
	name, addr, ok := cutLast(rest, '@')
	if !ok {
		return "", address, fmt.Errorf("%w: %q names no address", errMalformed, s)
	}
	if err := CheckName(name); err != nil {
		return "", address, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if address, err = parseAddress(addr); err != nil {
		return "", address, fmt.Errorf("%w: %w", errMalformed, err)
	}
	n, err := strconv.ParseUint(start, 36, 64)
	if err != nil || life(name, address, n) != s {
		return "", address, fmt.Errorf("%w: %q is no life as it would be written", errMalformed, s)
	}
	return name, address, nil
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
