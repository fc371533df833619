package simtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherModule returns the go.mod of a module that needs this one, whose own
// go.mod is given. It has the lines that go mod tidy would write: those of the
// modules that this one needs.
func otherModule(root, own string) string {
	return strings.Replace(own, "module github.com/wlmsim/wlmsim\n", "module example.org/client\n", 1) +
		"\nrequire github.com/wlmsim/wlmsim v0.0.0\n\nreplace github.com/wlmsim/wlmsim => " + root + "\n"
}

const otherTest = `package client_test

import (
	"net/http"
	"testing"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/simtest"
	"pgregory.net/rapid"
)

func TestClient(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: "cluster: {managers: 1, data: 1}"}, func(c *simtest.Cluster) {
		response, err := c.Client().Get(c.URL("m1") + "/logs/_search")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Error(response.Status)
		}
	})
}

func TestHolds(t *testing.T) {
	simtest.Explore(t, simtest.Exploration{Scenario: lag})
}

func TestPlanted(t *testing.T) {
	simtest.Explore(t, simtest.Exploration{Scenario: lag, Set: []string{"switches.missing_counters=default_group"}})
}

func TestDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(scenario.Print(simtest.Explorations().Draw(t, "file")))
		simtest.Explore(t, simtest.Exploration{Scenario: text, Schedules: 5})
	})
}

const lag = ` + "`" + lag + "`\n"

// A module of somebody else that only imports this package builds, and its
// test passes. The modules that this one needs are enough for it: nothing is
// downloaded.
func TestAModuleThatOnlyImportsSimtest(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": otherModule(root, string(own)), "go.sum": string(sums), "client_test.go": otherTest} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	tested := func(pattern string) (string, error) {
		command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-run", pattern, "./...", "-rapid.checks=10")
		command.Dir = dir
		command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := tested("TestClient|TestHolds|TestDrawn")
	require.NoError(t, err, out)
	require.Contains(t, out, "ok  \texample.org/client")

	// A planted flaw fails, with a command that repeats it from there, and the
	// fail file is in the module's own testdata.
	out, err = tested("TestPlanted")
	require.Error(t, err, out)
	require.Contains(t, out, "rejection_attribution broken: a rejection was counted on another group than its own")
	require.Contains(t, out, "go test -count=1 -run '^TestPlanted$' example.org/client")
	kept, err := filepath.Glob(filepath.Join(dir, "testdata", "wlmsim", "TestPlanted.*.yaml"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	out, err = tested("TestPlanted")
	require.Error(t, err, out)
	require.Contains(t, out, "by the fail file testdata/wlmsim/"+filepath.Base(kept[0]))
}
