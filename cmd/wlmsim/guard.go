package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
)

// A panic of a goroutine of an explored node ends the process, so `explore`
// works in a process of its own: what it is about to do it notes in a folder
// that its parent looks into when it has died.
const (
	exploreName   = "explore"
	guardVariable = "WLMSIM_EXPLORE_NOTES" // the folder; not set: this is the parent
	flightFile    = "flight.json"
	boxFile       = "box"
	panicFile     = "panic"
)

// flight is what the parent has to know to tell what the child was at.
type flight struct {
	Format string
	explore.Flight
}

// guarded carries out a command line in a child process and returns its exit
// code. A child that panicked has found something.
func guarded(s streams) (int, error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "wlmsim-explore-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	child := exec.Cmd{
		Path: path, Args: os.Args, Env: append(os.Environ(), guardVariable+"="+folder),
		Stdin: s.in, Stdout: s.out, Stderr: s.err,
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	// An interrupt of the terminal reaches the child too, which leaves it to
	// this process.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case <-signals:
			_ = child.Process.Signal(syscall.SIGTERM) // it may just have ended
		case err := <-ended:
			return afterwards(s, folder, err)
		}
	}
}

// afterwards is the exit code of a child that has ended.
func afterwards(s streams, folder string, ended error) (int, error) {
	why, err := os.ReadFile(filepath.Join(folder, panicFile))
	if err != nil || len(why) == 0 {
		failed, ok := errors.AsType[*exec.ExitError](ended)
		switch {
		case ended == nil:
			return exitHeld, nil
		case ok && failed.Exited():
			return failed.ExitCode(), nil
		}
		return 0, fmt.Errorf("the exploring process: %w", ended)
	}
	var f flight
	text, err := os.ReadFile(filepath.Join(folder, flightFile))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	box, unread := os.ReadFile(filepath.Join(folder, boxFile))
	if err = errors.Join(err, unread); err != nil || len(box) < explore.BoxSize {
		return 0, fmt.Errorf("the exploring process panicked before it explored: %w", ended)
	}
	line, _, _ := bytes.Cut(bytes.TrimPrefix(why, []byte("panic: ")), []byte("\n"))
	results := []*explore.Result{f.Result(box, string(line))}
	if err := explore.Write(s.out, f.Format, results, sourceOf); err != nil {
		return 0, err
	}
	return 0, verdictError{check.Broken, explore.Summary(results) + "; what was explored before is lost"}
}

// watch has the child note what it is about to do; in a process without a
// parent it does nothing.
func watch(o *explore.Options, format string) error {
	folder := os.Getenv(guardVariable)
	if folder == "" {
		return nil
	}
	signal.Ignore(os.Interrupt)
	crash, err := os.Create(filepath.Join(folder, panicFile))
	if err != nil {
		return err
	}
	defer crash.Close()
	if err := debug.SetCrashOutput(crash, debug.CrashOptions{}); err != nil {
		return err
	}
	box, err := mapped(filepath.Join(folder, boxFile), explore.BoxSize)
	if err != nil {
		return err
	}
	o.Box = func(f explore.Flight) []byte {
		text, err := json.Marshal(flight{format, f})
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, flightFile), text, 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "wlmsim: what is explored cannot be noted:", err)
		}
		return box
	}
	return nil
}

// mapped makes a file and returns it as memory, which outlives the process.
func mapped(path string, size int) ([]byte, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}
