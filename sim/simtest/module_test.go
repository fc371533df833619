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

	"github.com/wlmsim/wlmsim/sim/simtest"
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
`

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
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "ok  \texample.org/client")
}
