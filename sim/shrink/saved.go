package shrink

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Repeat returns the command that repeats the failure of the file, written to a
// path.
func (s *Shrunk) Repeat(path string) string {
	if s.Failure.Schedule != nil {
		return repeatExplored(path, s.Failure.Schedule)
	}
	return repeatRun(path, s.Failure.Seed)
}

// Text returns the scenario file as it is to be kept at a path, with how it
// fails in comments above it:
//
//	# check: rejection_attribution
//	# message: a rejection was counted on another group than its own: ...
//	# schedule: update applier first×4 second×4 applier
//	# repeat: wlmsim explore lag.reviewed.yaml --schedule 'update applier ...'
//
// A run has seed: in place of schedule:. [Parse] reads it back.
func (s *Shrunk) Text(path string) []byte {
	var b bytes.Buffer
	line := func(key, value string) { fmt.Fprintf(&b, "# %s: %s\n", key, oneLine(value)) }
	line("check", s.Failure.Check)
	line("message", s.Failure.Message)
	if s.Failure.Schedule != nil {
		line("schedule", s.Failure.Schedule.String())
	} else {
		line("seed", strconv.FormatUint(s.Failure.Seed, 10))
	}
	line("repeat", s.Repeat(path))
	b.Write(scenario.Print(s.File))
	return b.Bytes()
}

// Parse reads what [Shrunk.Text] writes: a scenario file and how it failed.
// name stands for the file in errors. White space within the name of the check
// and the message counts as one blank.
func Parse(name string, text []byte) (*scenario.File, Failure, error) {
	var failure Failure
	var faults []error
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		comment, is := strings.CutPrefix(line, "# ")
		if !is {
			break
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
		known[key] = true
		var err error
		switch key {
		case "check":
			failure.Check = value
		case "message":
			failure.Message = value
		case "schedule":
			if failure.Schedule, err = explore.ParseSchedule(value); failure.Schedule == nil {
				failure.Schedule = explore.Schedule{}
			}
		case "seed":
			failure.Seed, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
	}
	if !known["check"] || !known["message"] || known["schedule"] == known["seed"] {
		faults = append(faults, errors.New("the comments above the file do not say how it fails: check, message, and schedule or seed"))
	}
	f, err := scenario.Parse(name, text)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, Failure{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, failure, nil
}

// Read reads what [Shrunk.Text] wrote to a path. An error that is
// [os.ErrNotExist] says that there is no file.
func Read(path string) (*scenario.File, Failure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Failure{}, err
	}
	return Parse(path, text)
}

// program is the command of this lane.
func program() string {
	if exact.Enabled {
		return "wlmsim-exact"
	}
	return "wlmsim"
}

// quoted writes a word as a POSIX shell takes it.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@+"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
