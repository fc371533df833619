package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/wlm"
)

// A cluster comes up, in one process or in one each, tells where it is, serves
// searches on its index, and is gone without a trace after an interrupt.
func TestUpDescribesAClusterThatServesAndStops(t *testing.T) {
	for _, flags := range [][]string{nil, {"--processes"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			up := exec.Command("wlmsim", append([]string{"up", "--nodes", "2", "--http", "127.0.0.1:0", "--format", "json"}, flags...)...)
			up.Stderr = os.Stderr
			output, err := up.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, up.Start())
			stopped := false
			defer func() {
				if !stopped {
					_ = up.Process.Kill()
					_ = up.Wait()
				}
			}()
			var c upCluster
			require.NoError(t, json.NewDecoder(output).Decode(&c))
			require.Len(t, c.Nodes, 2)
			require.Contains(t, []string{"m1", "m2"}, c.Leader)
			pids := map[int]bool{}
			for _, n := range c.Nodes {
				pids[n.PID] = true
				require.NotEmpty(t, n.Raft)
				require.NotEmpty(t, n.Gossip)
				response, err := http.Get(n.URL + "/" + c.Index + "/_search")
				require.NoError(t, err)
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
			}
			require.Len(t, pids, 1+len(flags), "one process, or one for each node")
			http.DefaultClient.CloseIdleConnections()

			require.NoError(t, up.Process.Signal(os.Interrupt))
			rest, err := io.ReadAll(output)
			require.NoError(t, err)
			require.Empty(t, rest, "results end with the description")
			require.NoError(t, up.Wait(), "a clean stop is exit code 0")
			stopped = true
			for pid := range pids {
				require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is gone", pid)
			}
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			require.NoError(t, err)
			require.Empty(t, left, "the temporary folder is gone")
		})
	}
}

// An interrupt on the way up ends as one, and leaves nothing behind.
func TestAnInterruptOnTheWayUpIsOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	o := live.Options{Nodes: 2, HTTP: "127.0.0.1:0"}
	var err error
	o.Node, err = (&nodeFlags{profile: wlm.ProfileReviewed}).options(io.Discard)
	require.NoError(t, err)
	err = runUp(ctx, streams{out: io.Discard, err: io.Discard}, o, "text", nil)
	require.Equal(t, exitInterrupted, exitCode(err, true), "%v", err)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// The line to copy asks a node as it wants to be asked.
func TestTheLineToCopyWorksAsItStands(t *testing.T) {
	for _, c := range []struct {
		name string
		node live.NodeOptions
		want string
	}{
		{"anybody", live.NodeOptions{}, "curl -u 'alice:any'"},
		{"a user who is known", live.NodeOptions{REST: rest.Config{Users: map[string]rest.User{"carl": {}, "b'ob": {}}}}, `curl -u 'b'\''ob'`},
		{"TLS", live.NodeOptions{Security: live.Security{CA: "keys/ca.pem"}}, "curl --cacert 'keys/ca.pem' -u 'alice:any'"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, curl(c.node)) })
	}
}

// The processes of a cluster end with it, also when it is killed.
func TestProcessesEndWithTheirParent(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	up := exec.Command("wlmsim", "up", "--nodes", "1", "--http", "127.0.0.1:0", "--format", "json", "--processes")
	output, err := up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, up.Start())
	var c upCluster
	require.NoError(t, json.NewDecoder(output).Decode(&c))
	require.NoError(t, up.Process.Kill())
	_ = up.Wait() // it was killed
	for deadline := time.Now().Add(time.Minute); syscall.Kill(c.Nodes[0].PID, 0) == nil; {
		require.True(t, time.Now().Before(deadline), "process %d has not ended", c.Nodes[0].PID)
	}
}
