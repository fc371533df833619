package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// The test binary serves as the command: scripts and processes call it by the
// name wlmsim, and a test that calls execute has it for its workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerName {
		os.Exit(run())
	}
	testscript.Main(unleaking{m}, map[string]func(){
		"wlmsim":          func() { os.Exit(run()) },
		"panickingwlmsim": func() { go panicUnderWay(); os.Exit(run()) },
	})
}

// panicUnderWay is a goroutine of nobody that panics once the third turn of some
// execution is under way, in the process that explores.
func panicUnderWay() {
	folder := os.Getenv(guardVariable)
	if folder == "" {
		return
	}
	for {
		if box, err := os.ReadFile(filepath.Join(folder, boxFile)); err == nil && len(box) > 0 && box[0] >= 3 {
			panic("planted")
		}
		time.Sleep(time.Millisecond)
	}
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
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}
