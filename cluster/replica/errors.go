package replica

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call on a replica that was closed or has
// stopped. A command that got it was not handed to raft, or its entry was
// surely not stored.
var ErrClosed = errors.New("the replica is closed")

// ErrOutcomeUnknown is in the chain of the error of a command that raft had
// taken when the leadership was lost, the caller gave up or the store failed
// half way: it may have been committed or may be yet.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// ErrFrozen is what a store answers to every write after [Store.Freeze].
var ErrFrozen = errors.New("the store is frozen")

// ErrInUse is returned by [Open] and [Store.Lost] while a replica has the store.
var ErrInUse = errors.New("the store is in use by a replica")

// NotLeaderError says that a call needs the leader, which this replica is not.
// Nothing was changed.
type NotLeaderError struct {
	Name, Address string // of the leader, "" when none is known
}

// Error names the leader.
func (e *NotLeaderError) Error() string {
	if e.Name == "" {
		return "not the leader, and no leader is known"
	}
	return fmt.Sprintf("not the leader, which is %s at %s", e.Name, e.Address)
}

// StoreError is a failure of the store, from its fault function or from the
// disk.
type StoreError struct {
	Op  Op
	Err error
	// Begun is false if the operation was refused before anything was written,
	// and true if the disk failed it, so that it may have been done.
	Begun bool
}

// Error names the operation and the cause.
func (e *StoreError) Error() string { return fmt.Sprintf("%v: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }
