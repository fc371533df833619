//go:debug randseednop=0

// Command trial runs a cluster of five nodes with a partition and load in a
// bubble, and prints a hash of all that happened, or all of it. The test of the
// exact lane builds it with the overlay and compares what it prints.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/exact"
)

// drawn follows from the seed of the runtime's start.
var drawn = rand.Uint64()

func main() {
	seed := flag.Uint64("seed", 1, "of the run")
	long := flag.Duration("for", 30*time.Second, "how long the load lasts, in virtual time")
	runs := flag.Int("runs", 1, "one after the other, in this process")
	dir := flag.String("dir", "", "folder for the managers' Bolt files; empty: a new one, removed at the end")
	list := flag.Bool("list", false, "print every event")
	shuffle := flag.Bool("shuffle", false, "toss the scheduler's coin")
	plant := flag.String("plant", "", "a source of disorder: outside (a goroutine outside the bubble sends into it) or clock (the wall clock is looked at)")
	first := flag.Bool("startup", false, "print the first number that the process draws, and end")
	quiet := flag.Bool("quiet", false, "do not print wall times")
	flag.Parse()
	if *first {
		fmt.Println(drawn)
		return
	}
	for range *runs {
		if err := (run{*seed, *long, *dir, *list, *shuffle, *plant, *quiet}).once(); err != nil {
			fmt.Fprintln(os.Stderr, "trial:", err)
			os.Exit(1)
		}
	}
}

// run is what the flags say.
type run struct {
	seed          uint64
	long          time.Duration
	dir           string
	list, shuffle bool
	plant         string
	quiet         bool
}

// once runs the trial and prints its trace.
func (r run) once() error {
	dir := r.dir
	if dir == "" {
		made, err := os.MkdirTemp("", "trial-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	t := &trace{list: r.list}
	outside, stop := beside()
	defer stop()
	began := time.Now()
	exact.Begin(r.seed, exact.Options{Shuffle: r.shuffle})
	defer exact.End()
	var failed error
	if err := bubble.Run(func() {
		t.began = time.Now()
		failed = live(r.seed, r.long, dir, t, planted(r.plant, outside, t))
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if r.list {
		fmt.Print(t.lines.String())
	}
	line := fmt.Sprintf("%016x %d events", t.hash(), t.events)
	if !r.quiet {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		line += fmt.Sprintf(" %d ms, %d collections, %d MiB of the system", time.Since(began).Milliseconds(), m.NumGC, m.Sys>>20)
	}
	fmt.Println(line)
	return nil
}
