package replica

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// errNotFound has the text by which raft knows a key that was never set.
var errNotFound = errors.New("not found")

// retained is how many snapshots a store keeps.
const retained = 2

// memory is a backend in memory. Unlike raft's own it keeps values, not
// pointers into raft, and shows a snapshot only once it is closed.
type memory struct {
	mu    sync.Mutex
	logs  []raft.Log // by index; there may be gaps
	keys  map[string][]byte
	taken []*memorySnapshot // newest first
}

type memorySnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

func newMemory() *memory { return &memory{keys: map[string][]byte{}} }

func (m *memory) snapshots() raft.SnapshotStore { return m }
func (m *memory) close() error                  { return nil }

func (m *memory) find(index uint64) (int, bool) {
	return slices.BinarySearchFunc(m.logs, index, func(l raft.Log, i uint64) int { return cmp.Compare(l.Index, i) })
}

// FirstIndex implements [raft.LogStore].
func (m *memory) FirstIndex() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.logs) == 0 {
		return 0, nil
	}
	return m.logs[0].Index, nil
}

// LastIndex implements [raft.LogStore].
func (m *memory) LastIndex() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.logs) == 0 {
		return 0, nil
	}
	return m.logs[len(m.logs)-1].Index, nil
}

// GetLog implements [raft.LogStore].
func (m *memory) GetLog(index uint64, entry *raft.Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, there := m.find(index)
	if !there {
		return raft.ErrLogNotFound
	}
	*entry = m.logs[i]
	return nil
}

// StoreLog implements [raft.LogStore].
func (m *memory) StoreLog(entry *raft.Log) error { return m.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements [raft.LogStore].
func (m *memory) StoreLogs(entries []*raft.Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, entry := range entries {
		i, there := m.find(entry.Index)
		if there {
			m.logs[i] = *entry
		} else {
			m.logs = slices.Insert(m.logs, i, *entry)
		}
	}
	return nil
}

// DeleteRange implements [raft.LogStore].
func (m *memory) DeleteRange(from, to uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := m.find(from)
	j, _ := m.find(to + 1)
	m.logs = slices.Clone(slices.Delete(m.logs, i, j)) // a clone, so that memory follows what is kept
	return nil
}

// Set implements [raft.StableStore].
func (m *memory) Set(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[string(key)] = bytes.Clone(value)
	return nil
}

// Get implements [raft.StableStore].
func (m *memory) Get(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, there := m.keys[string(key)]
	if !there {
		return nil, errNotFound
	}
	return bytes.Clone(value), nil
}

// SetUint64 implements [raft.StableStore].
func (m *memory) SetUint64(key []byte, value uint64) error {
	return m.Set(key, fmt.Append(nil, value))
}

// GetUint64 implements [raft.StableStore].
func (m *memory) GetUint64(key []byte) (value uint64, err error) {
	text, err := m.Get(key)
	if err == nil {
		_, err = fmt.Sscan(string(text), &value)
	}
	return value, err
}

// Create implements [raft.SnapshotStore].
func (m *memory) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &memorySink{into: m, snapshot: &memorySnapshot{meta: raft.SnapshotMeta{
		Version: v, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: c.Clone(), ConfigurationIndex: ci,
	}}}, nil
}

// List implements [raft.SnapshotStore].
func (m *memory) List() ([]*raft.SnapshotMeta, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*raft.SnapshotMeta, len(m.taken))
	for i, s := range m.taken {
		meta := s.meta
		list[i] = &meta
	}
	return list, nil
}

// Open implements [raft.SnapshotStore].
func (m *memory) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.taken {
		if s.meta.ID == id {
			meta := s.meta
			return &meta, io.NopCloser(bytes.NewReader(s.data)), nil
		}
	}
	return nil, nil, fmt.Errorf("no snapshot %s", id)
}

// add puts a finished snapshot in its place and drops the oldest.
func (m *memory) add(s *memorySnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := slices.DeleteFunc(m.taken, func(o *memorySnapshot) bool { return o.meta.ID == s.meta.ID })
	kept = append(kept, s)
	slices.SortFunc(kept, func(a, b *memorySnapshot) int {
		return cmp.Or(cmp.Compare(b.meta.Term, a.meta.Term), cmp.Compare(b.meta.Index, a.meta.Index))
	})
	m.taken = kept[:min(len(kept), retained)]
}

type memorySink struct {
	into     *memory
	snapshot *memorySnapshot
}

func (k *memorySink) Write(p []byte) (int, error) {
	k.snapshot.data = append(k.snapshot.data, p...)
	return len(p), nil
}

func (k *memorySink) Close() error {
	k.snapshot.meta.Size = int64(len(k.snapshot.data))
	k.into.add(k.snapshot)
	return nil
}

func (k *memorySink) ID() string    { return k.snapshot.meta.ID }
func (k *memorySink) Cancel() error { return nil }
