package replica

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
)

// ProposeRaw puts any bytes into the log, as a program of another version
// would.
func (r *Replica) ProposeRaw(data []byte) error {
	_, err := r.apply(data)
	return err
}

// EditSnapshots changes the snapshots of a memory store.
func (s *Store) EditSnapshots(edit func([]byte) []byte) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	for _, snapshot := range s.memory.taken {
		snapshot.data = edit(bytes.Clone(snapshot.data))
		snapshot.meta.Size = int64(len(snapshot.data))
	}
}

// Kept returns how many entries the log holds, and the index of the newest
// snapshot. A replica must have the store.
func (s *Store) Kept(t testing.TB) (entries int, snapshot uint64) {
	first, err := s.session.FirstIndex()
	require.NoError(t, err)
	last, err := s.session.LastIndex()
	require.NoError(t, err)
	if last < first {
		return 0, s.session.snapped.Load()
	}
	return int(last - first + 1), s.session.snapped.Load()
}

// Machine is raft's state machine alone.
type Machine struct{ m *machine }

// NewMachine returns a state machine that delivers to deliver.
func NewMachine(deliver func(*cluster.State, uint64) error) *Machine {
	m := newMachine(deliver)
	m.applied, m.changed, m.stop = func(uint64) {}, func() {}, func(error) {}
	m.ending = func() bool { return false }
	return &Machine{m}
}

// Apply returns the state that an entry made, or the error.
func (m *Machine) Apply(index uint64, data []byte) (*cluster.State, error) {
	switch made := m.m.Apply(&raft.Log{Index: index, Data: data}).(type) {
	case *cluster.State:
		return made, nil
	case refusal:
		return nil, made.reason
	default:
		return nil, made.(error)
	}
}

// Restore loads a snapshot.
func (m *Machine) Restore(data []byte) error { return m.m.Restore(io.NopCloser(bytes.NewReader(data))) }

// State returns the machine's state.
func (m *Machine) State() *cluster.State { return m.m.current.Load().state }
