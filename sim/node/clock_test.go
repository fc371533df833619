package node_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/node"
)

// Case C32: a group is stamped by the node that takes the request, whatever its
// clock says; every change is accepted, and all nodes show the same stamp.
func TestAGroupIsStampedByWhoTakesTheRequest(t *testing.T) {
	off := map[string]time.Duration{"m1": 8 * time.Hour, "m2": -8 * time.Hour}
	inLab(t, "m1 m2 m3 d1", func(c *node.Config) {
		name := c.Name
		c.Now = func() time.Time { return time.Now().Add(off[name]) }
	}, func(l *lab) {
		c := l.client()
		defer c.transport.CloseIdleConnections()
		change := func(name, path, body string) {
			l.t.Helper()
			earliest := time.Now().Add(off[name]).UnixMilli()
			status, answer := c.ask(l.t.Context(), name, http.MethodPut, "/_wlm/workload_group"+path, "", "", body)
			latest := time.Now().Add(off[name]).UnixMilli()
			require.Equal(l.t, http.StatusOK, status, answer)
			var group struct {
				UpdatedAt int64 `json:"updated_at"`
			}
			require.NoError(l.t, json.Unmarshal([]byte(answer), &group))
			require.GreaterOrEqual(l.t, group.UpdatedAt, earliest, name)
			require.LessOrEqual(l.t, group.UpdatedAt, latest, name)
			for _, other := range l.names {
				require.Equal(l.t, group.UpdatedAt, l.nodes[other].State().GroupNamed("g").UpdatedAt, "%s, of a change through %s", other, name)
			}
		}
		change("m1", "", `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`)
		change("m2", "/g", `{"resource_limits":{"cpu":0.2}}`)
		change("m1", "/g", `{"resource_limits":{"cpu":0.3}}`)
		status, answer := c.ask(l.t.Context(), "m2", http.MethodDelete, "/_wlm/workload_group/g", "", "", "")
		require.Equal(l.t, http.StatusOK, status, answer)
		change("m2", "", `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.4}}`)
		change("m3", "/g", `{"resource_limits":{"cpu":0.5}}`)
		require.Equal(l.t, 0.5, l.nodes["d1"].State().GroupNamed("g").ResourceLimits["cpu"])
	})
}
