package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// The test binary serves as the command: scripts and processes call it by the
// name wlmsim, and a test that calls execute has it for its workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerName {
		os.Exit(run())
	}
	testscript.Main(unleaking{m}, map[string]func(){"wlmsim": func() { os.Exit(run()) }})
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
