package world_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

func TestLoadsOfEveryArrivalAddUp(t *testing.T) {
	r := run(t, `
cluster: {data: 2, indices: {logs: {shards: 2, service_time: {exponential: {mean: 20ms}}}, extra: {}}}
users: {alice: {roles: [analyst]}}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 2}}
rules:
  - {workload_group: g, principal.role: [analyst]}
load:
  - {name: poisson, user: alice, index: logs, arrive: {poisson: 200/s}, for: 5s}
  - {name: constant, user: alice, via: [m1, d1], arrive: {constant: 50/s}, from: 1s, for: 2s}
  - {name: burst, group: g, user: bob, via: random, arrive: {burst: {size: 20, every: 500ms}}, for: 2s}
  - {name: closed, user: alice, via: {m1: 3, m2: 1}, arrive: {closed: 5, think: 10ms}, for: 3s}
  - {name: patient, user: alice, via: [m3], arrive: {constant: 100/s}, for: 2s,
     retry: {on: [429], attempts: 5, backoff: {initial: 10ms, factor: 2, jitter: full}}}
  - {name: hasty, user: carol, arrive: {constant: 10/s}, for: 1s, service_time: 10s, cancel_after: 100ms}
  - {name: wrong, index: extra, arrive: {constant: 10/s}, from: 2s, for: 1s}
steps:
  - {at: 0s, delete_index: {name: extra}}
expect:
  - load.constant.sent == 100 and load.constant.attempts == 100
  - load.burst.sent == 80 and load.burst.throttled > 0
  - load.closed.sent > 50 and load.closed.sent == load.closed.attempts
  - load.patient.sent == 200 and load.patient.attempts > 200 and load.patient.attempts <= 1000
  - load.hasty.cancelled == 10 and load.hasty.latency.max < duration("200ms")
  - load.wrong.failed == 10
  - load.poisson.throttled_share > 0 and load.poisson.throttled_share < 1
`)
	holds(t, r)
	sent := 0
	for name, l := range r.Loads {
		require.Equal(t, l.Sent, l.Completed+l.Failed+l.Throttled+l.Cancelled, name)
		sent += l.Sent
	}
	require.InDelta(t, 1000, r.Loads["poisson"].Sent, 150)
	require.Equal(t, sent, r.Searches.Sent)
	require.Equal(t, r.Searches.Sent, r.Searches.Completed+r.Searches.Failed+r.Searches.Throttled+r.Searches.Cancelled)
	require.GreaterOrEqual(t, r.LatencyMS.Max, r.LatencyMS.P99)
}

func TestATraceIsSentAsItStands(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.csv"), []byte("time,user,roles,index,service_time\n0s,ann,,logs,1s\n10ms,ann,,logs,\n20ms,bob,r;s,,5ms\n2s,,,logs,\n"), 0o600))
	path := filepath.Join(dir, "t.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
version: 1
name: a trace
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 1}}
rules:
  - {workload_group: g, index_pattern: [logs]}
load:
  - {name: t, via: [m1], arrive: {trace: t.csv}, from: 1s}
expect:
  - load.t.sent == 4 and load.t.throttled == 1 and load.t.completed == 3
  - load.t.latency.max > duration("1s")
`), 0o600))
	f, err := scenario.Read(path)
	require.NoError(t, err)
	r, err := world.Run(f, world.Options{Path: path})
	require.NoError(t, err)
	holds(t, r)
}

func TestARetryGoesToTheNextNode(t *testing.T) {
	r := run(t, `
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: group, node_limit: 1}}
load:
  - {name: first, user: u, group: g, via: [m1], arrive: {burst: {size: 1, every: 1m}}, for: 1s, service_time: 10s}
  - {name: second, user: u, group: g, via: [m1, m2], arrive: {burst: {size: 1, every: 1m}}, from: 1s, for: 1s, retry: {on: [429], attempts: 3}}
expect:
  - load.second.completed == 1 and load.second.attempts == 2
  - outcomes("m1").throttled == 1 and outcomes("m2").completed == 1
`)
	holds(t, r)
}

func TestAnOutageFailsTheLoadAndNoMore(t *testing.T) {
	r := run(t, `
load:
  - {name: l, user: u, via: [m1, m2], arrive: {constant: 100/s}, for: 4s}
steps:
  - {at: 1s, crash: {node: m2, restart_after: 1s}}
expect:
  - load.l.sent == 400 and load.l.failed >= 50 and load.l.failed < 120
`)
	holds(t, r)
}

func TestDrawsFollowFromTheSeed(t *testing.T) {
	const text = `
cluster: {data: 1, network: {latency: 1ms..9ms}}
load:
  - {name: l, user: u, via: random, arrive: {poisson: 100/s}, for: 2s}
steps:
  - {at: 1s, search: {id: one}}
`
	seed := func(s uint64) func(*world.Options) { return func(o *world.Options) { o.Seed = &s } }
	a, b, c := run(t, text, seed(5)), run(t, text, seed(5)), run(t, text, seed(6))
	require.Equal(t, a.Loads["l"].Sent, b.Loads["l"].Sent)
	require.NotEqual(t, a.Loads["l"].Sent, c.Loads["l"].Sent)
	took := func(r *world.Result) time.Duration { return r.Answers["one"].(scenario.SearchAnswer).Took }
	require.NotEqual(t, took(a), took(c))
	require.Equal(t, "wlmsim run test.yaml --seed 5 --profile reviewed", a.Repeat)
	require.Equal(t, check.Held, a.Verdict)
}
