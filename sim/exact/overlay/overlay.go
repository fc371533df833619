package overlay

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What the added files hold: one is for package runtime, one for each package
// that orders a map.
var (
	//go:embed runtime.go.txt
	inRuntime string
	//go:embed ordered.go.txt
	ordered string
)

// adds returns the added files by their names under GOROOT/src.
func adds() map[string]string {
	return map[string]string{
		"runtime/wlmsim.go":  inRuntime,
		"context/wlmsim.go":  "package context\n\n" + ordered,
		"net/http/wlmsim.go": "package http\n\n" + ordered,
	}
}

// MissingError says that a source file of the toolchain is not the one that
// the overlay was written for.
type MissingError struct {
	File string // its path
	Text string // what should stand in it
	Want int    // how often
	Got  int
}

// Error names the file and the text.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s: the text %q stands there %d times, the overlay needs it %d times", e.File, e.Text, e.Got, e.Want)
}

// Write reads the sources of the toolchain in goroot, edits them, and writes
// the edited ones and an overlay file for the go command into dir, which it
// makes. It returns the path of the overlay file, which is absolute.
//
// Every text that is not found as expected is a *MissingError of the joined
// error, and then nothing is written.
func Write(goroot, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	texts, err := edited(filepath.Join(goroot, "src"))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range texts {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := store(to, text); err != nil {
			return "", err
		}
		replace[filepath.Join(goroot, "src", filepath.FromSlash(name))] = to
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, store(path, string(list)+"\n")
}

// edited returns the edited and added texts by their names under src.
func edited(src string) (map[string]string, error) {
	texts := adds()
	var faults []error
	for _, s := range sources() {
		path := filepath.Join(src, filepath.FromSlash(s.name))
		text, err := os.ReadFile(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		result, err := apply(path, string(text), s.edits)
		faults = append(faults, err)
		texts[s.name] = result
	}
	return texts, errors.Join(faults...)
}

// apply edits one text. All anchors are counted in the text as it was.
func apply(path, text string, edits []edit) (string, error) {
	var faults []error
	result := text
	for _, e := range edits {
		if got := strings.Count(text, e.anchor); got != e.times {
			faults = append(faults, &MissingError{File: path, Text: e.anchor, Want: e.times, Got: got})
			continue
		}
		result = strings.ReplaceAll(result, e.anchor, e.becomes)
	}
	return result, errors.Join(faults...)
}

// store writes a file unless it is there already, so that a build that has it
// in its cache stays valid.
func store(path, text string) error {
	if there, err := os.ReadFile(path); err == nil && string(there) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// By a rename, so that a build at the same moment sees all of it or nothing.
	own := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(own, path)
}
