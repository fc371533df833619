package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// Options say how to run a file. The zero value runs it as it is.
type Options struct {
	// Seed of everything that is drawn. Nil: the file's.
	Seed *uint64
	// Profile to run under. "": the file's.
	Profile string
	// Path and Set are what the repeat command names: the file, and the
	// assignments that were made to it.
	Path string
	Set  []string

	// HTTP gives every node an HTTP server on the network in memory.
	HTTP bool

	// Keep is how many events of the history are kept; the hash covers all.
	Keep int
	// Checks names the promises that are checked. None: all.
	Checks []scenario.Promise
	// Bare records nothing, so that of the promises only settles can be
	// checked, and nodes whose steps nobody asks for run at full speed.
	Bare bool

	// Limit is how much virtual time the body of Drive may take; 0: a day. An
	// idle cluster of three lets a day pass in half a minute.
	Limit time.Duration

	Log *slog.Logger // of the nodes; nil: none

	explored *Exploration // of [Explore]; nil: none
}

// Run runs a checked file in a bubble of its own and returns what came of it.
// An error means that the run itself was not possible; that something broke is
// in the result. Runs may stand side by side, but share math/rand's global
// source, from which raft and memberlist draw; in the exact lane they may not.
func Run(f *scenario.File, o Options) (*Result, error) { return runWith(f, o, nil) }

// runWith runs a file with the body of [Drive], or nil.
func runWith(f *scenario.File, o Options, body func(*Cluster)) (*Result, error) {
	start := time.Now()
	w, err := prepare(f, o, body)
	if err != nil {
		return nil, err
	}
	if w.file.Cluster.Storage == "bolt" {
		if w.dir, err = os.MkdirTemp("", "wlmsim-run-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(w.dir)
	}
	exact.Begin(w.seed.named("jitter").seed(), exact.Options{})
	defer exact.End()
	result := &Result{
		Scenario: f.Name, File: o.Path, Seed: uint64(w.given), Profile: w.file.Profile,
		Repeat: repeat(&o, o.Path, w.file.Profile, w.given),
	}
	var failed error
	if err := bubble.Run(func() { failed = w.live(result) }); err != nil {
		return nil, errors.Join(failed, err)
	}
	if failed != nil {
		return nil, failed
	}
	result.WallSeconds = time.Since(start).Seconds()
	return result, nil
}

// prepare checks all that can be checked before the bubble.
func prepare(f *scenario.File, o Options, body func(*Cluster)) (*world, error) {
	profile := o.Profile
	if profile == "" {
		profile = f.Filled().Profile
	}
	file := f.For(profile).Filled()
	seed := file.Seed
	if o.Seed != nil {
		seed = *o.Seed
	}
	w := &world{file: file, options: o, body: body, given: seed, seed: stream(seed).named("wlmsim"), lives: map[string]int{}}
	var err error
	if w.switches, err = switches(file); err != nil {
		return nil, err
	}
	if w.programs, err = compile(file); err != nil {
		return nil, err
	}
	w.ids = newNames(w.seed.named("names"))
	w.canaries = newCanaries(w.seed.named("canaries"))
	w.record.checks = check.NewSet(o.Checks...)
	if o.Bare {
		w.record.checks = check.NewSet(scenario.Settles)
	} else {
		w.record.log, w.record.open = history.NewLog(o.Keep), map[asked]history.Event{}
	}
	w.lines = links{seed: w.seed.named("clients"), latency: *file.Cluster.Network.Latency}
	w.holding = w.has(func(a *scenario.Action) bool { return a.Hold != nil })
	w.starving = w.has(func(a *scenario.Action) bool { return a.StarveGossip != nil })
	w.delaying = len(file.Cluster.Delays) > 0 || w.has(func(a *scenario.Action) bool { return a.Delay != nil })
	w.parking = w.holding || w.delaying
	w.said.Store(file)
	if body != nil || asksForPeaks(file) {
		w.peaks = &peaks{}
	}
	return w, nil
}

// switches are the profile's, with those that the file sets one by one.
func switches(f *scenario.File) (wlm.Switches, error) {
	s, err := wlm.Profile(f.Profile)
	if err != nil {
		return s, err
	}
	for _, name := range sortedKeys(f.Switches) {
		if s, err = s.With(name, f.Switches[name]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// live is the run inside its bubble.
func (w *world) live(r *Result) (err error) {
	w.record.start = time.Now()
	w.healed = make(chan struct{}) // a channel belongs to the bubble that it is made in
	w.ctx, w.giveUp = context.WithCancel(context.Background())
	defer func() { err = errors.Join(err, w.tearDown()) }()
	if err := w.build(); err != nil {
		return fmt.Errorf("build the cluster: %w", err)
	}
	w.zero = time.Now()
	for i := range w.file.Load {
		w.loads = append(w.loads, w.newLoad(&w.file.Load[i]))
	}
	if err := w.drive(w.play()); err != nil {
		return err
	}
	took, unsettled := w.finish()
	w.judge(r, w.facts(took, unsettled))
	r.VirtualSeconds = w.now().Seconds()
	return nil
}
