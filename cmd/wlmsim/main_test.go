package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// The test binary serves as the command: scripts and processes call it by the
// name wlmsim, and a test that calls execute has it for its workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerName {
		worker := campaign.Worker(&campaign.Doer{})
		if word := os.Getenv(plantVariable); word != "" {
			worker = &planted{word: word}
		}
		if err := campaign.Serve(os.Stdin, os.Stdout, worker); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testscript.Main(unleaking{m}, map[string]func(){"wlmsim": func() { os.Exit(run()) }})
}

// plantVariable says what the workers' explorations do after a few schedules:
// panic, hang or kill.
const plantVariable = "PLANT"

// planted is a worker whose explorations come to harm, those of files that are
// named hold.yaml apart.
type planted struct {
	campaign.Doer
	word string
}

// Do implements [campaign.Worker]: of runs only what is to be killed comes to
// harm, with seed 3.
func (p *planted) Do(t campaign.Task) (*world.Result, error) {
	if p.word == "kill" && t.Seed == 3 {
		(&harm{word: p.word}).do()
	}
	return p.Doer.Do(t)
}

// Explore implements [campaign.Worker].
func (p *planted) Explore(e campaign.Exploration) (*explore.Result, error) {
	if filepath.Base(e.File) == "hold.yaml" {
		return p.Doer.Explore(e)
	}
	f, err := scenario.Read(e.File, e.Set...)
	if err != nil {
		return nil, err
	}
	o, err := p.Options(&e)
	if err != nil {
		return nil, err
	}
	o.Context = &harm{Context: context.Background(), word: p.word, forever: make(chan struct{})}
	return explore.Run(f, o)
}

// harm is a context that is asked between two schedules.
type harm struct {
	context.Context
	word    string
	asked   atomic.Int32
	forever chan struct{} // of no bubble, so that waiting for it stops virtual time
}

// Err implements [context.Context].
func (h *harm) Err() error {
	if h.asked.Add(1) < 6 {
		return nil
	}
	h.do()
	return nil
}

func (h *harm) do() {
	switch h.word {
	case "panic":
		go panic("planted") // on a goroutine of the bubble
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}
	<-h.forever
}

// unleaking are tests that leave no goroutine.
type unleaking struct{ tests *testing.M }

// Run runs the tests and fails if a goroutine is left.
func (u unleaking) Run() int {
	code := u.tests.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// exits is the script command "exits CODE PROGRAM ARG...": the program must exit
// with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = strconv.Itoa(failed.ExitCode())
	} else {
		ts.Check(err)
	}
	if code != args[0] {
		ts.Fatalf("%v exited with %s, not %s", args[1:], code, args[0])
	}
}
