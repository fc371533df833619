package campaign

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wlmsim/wlmsim/sim/explore"
)

// Files of notes.
const (
	flightFile = "flight.json" // an [explore.Flight]
	boxFile    = "box"         // see [explore.Options.Box]
)

// note returns an [explore.Options.Box] that notes in a folder. What it gives
// stays mapped for as long as the process lives.
func note(folder string) (func(explore.Flight) []byte, error) {
	box, err := mapped(filepath.Join(folder, boxFile), explore.BoxSize)
	if err != nil {
		return nil, err
	}
	return func(f explore.Flight) []byte {
		text, err := json.Marshal(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, flightFile), text, 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "wlmsim: what is explored cannot be noted:", err)
		}
		return box
	}, nil
}

// mapped opens a file, which is made if it is not there, and returns it as
// memory, which outlives the process.
func mapped(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// notes are what a worker notes of its explorations, for its parent.
type notes struct {
	folder string
	box    []byte
}

func newNotes() (*notes, error) {
	folder, err := os.MkdirTemp("", "wlmsim-explore-")
	if err != nil {
		return nil, err
	}
	box, err := mapped(filepath.Join(folder, boxFile), explore.BoxSize)
	if err != nil {
		_ = os.RemoveAll(folder) // the other error says more
		return nil, err
	}
	return &notes{folder, box}, nil
}

// reset forgets what was noted. No worker may be exploring.
func (n *notes) reset() {
	clear(n.box)
	_ = os.Remove(filepath.Join(n.folder, flightFile)) // it may not be there
}

// begun returns how many executions were begun, and how many turns of the one
// under way were taken. It may be called at any time from any goroutine.
func (n *notes) begun() (executions uint64, turns uint32) { return explore.Begun(n.box) }

// moved is how far the worker is.
func (n *notes) moved() any {
	executions, turns := n.begun()
	return [2]uint64{executions, uint64(turns)}
}

// result is what came of an exploration whose worker died.
func (n *notes) result(e *Exploration, died *death) *explore.Result {
	f := e.flight()
	if text, err := os.ReadFile(filepath.Join(n.folder, flightFile)); err == nil {
		_ = json.Unmarshal(text, &f) // a flight of which half was written is the one that was asked for
	}
	v, why := died.judged()
	return f.Result(n.box, v, why, died.noise)
}

// remove takes the notes away. Nobody may look at them any more.
func (n *notes) remove() {
	_ = syscall.Munmap(n.box)  // which is our own
	_ = os.RemoveAll(n.folder) // nothing depends on it
}
