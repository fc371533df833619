package replica

import (
	"fmt"
	"os"
	"sync"

	"github.com/hashicorp/raft"
)

// OpKind says what a store is about to do.
type OpKind string

// The operations that a fault function is asked about.
const (
	OpStoreLogs      OpKind = "store logs"      // append the entries First to Last
	OpDeleteLogs     OpKind = "delete logs"     // remove the entries First to Last: compaction
	OpSetStable      OpKind = "set stable"      // write Key: the term or the vote
	OpSnapshotCreate OpKind = "snapshot create" // begin a snapshot of the entries to Last
	OpSnapshotWrite  OpKind = "snapshot write"
	OpSnapshotClose  OpKind = "snapshot close" // until it is closed a snapshot does not exist
	OpRead           OpKind = "read"           // read the entry First, or (Key "snapshot") the snapshot to Last
)

// Op is one operation of a store. Fields that do not apply are zero.
type Op struct {
	Kind        OpKind
	First, Last uint64 // log indices
	Key         string
}

// String names the operation and what it is about.
func (o Op) String() string {
	switch {
	case o.Key != "" && o.Last != 0:
		return fmt.Sprintf("%s %s to entry %d", o.Kind, o.Key, o.Last)
	case o.Key != "":
		return fmt.Sprintf("%s %s", o.Kind, o.Key)
	case o.First != 0 && o.First != o.Last:
		return fmt.Sprintf("%s, entries %d to %d", o.Kind, o.First, o.Last)
	case o.Last != 0:
		return fmt.Sprintf("%s, entry %d", o.Kind, o.Last)
	}
	return string(o.Kind)
}

// Store keeps the log, the vote and the snapshots of one node. It is made by
// [Memory] or [Bolt], serves one replica at a time, and outlives it. All
// methods may be called from any goroutine.
type Store struct {
	dir string // "" for memory

	mu      sync.Mutex
	memory  *memory
	fault   func(Op) error
	session *session // of the replica that has the store
}

// Memory returns an empty store that lives in memory for as long as it is
// referred to.
func Memory() *Store { return &Store{memory: newMemory()} }

// Bolt returns a store of files in dir, which is made when it is first opened:
// a Bolt file for the log and the vote, and a folder of snapshots.
func Bolt(dir string) *Store { return &Store{dir: dir} }

// SetFault makes f decide the fate of each operation from now on: its error
// takes the place of the disk's, before anything is written. Nil removes it. f
// is called without a lock and may block; that holds the node up as a slow
// disk would.
func (s *Store) SetFault(f func(Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Freeze is a crash: when it returns, nothing that the replica writes from now
// on is stored; what was stored stays for the next replica that is opened on
// the store. Without a replica it does nothing.
func (s *Store) Freeze() {
	s.mu.Lock()
	open := s.session
	s.mu.Unlock()
	if open != nil {
		open.freeze()
	}
}

// Lost makes the store empty, as a disk that was replaced. It returns
// [ErrInUse] while a replica has the store.
func (s *Store) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return ErrInUse
	}
	if s.dir == "" {
		s.memory = newMemory()
		return nil
	}
	for _, path := range boltPaths(s.dir) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("lose the store: %w", err)
		}
	}
	return nil
}

// ask returns what the fault function says of an operation.
func (s *Store) ask(op Op) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op)
}

// backend is where a session reads and writes.
type backend interface {
	raft.LogStore
	raft.StableStore
	snapshots() raft.SnapshotStore
	close() error
}

// open begins a session. The caller ends it with release.
func (s *Store) open(c Config) (*session, error) {
	o := &session{store: s, closing: make(chan struct{}), log: c.Log}
	s.mu.Lock()
	if s.session != nil {
		s.mu.Unlock()
		return nil, ErrInUse
	}
	s.session, o.backend = o, s.memory
	s.mu.Unlock()
	if s.dir != "" {
		files, err := openBolt(s.dir, c.Log)
		if err != nil {
			s.forget()
			return nil, fmt.Errorf("open the store in %s: %w", s.dir, err)
		}
		o.backend = files
	}
	if err := o.load(); err != nil {
		return nil, fmt.Errorf("read the store: %w", firstError(err, o.release()))
	}
	return o, nil
}

func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
