package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
)

// Exploration is one exploration to do: a file under a profile. The fields are
// those of [explore.Options].
type Exploration struct {
	Scenario    string           `json:"scenario"` // its name, for an exploration that has no result
	File        string           `json:"file"`
	Set         []string         `json:"set,omitempty"`
	Profile     string           `json:"profile"`
	Strategy    string           `json:"strategy,omitempty"`
	Schedules   int              `json:"schedules,omitempty"`
	Preemptions *int             `json:"preemptions,omitempty"`
	Schedule    explore.Schedule `json:"schedule"` // not nil: this one alone
	NoReduction bool             `json:"no_reduction,omitempty"`
	Workers     int              `json:"workers,omitempty"` // 0: 1

	// Notes is the folder that the worker notes in what it is about to do; "":
	// it does not.
	Notes string `json:"notes,omitempty"`
}

func (e *Exploration) options() explore.Options {
	return explore.Options{
		Strategy: e.Strategy, Schedules: e.Schedules, Preemptions: e.Preemptions, Schedule: e.Schedule, NoReduction: e.NoReduction,
		Profile: e.Profile, Path: e.File, Set: e.Set, Workers: max(1, e.Workers),
	}
}

// Explored is what came of an exploration.
type Explored struct {
	Result *explore.Result // never nil
	// Misfit says that the file or the schedule cannot be explored, in words;
	// the result is then undecided and has nothing else. It is in the chain of
	// [explore.ErrUsage].
	Misfit error
}

// explore explores. The error is the context's.
func (s *slot) explore(ctx context.Context, e Exploration) (Explored, error) {
	if s.notes == nil {
		n, err := newNotes()
		if err != nil {
			return unexplored(&e, err), nil
		}
		s.notes = n
	}
	s.notes.reset()
	e.Notes = s.notes.folder
	s.begin(Underway{File: e.File, Profile: e.Profile}, s.notes)
	defer s.end()
	if s.config.Fresh {
		s.rest()
	}
	began := time.Now()
	a, err := s.do(ctx, &order{Explore: &e}, s.notes.moved)
	if ctx.Err() != nil && err != nil {
		return Explored{}, ctx.Err()
	}
	x := s.explored(&e, a, err)
	if x.Result.WallSeconds == 0 {
		x.Result.WallSeconds = time.Since(began).Seconds()
	}
	return x, nil
}

// explored turns an answer, or why there is none, into what came of an
// exploration.
func (s *slot) explored(e *Exploration, a answer, err error) Explored {
	if died, ok := errors.AsType[*death](err); ok {
		return Explored{Result: s.notes.result(e, died)}
	}
	switch {
	case err != nil:
	case a.Misfit:
		x := unexplored(e, errors.New(a.Error))
		x.Misfit = misfit{fmt.Sprintf("%s: %s", e.File, a.Error)}
		return x
	case a.Error != "":
		err = errors.New(a.Error)
	default:
		r := &explore.Result{}
		if err = r.UnmarshalBinary(a.Explored); err == nil {
			return Explored{Result: r}
		}
	}
	return unexplored(e, err)
}

// misfit is an error of a worker that is in the chain of [explore.ErrUsage].
type misfit struct{ text string }

func (m misfit) Error() string   { return m.text }
func (misfit) Is(err error) bool { return err == explore.ErrUsage }

// unexplored is what came of an exploration that was not possible.
func unexplored(e *Exploration, why error) Explored {
	return Explored{Result: e.flight().Result(make([]byte, explore.BoxSize), check.Undecided, why.Error(), "")}
}

// flight is the exploration before anything is known of its lanes.
func (e *Exploration) flight() explore.Flight {
	return explore.Flight{
		Scenario: e.Scenario, File: e.File, Profile: e.Profile, Strategy: e.Strategy, Set: e.Set, Repeat: e.options().Command(),
	}
}

// judged says what it means that the process of an exploration has died: a
// panic of the explored nodes is a finding, all else leaves it open.
func (d *death) judged() (check.Verdict, string) {
	if d.limit > 0 {
		return check.Undecided, fmt.Sprintf("no turn was taken for %v of wall time; it was held up by:\n%s", d.limit, culprits(d.noise))
	}
	for line := range strings.Lines(d.noise) {
		if why, panicked := strings.CutPrefix(line, "panic: "); panicked {
			return check.Broken, "a goroutine of the explored nodes panicked: " + strings.TrimSpace(why)
		}
		if why, raced := strings.CutPrefix(line, "fatal error: concurrent map"); raced {
			return check.Broken, "goroutines of the explored nodes ended the process: concurrent map" + strings.TrimRight(why, "\n")
		}
	}
	return check.Undecided, d.Error()
}
