package replica

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// How the bound of promise 6 comes about: a snapshot is due when half of the
// threshold's entries have come since the last one. A leader takes it before
// it hands raft another command; what is in raft's hands by then is at most a
// quarter of the threshold in commands, so half of it in entries, with their
// barriers. A follower takes it beside the entries that come in.

// grown looks at the length of the log after each entry.
func (r *Replica) grown(uint64) {
	if r.due() {
		r.compact.raise()
	}
}

// due says whether a snapshot is.
func (r *Replica) due() bool {
	index := r.machine.current.Load().index
	return index-min(index, r.compacted.Load()) >= max(1, r.cfg.Timings.SnapshotThreshold/2)
}

// compactLog takes snapshots on the replicas that do not propose.
func (r *Replica) compactLog() {
	for r.next(r.compact) {
		r.compactIfDue()
	}
}

// compactIfDue takes a snapshot if one is due, or waits for the one that is
// being taken. After one that failed the log grows by some entries before the
// next try, so that a full disk is not asked at each.
func (r *Replica) compactIfDue() {
	r.exclusively(func() {
		index := r.machine.current.Load().index
		if index < r.retry || !r.due() {
			return
		}
		if err := r.takeSnapshot(); err != nil && !r.closing() {
			r.retry = index + r.cfg.Timings.SnapshotThreshold/8 + 1
			r.cfg.Log.Warn("no snapshot could be taken", "index", index, "error", err, "next", r.retry)
		}
	})
}

// exclusively runs f while no other snapshot is taken, unless the replica
// closes first.
func (r *Replica) exclusively(f func()) {
	select {
	case r.compacting <- struct{}{}:
		defer func() { <-r.compacting }()
		f()
	case <-r.done:
	}
}

// takeSnapshot returns when the snapshot exists and the log is compacted.
func (r *Replica) takeSnapshot() error {
	err := r.session.chained(r.raft.Snapshot().Error())
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		err = nil
	}
	if err == nil {
		r.compacted.Store(r.session.snapped.Load())
	}
	return err
}

// Snapshot takes a snapshot now and compacts the log. That nothing is new is
// no error.
func (r *Replica) Snapshot(ctx context.Context) error {
	return r.await(ctx, func() error {
		err := ErrClosed
		r.exclusively(func() { err = r.takeSnapshot() })
		return err
	})
}
