package compat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// js is the folder of the npm client's tests and of its lock file.
const js = "js"

// TestTheNpmClient runs js/client.test.mjs against a live cluster. The client
// comes from the lock file, by npm ci, unless it is there.
func TestTheNpmClient(t *testing.T) {
	if _, err := os.Stat(filepath.Join(js, "node_modules", "@opensearch-project", "opensearch")); err != nil {
		install := command(t, "npm", "ci")
		install.Dir = js
		out, err := install.CombinedOutput()
		require.NoError(t, err, "npm ci: %s", out)
	}
	c := up(t, "--query-group-alias")
	run := command(t, "node", "--test", "--test-reporter=tap", "client.test.mjs")
	run.Dir = js
	run.Env = append(os.Environ(), "WLMSIM_URLS="+strings.Join(c.urls, ","))
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^# pass [1-9]`, string(out), "no test ran")
}

// A lock file that names hosts would send others to them for downloads.
func TestTheLockFileNamesNoHost(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(js, "package-lock.json"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "resolved")
	require.NotContains(t, string(text), "://")
	require.Contains(t, string(text), `"integrity"`)
}
