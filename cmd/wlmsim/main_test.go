package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary serves as the command: scripts and processes call it by the
// name wlmsim, and a test that calls execute has it for its workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerName {
		os.Exit(run())
	}
	testscript.Main(m, map[string]func(){"wlmsim": func() { os.Exit(run()) }})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}
