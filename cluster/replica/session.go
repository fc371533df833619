package replica

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// session is a store as one raft sees it: the log, the stable store and, by
// snapshots, the snapshots, each behind the fault function.
//
// raft cannot live with the failure of two operations and panics in a
// goroutine of its own: writing the term, and reading an entry that it must
// apply. A term is written again and again until it succeeds. An entry that
// cannot be read stops the replica. When the replica is closing both are
// answered with a harmless lie, so that raft's goroutines end: by then all
// connections are cut and all writes refused, so nothing of it can leave.
type session struct {
	backend
	store *Store
	log   *slog.Logger
	fatal func(error) // set before raft starts
	moved func()      // the term changed; set before raft starts

	serving atomic.Bool   // raft runs; before, failures are Open's
	closing chan struct{} // closed by end
	endOnce sync.Once

	mu     sync.RWMutex // read-held while writing
	frozen bool

	term     atomic.Uint64 // as stored
	snapped  atomic.Uint64 // index of the newest snapshot
	unfit    atomic.Bool   // the last append to the log failed
	truncate atomic.Uint64 // entries from here on are to go with the next append; 0: none

	faults sync.Map // of OpKind, the newest *StoreError; see chained
}

// retryTerm is how long a term that could not be written waits for the next
// try.
const retryTerm = 100 * time.Millisecond

var keyTerm = []byte("CurrentTerm") // raft's

// load reads what the session has to know of the backend.
func (s *session) load() error {
	term, err := s.backend.GetUint64(keyTerm)
	if err != nil && err.Error() != errNotFound.Error() {
		return err
	}
	s.term.Store(term)
	list, err := s.backend.snapshots().List()
	if err != nil {
		return err
	}
	if len(list) > 0 {
		s.snapped.Store(list[0].Index)
	}
	return nil
}

// end refuses all writes from now on, and lets go whoever waits for one.
func (s *session) end() { s.endOnce.Do(func() { close(s.closing) }) }

func (s *session) ended() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// release gives the store back. raft must not run any more.
func (s *session) release() error {
	s.end()
	err := s.backend.close()
	s.store.forget()
	return err
}

func (s *session) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

func (s *session) crashed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.frozen
}

// write does one operation, unless the fault function, a crash or the end of
// the session forbids it.
func (s *session) write(op Op, do func() error) error {
	if s.ended() {
		return ErrClosed
	}
	if err := s.store.ask(op); err != nil {
		return s.failed(op, err, false)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.frozen {
		return s.failed(op, ErrFrozen, false)
	}
	if s.ended() {
		return ErrClosed
	}
	if err := do(); err != nil {
		return s.failed(op, err, true)
	}
	return nil
}

func (s *session) failed(op Op, err error, begun bool) error {
	f := &StoreError{Op: op, Err: err, Begun: begun}
	s.faults.Store(op.Kind, f)
	return f
}

// chained puts the store's error back into the chain of an error of raft,
// which often copies the text alone.
func (s *session) chained(err error) error {
	if err == nil {
		return nil
	}
	s.faults.Range(func(_, newest any) bool {
		f := newest.(*StoreError)
		if !errors.Is(err, f) && strings.Contains(err.Error(), f.Error()) {
			err = &retold{err.Error(), f}
		}
		return true
	})
	return err
}

// retold is an error that raft wrapped by its text.
type retold struct {
	text  string
	cause *StoreError
}

func (e *retold) Error() string { return e.text }
func (e *retold) Unwrap() error { return e.cause }

// StoreLog implements [raft.LogStore].
func (s *session) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements [raft.LogStore]: all entries or none.
func (s *session) StoreLogs(entries []*raft.Log) error {
	op := Op{Kind: OpStoreLogs, First: entries[0].Index, Last: entries[len(entries)-1].Index}
	err := s.write(op, func() error {
		from := s.truncate.Load()
		if from == 0 {
			return s.backend.StoreLogs(entries)
		}
		last, err := s.backend.LastIndex()
		if err == nil {
			err = s.backend.DeleteRange(from, last)
		}
		if err != nil {
			return err
		}
		s.truncate.Store(0)
		if err := s.backend.StoreLogs(entries); err != nil {
			// raft goes on to believe that the old tail is there.
			s.fatal(&StoreError{Op: op, Err: err, Begun: true})
			return err
		}
		return nil
	})
	s.unfit.Store(err != nil && !s.ended())
	return err
}

// DeleteRange implements [raft.LogStore]. raft removes a tail only to append
// other entries next, and is confused for good if it got only half of that:
// so the tail goes with the append.
func (s *session) DeleteRange(from, to uint64) error {
	last, err := s.backend.LastIndex()
	if err != nil {
		return err
	}
	if to >= last {
		s.truncate.Store(from)
		return nil
	}
	return s.write(Op{Kind: OpDeleteLogs, First: from, Last: to}, func() error {
		return s.backend.DeleteRange(from, to)
	})
}

// GetLog implements [raft.LogStore].
func (s *session) GetLog(index uint64, entry *raft.Log) error {
	op := Op{Kind: OpRead, First: index, Last: index}
	err := s.store.ask(op)
	if err == nil {
		err = s.backend.GetLog(index, entry)
	}
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		err = s.failed(op, err, true)
	}
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || !s.serving.Load() {
		return err
	}
	s.fatal(err)
	<-s.closing
	*entry = raft.Log{Index: index, Type: raft.LogNoop}
	return nil
}

