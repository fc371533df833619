package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Server is one member of the cluster's configuration.
type Server struct {
	Name, Address string
	Voter         bool
}

// Config is what [Open] needs.
type Config struct {
	Name    string // of the node; its identity in raft
	Address string // under which the others dial this node

	// Listener takes the others' connections. Open takes it over and closes it,
	// also when it returns an error.
	Listener net.Listener
	// Dial opens a connection to an address. It must end when ctx does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Resolve returns where a server is now, if the caller knows better than
	// the configuration; it must not block. Nil: the configuration's address.
	Resolve func(name string) (address string, known bool)

	Store *Store // Memory() or Bolt(dir)

	// Bootstrap is the configuration of a new cluster, the same on every voter
	// of it. It is ignored if the store has a state. If both are empty the
	// replica waits until a leader adds it.
	Bootstrap []Server

	Timings Timings

	// Deliver takes each new state and the log index that made it. It is called
	// from one goroutine at a time (from Open itself for a snapshot that is
	// there at the start) and must return at once. An error stops the replica.
	Deliver func(s *cluster.State, index uint64) error
	// OnChange is told that the leader, the term or the configuration may have
	// changed. It must not call Close. Nil: nobody is told.
	OnChange func()
	// OnStop is told, at most once, why the replica stopped by itself; it is
	// then shut down, and Close only confirms it. It must not call Close
	// (another goroutine may). Nil: the log alone tells.
	OnStop func(error)

	Log   *slog.Logger // nil: no logs
	Probe *probe.Probe
}

// Timings are the delays and bounds of raft. Zero fields take the defaults,
// which are raft's own but for Commit.
type Timings struct {
	Heartbeat time.Duration // without a leader's word before a voter asks for votes; 1 s, at least 5 ms
	Election  time.Duration // for an election before it is tried again; 1 s, at least Heartbeat
	Lease     time.Duration // without a majority's word before a leader steps down; 500 ms, at most Heartbeat
	// Commit is how long an idle leader waits before it repeats to a follower
	// what is committed; 500 ms. It does not delay changes, since each is
	// followed by a barrier; a low value costs idle clusters time.
	Commit  time.Duration
	Request time.Duration // for one message and its answer, a dial included; 10 s

	SnapshotInterval  time.Duration // between two looks at the threshold, beside the look at each change; 120 s
	SnapshotThreshold uint64        // entries since the last snapshot; see promise 6; 8192
	TrailingLogs      uint64        // entries kept after a snapshot, so that a follower that lags a little needs none; 10240
}

func (t Timings) filled() Timings {
	fill(&t.Heartbeat, time.Second)
	fill(&t.Election, time.Second)
	fill(&t.Lease, 500*time.Millisecond)
	fill(&t.Commit, 500*time.Millisecond)
	fill(&t.Request, 10*time.Second)
	fill(&t.SnapshotInterval, 120*time.Second)
	fill(&t.SnapshotThreshold, 8192)
	fill(&t.TrailingLogs, 10240)
	return t
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) filled() Config {
	c.Timings = c.Timings.filled()
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.OnStop == nil {
		c.OnStop = func(error) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// check reports every fault of a filled config at once.
func (c Config) check() error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(c.Name != "", "name is empty")
	want(c.Address != "", "address is empty")
	want(c.Listener != nil, "listener is missing")
	want(c.Dial != nil, "dial is missing")
	want(c.Store != nil, "store is missing")
	want(c.Deliver != nil, "deliver is missing")
	faults = append(faults, c.Timings.faults()...)
	faults = append(faults, bootstrapFaults(c.Bootstrap)...)
	if len(faults) > 0 {
		return fmt.Errorf("replica config: %w", errors.Join(faults...))
	}
	return nil
}

func (t Timings) faults() []error {
	const least = 5 * time.Millisecond // raft refuses less
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(t.Heartbeat >= least, "heartbeat %v is below %v", t.Heartbeat, least)
	want(t.Election >= t.Heartbeat, "election %v is below the heartbeat, %v", t.Election, t.Heartbeat)
	want(t.Lease >= least, "lease %v is below %v", t.Lease, least)
	want(t.Lease <= t.Heartbeat, "lease %v is above the heartbeat, %v", t.Lease, t.Heartbeat)
	want(t.Commit >= time.Millisecond, "commit %v is below %v", t.Commit, time.Millisecond)
	want(t.Request > 0, "request %v is not positive", t.Request)
	want(t.SnapshotInterval >= least, "snapshot interval %v is below %v", t.SnapshotInterval, least)
	return faults
}

func bootstrapFaults(servers []Server) []error {
	var faults []error
	names, addresses, voters := map[string]bool{}, map[string]bool{}, 0
	for _, s := range servers {
		if s.Name == "" || s.Address == "" {
			faults = append(faults, fmt.Errorf("bootstrap server %q at %q lacks a name or an address", s.Name, s.Address))
		}
		if names[s.Name] || addresses[s.Address] {
			faults = append(faults, fmt.Errorf("bootstrap server %s at %s is named twice", s.Name, s.Address))
		}
		names[s.Name], addresses[s.Address] = true, true
		if s.Voter {
			voters++
		}
	}
	if len(servers) > 0 && voters == 0 {
		faults = append(faults, fmt.Errorf("bootstrap has %d servers but no voter", len(servers)))
	}
	return faults
}
