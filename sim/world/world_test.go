package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a file that must be sound.
func run(t testing.TB, text string, options ...func(*world.Options)) *world.Result {
	t.Helper()
	f, err := scenario.Parse("test.yaml", []byte("version: 1\nname: a test\n"+text))
	require.NoError(t, err)
	o := world.Options{Path: "test.yaml"}
	for _, option := range options {
		option(&o)
	}
	r, err := world.Run(f, o)
	require.NoError(t, err)
	return r
}

func TestTheLagWindow(t *testing.T) {
	r := run(t, `
cluster: {managers: 3, data: 2}
steps:
  - {at: 10s, hold: {node: d2, step: applier.published}}
  - {at: 10s, put_group: {id: put, name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}
  - {at: 11s, search: {id: one, user: bob, group: late, via: d2, service_time: 5s}}
  - {at: 11s, search: {id: two, user: bob, group: late, via: d2}}
  - {at: 12s, release: {node: d2, step: applier.published}}
expect:
  - put.status == 200
  - one.status == 200
  - one.permit
  - two.status == 429
  - stats("d2", "DEFAULT_WORKLOAD_GROUP").total_throttled == 0
`)
	require.Equal(t, check.Held, r.Verdict, "%+v", r.Checks)
}
