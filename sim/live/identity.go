package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	Peers  []string       `json:"peers,omitempty"` // gossip addresses of the members last seen
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
