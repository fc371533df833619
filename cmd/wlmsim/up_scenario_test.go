package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
)

const busy = `version: 1
name: A busy cluster
profile: submitted
switches: {principal_join: escaped}
cluster: {managers: 1, data: 2, workers: 8, settings: {wlm.rule.sync_refresh_interval_ms: 1000}, indices: {docs: {shards: 2, service_time: 1ms}}}
users: {"al ice": {roles: [analyst]}}
groups: [{name: narrow, resiliency_mode: enforced, resource_limits: {cpu: 0.1}, throttling: {attribute: username, node_limit: 1}}]
rules: [{workload_group: narrow, principal.role: [analyst]}]
load:
  - {name: dash, user: al ice, index: docs, arrive: {closed: 9}, for: 1s, service_time: 20ms}
steps: [{at: 1s, crash: {node: d1}}]
`

// The cluster, the users' roles, the rules and the load are those of the file,
// whether the nodes run in this process or in their own.
func TestUpRunsAScenariosClusterAndLoad(t *testing.T) {
	wlmsim, err := exec.LookPath("wlmsim")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "busy.yaml")
	require.NoError(t, os.WriteFile(path, []byte(busy), 0o666))
	for _, processes := range []string{"--processes=false", "--processes=true"} {
		c := exec.Command(wlmsim, "up", "--scenario", path, "--http", "127.0.0.1:0", "--format", "json", processes)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		errs, err := c.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill() }) // it has ended unless the test failed

		var u upCluster
		require.NoError(t, json.NewDecoder(out).Decode(&u))
		require.Equal(t, "docs", u.Index)
		roles := map[string][]cluster.Role{}
		for _, n := range u.Nodes {
			roles[n.Name] = n.Roles
		}
		require.Equal(t, map[string][]cluster.Role{"m1": {cluster.Manager}, "d1": {cluster.Data}, "d2": {cluster.Data}}, roles)

		throttled := regexp.MustCompile(`^dash: .* [1-9]\d* completed, [1-9]\d* throttled, 0 failed`)
		lines, seen := bufio.NewScanner(errs), ""
		for lines.Scan() && !throttled.MatchString(lines.Text()) {
			seen += lines.Text() + "\n"
		}
		require.Regexp(t, throttled, lines.Text(), seen)
		require.Contains(t, seen, "its steps are left out")
		require.NoError(t, c.Process.Signal(os.Interrupt))
		for lines.Scan() {
		}
		require.NoError(t, c.Wait())
	}
}
