package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wlmsim/wlmsim/cluster"
)

// identity is what a node's data folder remembers besides raft's files, so
// that the node comes back as itself.
type identity struct {
	Name   string         `json:"name"`
	ID     string         `json:"id"`
	Roles  []cluster.Role `json:"roles"`
	Raft   string         `json:"raft"`            // host:port that was bound
	Gossip string         `json:"gossip"`          // host:port that was bound
	PID    int            `json:"pid,omitempty"`   // process that used the folder last
	Peers  []string       `json:"peers,omitempty"` // gossip addresses of the members last seen
}

// taken explains why a node of the folder cannot listen, if it is where the
// folder's node listened last: then that node most likely still runs.
func (i identity) taken(dir, address string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) || address != i.Raft && address != i.Gossip {
		return err
	}
	return fmt.Errorf("data folder %s is in use, most likely by process %d, which used it last: "+
		"something listens at %s, the address of its node %s; stop that, or choose another folder: %w", dir, i.PID, address, i.Name, err)
}

const identityFile = "node.json"

// loadIdentity reads a folder's identity; the zero value for a new folder.
func loadIdentity(dir string) (identity, error) {
	var i identity
	text, err := os.ReadFile(filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return i, fmt.Errorf("%s: %w", filepath.Join(dir, identityFile), err)
	}
	return i, nil
}

// save writes the identity so that a crash leaves the old or the new one.
func (i identity) save(dir string) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, identityFile+".new")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, identityFile))
}
