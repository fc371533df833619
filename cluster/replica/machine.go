package replica

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/wlmsim/wlmsim/cluster"
)

// machine is raft's state machine. raft calls Apply, Restore and Snapshot from
// one goroutine at a time.
type machine struct {
	deliver func(*cluster.State, uint64) error
	applied func(index uint64)     // after each entry, for compaction
	changed func()                 // the configuration changed
	stop    func(error)            // asks for the replica's end; does not block
	failure atomic.Pointer[error]  // set once; from then on nothing is applied
	current atomic.Pointer[placed] // what was applied last
	ending  func() bool            // the replica is being shut down
}

// placed is a state and the index of the last entry that went into it.
type placed struct {
	state *cluster.State
	index uint64
}

func newMachine(deliver func(*cluster.State, uint64) error) *machine {
	m := &machine{deliver: deliver}
	m.current.Store(&placed{state: cluster.Empty()})
	return m
}

// refusal is Apply's answer for a command that the state does not allow.
type refusal struct{ reason error }

// Apply implements [raft.FSM]. It returns the *cluster.State that the entry
// made, a refusal, or the error that stops the machine.
func (m *machine) Apply(entry *raft.Log) any {
	if err := m.stopped(); err != nil {
		return err
	}
	command, err := cluster.DecodeCommand(entry.Data)
	if err != nil {
		return m.fail(fmt.Errorf("log entry %d of term %d: %w", entry.Index, entry.Term, err))
	}
	was := m.current.Load().state
	next, refused := cluster.Apply(was, command)
	if refused != nil {
		m.current.Store(&placed{was, entry.Index})
		m.applied(entry.Index)
		return refusal{refused}
	}
	if err := m.hand(next, entry.Index); err != nil {
		return err
	}
	m.applied(entry.Index)
	return next
}

// hand makes next the machine's state and delivers it.
func (m *machine) hand(next *cluster.State, index uint64) error {
	m.current.Store(&placed{next, index})
	if err := m.deliver(next, index); err != nil {
		return m.fail(fmt.Errorf("version %d of log entry %d was not taken: %w", next.Version(), index, err))
	}
	return nil
}

func (m *machine) stopped() error {
	if err := m.failure.Load(); err != nil {
		return *err
	}
	if m.ending() {
		return ErrClosed
	}
	return nil
}

func (m *machine) fail(err error) error {
	m.failure.Store(&err)
	m.stop(err)
	return err
}

// StoreConfiguration implements [raft.ConfigurationStore]. raft keeps the
// configuration itself; having this method makes raft count configuration
// entries as applied, so that a snapshot can be taken right after one.
func (m *machine) StoreConfiguration(uint64, raft.Configuration) { m.changed() }

// Snapshot implements [raft.FSM]. States are immutable: the pointer is enough.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.stopped(); err != nil {
		return nil, err
	}
	return snapshot{m.current.Load().state}, nil
}

// Restore implements [raft.FSM]: the snapshot's state takes the place of the
// machine's.
func (m *machine) Restore(from io.ReadCloser) error {
	if err := m.stopped(); err != nil {
		return err
	}
	state, err := cluster.DecodeState(from)
	index := indexOf(from)
	if err != nil {
		return m.fail(fmt.Errorf("snapshot of log entry %d: %w", index, err))
	}
	return m.hand(state, index)
}

// indexOf finds the index of a snapshot under raft's wrapper.
func indexOf(r io.ReadCloser) uint64 {
	if w, ok := r.(raft.ReadCloserWrapper); ok {
		r = w.WrappedReadCloser()
	}
	if s, ok := r.(*openSnapshot); ok {
		return s.index
	}
	return 0
}

type snapshot struct{ state *cluster.State }

// Persist implements [raft.FSMSnapshot].
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := cluster.EncodeState(sink, s.state); err != nil {
		return err // raft cancels the sink
	}
	return sink.Close()
}

// Release implements [raft.FSMSnapshot].
func (snapshot) Release() {}
