package replica

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// boltLock is how long the Bolt file waits for another process to let it go.
const boltLock = time.Second

// boltPaths returns what a Bolt store has in its folder.
func boltPaths(dir string) []string {
	return []string{filepath.Join(dir, "raft.db"), filepath.Join(dir, "snapshots")}
}

// files is a backend of a Bolt file and a folder of snapshots.
type files struct {
	*raftboltdb.BoltStore
	taken *raft.FileSnapshotStore
}

func openBolt(dir string, log *slog.Logger) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	options := *bbolt.DefaultOptions
	options.Timeout = boltLock
	path := boltPaths(dir)[0]
	db, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &options})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s is in use by another process, which has to end first: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	taken, err := raft.NewFileSnapshotStoreWithLogger(dir, retained, &bridge{to: log})
	if err != nil {
		return nil, firstError(err, db.Close())
	}
	return &files{db, taken}, nil
}

func (f *files) snapshots() raft.SnapshotStore { return f.taken }
func (f *files) close() error                  { return f.BoltStore.Close() }
