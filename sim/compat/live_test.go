package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is where the main module is.
var root = filepath.Join("..", "..")

// built is the program, built once for all tests.
var built = struct {
	sync.Once
	dir, path string
	output    []byte
	err       error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// program returns the path of wlmsim, built from the tree that the tests are
// in.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "wlmsim-compat"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "wlmsim")
		build := exec.Command("go", "build", "-o", built.path, "./cmd/wlmsim")
		build.Dir = root
		built.output, built.err = build.CombinedOutput()
	})
	require.NoError(t, built.err, "%s", built.output)
	return built.path
}

// liveCluster is `wlmsim up` on free ports, until the test ends.
type liveCluster struct{ urls []string }

func up(t *testing.T, args ...string) liveCluster {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program(t), append([]string{"up", "--http", "127.0.0.1:0", "--format", "json"}, args...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute // a cluster that does not stop is killed
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // interrupted, as it should be
		if t.Failed() {
			t.Logf("wlmsim up: %s", log.Bytes())
		}
	})
	var described struct {
		Nodes []struct {
			URL string `json:"url"`
		} `json:"nodes"`
	}
	require.NoError(t, json.NewDecoder(out).Decode(&described), "wlmsim up ended: %s", &log)
	c := liveCluster{}
	for _, n := range described.Nodes {
		c.urls = append(c.urls, n.URL)
	}
	return c
}

// patience is how long another program may take before it is killed: far more
// than it needs.
const patience = 4 * time.Minute

// command is a program that the test runs to its end.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = time.Second // for programs of its own that it left behind
	return c
}
