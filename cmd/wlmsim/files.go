package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// scenarioFile is a file that was read and found sound.
type scenarioFile struct {
	path   string
	named  bool // by the user, and not found in a folder
	parsed *scenario.File
}

// readScenarios reads all files: those that are run, and those that only
// explore. The faults of all files are written at once, and nothing is returned
// if there are any.
func readScenarios(s streams, paths, set []string) (runnable, exploring []scenarioFile, err error) {
	files, err := readFiles(s, paths, set)
	for _, f := range files {
		if onlyExplores(f.parsed) {
			exploring = append(exploring, f)
		} else {
			runnable = append(runnable, f)
		}
	}
	return runnable, exploring, err
}

func onlyExplores(f *scenario.File) bool {
	return f.Explore != nil && len(f.Steps) == 0 && len(f.Load) == 0
}

// readFiles reads all files of the paths, and writes the faults of all.
func readFiles(s streams, paths, set []string) ([]scenarioFile, error) {
	files, err := findScenarios(paths)
	if err != nil {
		return nil, usageError{err}
	}
	bad := 0
	for i := range files {
		f := &files[i]
		if f.parsed, err = scenario.Read(f.path, set...); err == nil {
			continue
		}
		bad++
		if faults, ok := errors.AsType[scenario.Faults](err); ok {
			fmt.Fprint(s.err, harmless(strings.TrimRight(faults.Error(), "\n"))+"\n")
		} else {
			fmt.Fprintln(s.err, err)
		}
	}
	if bad > 0 {
		return nil, usageError{fmt.Errorf("%d of %d scenario files cannot be used", bad, len(files))}
	}
	return files, nil
}

// harmless replaces what would do something to a terminal: a file that is no
// text is shown, too.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}

// findScenarios lists the files of the paths: a folder means every .yaml file
// under it, by name. A file that is met twice counts once.
func findScenarios(paths []string) ([]scenarioFile, error) {
	var files []scenarioFile
	var faults []error
	seen := map[string]bool{}
	add := func(path string, named bool) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			files = append(files, scenarioFile{path: path, named: named})
		}
	}
	for _, path := range paths {
		before := len(seen)
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			add(path, true)
			continue
		}
		if err == nil {
			err = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
					add(path, false)
				}
				return err
			})
		}
		if err == nil && len(seen) == before {
			err = fmt.Errorf("folder %s has no .yaml file, or none that was not named before", path)
		}
		faults = append(faults, err)
	}
	return files, errors.Join(faults...)
}

// sourceOf returns a line of a scenario file.
func sourceOf(path string, line int) string {
	text, err := os.ReadFile(path)
	if err != nil || line < 1 {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if line > len(lines) {
		return ""
	}
	return strings.TrimSuffix(lines[line-1], "\r")
}

// makeFolder makes the folder of --out, if one is given, and sees to it that
// files can be written into it: better now than after hours.
func makeFolder(path string) error {
	if path == "" {
		return nil
	}
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(path, ".wlmsim-"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("--out %s: want a folder that can be written to: %w", path, err)
	}
	return nil
}
