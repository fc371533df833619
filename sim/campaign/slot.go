package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/world"
)

// slot does tasks one after the other, with one worker at a time. It belongs to
// one goroutine.
type slot struct {
	config *Config
	worker *worker           // nil: none yet, or the last one has ended
	words  map[string]string // that results have in common
	notes  *notes            // of explorations; nil: none yet

	mu    sync.Mutex // guards what follows, which others look at
	busy  bool
	doing Underway // as it began
	began time.Time
	watch *notes // of the exploration under way; nil: it is a run
}

// now returns what the slot does, and whether it does anything. It may be
// called from any goroutine.
func (s *slot) now() (Underway, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.doing
	u.For = time.Since(s.began)
	if s.watch != nil {
		u.Schedules, _ = s.watch.begun()
	}
	return u, s.busy
}

func (s *slot) begin(u Underway, watch *notes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.doing, s.began, s.watch = true, u, time.Now(), watch
}

func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.watch = false, nil
}

// close ends the slot's worker and removes its notes.
func (s *slot) close() {
	s.rest()
	if s.notes != nil {
		s.notes.remove()
		s.notes = nil
	}
}

// rest ends the slot's worker.
func (s *slot) rest() {
	if s.worker != nil {
		s.worker.close()
		s.worker = nil
	}
}

// run does a task. The error is the context's.
func (s *slot) run(ctx context.Context, t Task) (world.Result, error) {
	s.begin(Underway{File: t.File, Profile: t.Profile, Seed: t.Seed}, nil)
	defer s.end()
	histories, clean, err := prepare(&t, s.config.Twice)
	defer clean()
	if err != nil {
		return undecided(&t, err.Error()), nil
	}
	r, err := s.once(ctx, t, histories[0])
	if err == nil && s.config.Twice {
		var again world.Result
		if again, err = s.once(ctx, t, histories[1]); err == nil {
			r = compare(r, again, histories, s.config.MustRepeat)
		}
	}
	if err != nil {
		return r, err
	}
	if t.Out != "" {
		if err := keep(&t, &r); err != nil {
			r.Checks = append(r.Checks, check.Result{Name: RunCheck, Verdict: check.Undecided, Message: err.Error()})
			r.Verdict = worse(r.Verdict, check.Undecided)
		}
	}
	return r, nil
}

// prepare says where the histories of a task go, and makes the folders.
func prepare(t *Task, twice bool) (histories [2]string, clean func(), err error) {
	dir, clean := t.Out, func() {}
	switch {
	case dir != "":
		err = os.MkdirAll(dir, 0o777)
	case twice:
		dir, err = os.MkdirTemp("", "wlmsim-twice-")
		clean = func() { _ = os.RemoveAll(dir) } // nothing depends on it
	default:
		return histories, clean, nil
	}
	return [2]string{filepath.Join(dir, HistoryFile), filepath.Join(dir, SecondHistoryFile)}, clean, err
}

// once does a task once.
func (s *slot) once(ctx context.Context, t Task, historyFile string) (world.Result, error) {
	t.History = historyFile
	if s.config.Fresh || s.config.Twice {
		s.rest()
	}
	began := time.Now()
	a, err := s.do(ctx, &order{Run: &t}, nil)
	switch {
	case ctx.Err() != nil && err != nil:
		return world.Result{}, ctx.Err()
	case err == nil && a.Result != nil:
		s.intern(a.Result, &t)
		return *a.Result, nil
	case err == nil:
		err = errors.New(a.Error)
	}
	if d, ok := errors.AsType[*death](err); ok && t.Out != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.Out, NoiseFile), []byte(d.noise), 0o666))
	}
	r := undecided(&t, err.Error())
	r.WallSeconds = time.Since(began).Seconds()
	return r, nil
}

// intern gives a result the task's texts and those that others have as well:
// a campaign keeps very many.
func (s *slot) intern(r *world.Result, t *Task) {
	r.Repeat = t.Repeat
	if r.File == t.File && r.Scenario == t.Scenario && r.Profile == t.Profile {
		r.File, r.Scenario, r.Profile = t.File, t.Scenario, t.Profile
	}
	if s.words == nil {
		s.words = map[string]string{}
	}
	for i := range r.Checks {
		name, known := s.words[r.Checks[i].Name]
		if !known {
			name = r.Checks[i].Name
			s.words[name] = name
		}
		r.Checks[i].Name = name
		for _, v := range []check.Verdict{check.Held, check.Broken, check.Undecided} {
			if r.Checks[i].Verdict == v {
				r.Checks[i].Verdict = v
			}
		}
	}
}

// do hands an order to the worker, which is started if there is none. moves
// says how far it is, of work that may go on for long as long as it moves on;
// nil: it must end within the limit.
func (s *slot) do(ctx context.Context, o *order, moves func() any) (answer, error) {
	if s.worker == nil {
		w, err := startWorker(s.config.Start())
		if err != nil {
			return answer{}, fmt.Errorf("start a worker: %w", err)
		}
		s.worker = w
	}
	a, err := s.worker.do(ctx, o, s.config.Limit, moves)
	switch {
	case err != nil:
		s.worker = nil
	case a.Last:
		s.rest()
	}
	return a, err
}

// compare adds to a run what came of doing it twice.
func compare(first, second world.Result, histories [2]string, mustRepeat bool) world.Result {
	r := first
	if worse(first.Verdict, second.Verdict) != first.Verdict {
		r = second
	}
	c := check.Result{Name: TwiceCheck, Verdict: check.Held}
	switch {
	case first.TraceHash == "" || second.TraceHash == "":
		c.Verdict, c.Message = check.Undecided, "a run without a trace cannot be compared"
	case first.TraceHash != second.TraceHash || first.Verdict != second.Verdict:
		c.Message = fmt.Sprintf("done twice, it went two ways, to %s (%s) and to %s (%s)", first.Verdict, first.TraceHash, second.Verdict, second.TraceHash)
		c.Message += "\n" + difference(histories)
		if mustRepeat {
			c.Verdict = check.Broken
		}
	}
	r.Checks = append(r.Checks, c)
	r.Verdict = worse(r.Verdict, c.Verdict)
	return r
}

// difference describes the first event that differs between two files.
func difference(files [2]string) string {
	var events [2][]history.Event
	for i, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err.Error()
		}
		_, events[i], err = history.Read(f)
		f.Close()
		if err != nil {
			return fmt.Sprintf("%s: %v", name, err)
		}
	}
	d := history.FirstDifference(events[0], events[1])
	if d == nil {
		return fmt.Sprintf("the histories differ after the %d events that were kept", len(events[0]))
	}
	return d.String()
}

// worse returns the worse of two verdicts.
func worse(a, b check.Verdict) check.Verdict {
	for _, v := range []check.Verdict{check.Broken, check.Undecided} {
		if a == v || b == v {
			return v
		}
	}
	return check.Held
}