// Set implements [raft.StableStore].
func (s *session) Set(key, value []byte) error {
	return s.write(Op{Kind: OpSetStable, Key: string(key)}, func() error { return s.backend.Set(key, value) })
}

// SetUint64 implements [raft.StableStore].
func (s *session) SetUint64(key []byte, value uint64) error {
	if string(key) == string(keyTerm) {
		return s.setTerm(value)
	}
	return s.write(Op{Kind: OpSetStable, Key: string(key)}, func() error { return s.backend.SetUint64(key, value) })
}

// setTerm writes the term, however long that takes. It saves the write that
// raft asks for at each start.
func (s *session) setTerm(term uint64) error {
	if term == s.term.Load() {
		return nil
	}
	for told := false; ; told = true {
		err := s.write(Op{Kind: OpSetStable, Key: string(keyTerm)}, func() error {
			return s.backend.SetUint64(keyTerm, term)
		})
		if err == nil {
			s.term.Store(term)
			s.moved()
			return nil
		}
		if !s.serving.Load() {
			return err
		}
		if !told && !s.ended() {
			s.log.Warn("the term cannot be stored, the node takes no part until it can", "term", term, "error", err)
		}
		if !s.pause(errors.Is(err, ErrFrozen)) {
			return nil // closing: see session
		}
	}
}

// pause waits before the next try; a frozen store needs none. It returns false
// when the session ends.
func (s *session) pause(forGood bool) bool {
	if forGood {
		<-s.closing
		return false
	}
	timer := time.NewTimer(retryTerm)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
		return false
	}
}

// lastEntry returns index and term of the last entry, or of the newest snapshot if
// that is later.
func (s *session) lastEntry() (index, term uint64, err error) {
	list, err := s.backend.snapshots().List()
	if err != nil {
		return 0, 0, err
	}
	if len(list) > 0 {
		index, term = list[0].Index, list[0].Term
	}
	last, err := s.backend.LastIndex()
	if err != nil || last <= index {
		return index, term, err
	}
	var entry raft.Log
	if err := s.backend.GetLog(last, &entry); err != nil {
		return 0, 0, err
	}
	return last, entry.Term, nil
}

// faultySnapshots are a session's snapshots behind the fault function.
type faultySnapshots struct{ *session }

// Create implements [raft.SnapshotStore].
func (s faultySnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	var sink raft.SnapshotSink
	err := s.write(Op{Kind: OpSnapshotCreate, Last: index}, func() (err error) {
		sink, err = s.backend.snapshots().Create(v, index, term, c, ci, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultySink{SnapshotSink: sink, of: s.session, index: index}, nil
}

// List implements [raft.SnapshotStore].
func (s faultySnapshots) List() ([]*raft.SnapshotMeta, error) { return s.backend.snapshots().List() }

// Open implements [raft.SnapshotStore].
func (s faultySnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, from, err := s.backend.snapshots().Open(id)
	if err != nil {
		return nil, nil, err
	}
	op := Op{Kind: OpRead, Last: meta.Index, Key: "snapshot"}
	if err := s.store.ask(op); err != nil {
		return nil, nil, firstError(s.failed(op, err, false), from.Close())
	}
	return meta, &openSnapshot{from, meta.Index}, nil
}

// openSnapshot is a snapshot that is being read.
type openSnapshot struct {
	io.ReadCloser
	index uint64
}

// faultySink is a snapshot that is being written.
type faultySink struct {
	raft.SnapshotSink
	of     *session
	index  uint64
	closed bool
}

func (k *faultySink) Write(p []byte) (n int, err error) {
	err = k.of.write(Op{Kind: OpSnapshotWrite, Last: k.index}, func() (err error) {
		n, err = k.SnapshotSink.Write(p)
		return err
	})
	return n, err
}

// Close makes the snapshot exist, or leaves nothing of it. raft calls it again
// after Persist.
func (k *faultySink) Close() error {
	if k.closed {
		return nil
	}
	err := k.of.write(Op{Kind: OpSnapshotClose, Last: k.index}, k.SnapshotSink.Close)
	if err != nil {
		return firstError(err, k.Cancel())
	}
	k.closed = true
	k.of.snapped.Store(max(k.index, k.of.snapped.Load()))
	return nil
}

// Cancel leaves nothing of the snapshot.
func (k *faultySink) Cancel() error {
	if k.closed {
		return nil
	}
	k.closed = true
	return k.SnapshotSink.Cancel()
}
