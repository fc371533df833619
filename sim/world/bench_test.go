package world_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// measured runs a file once a round on one processor, as commands do, and
// returns the wall seconds of all rounds together with the last result.
func measured(b *testing.B, text string) (wall float64, last *world.Result) {
	b.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	f, err := scenario.Parse("bench.yaml", []byte("version: 1\nname: a benchmark\n"+text))
	require.NoError(b, err)
	for b.Loop() {
		last, err = world.Run(f, world.Options{Bare: true})
		require.NoError(b, err)
		wall += last.WallSeconds
	}
	b.ReportMetric(0, "ns/op")
	return wall, last
}

// BenchmarkThrottled counts requests that are refused, from arrival to outcome,
// a wall second. Budget: 900,000.
func BenchmarkThrottled(b *testing.B) {
	wall, r := measured(b, `
cluster: {managers: 1, data: 1}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: group, node_limit: 1}}
load:
  - {name: full, user: u, group: g, via: [m1], arrive: {burst: {size: 1, every: 1m}}, for: 1s, service_time: 60s}
  - {name: l, user: u, group: g, via: [m1], arrive: {poisson: 100000/s}, from: 1s, for: 20s}
`)
	require.Greater(b, r.Loads["l"].Throttled, 1_900_000)
	b.ReportMetric(float64(r.Loads["l"].Throttled)*float64(b.N)/wall, "throttled/s")
}

// BenchmarkSearches counts whole searches of 6 shards on 4 data nodes of 20 ms
// a wall second. Budget: 25,000.
func BenchmarkSearches(b *testing.B) {
	wall, r := measured(b, `
cluster: {managers: 3, data: 4, workers: 10000, indices: {logs: {shards: 6, service_time: 20ms}}}
load:
  - {name: l, user: u, via: all, arrive: {poisson: 20000/s}, for: 2s}
`)
	require.Greater(b, r.Loads["l"].Completed, 39_000)
	b.ReportMetric(float64(r.Loads["l"].Completed)*float64(b.N)/wall, "searches/s")
}

// BenchmarkIdle tells how much faster than the wall clock clusters pass time
// that have nothing to do. Budgets: 4,000 times for three managers.
func BenchmarkIdle(b *testing.B) {
	for name, cluster := range map[string]string{
		"3managers": "{managers: 3, data: 1}",
		"3and10":    "{managers: 3, data: 10}",
		"3and97":    "{managers: 3, data: 97}",
	} {
		b.Run(name, func(b *testing.B) {
			wall, r := measured(b, "cluster: "+cluster+"\nsteps: [{at: 10m, expect: [1 == 1]}]\n")
			b.ReportMetric(r.VirtualSeconds*float64(b.N)/wall, "times")
		})
	}
}

// BenchmarkBusy tells how much faster than the wall clock 3 managers and 10
// data nodes are with 100 searches a second. Budget: 150 times.
func BenchmarkBusy(b *testing.B) {
	wall, r := measured(b, `
cluster: {managers: 3, data: 10}
load:
  - {name: l, user: u, via: all, arrive: {poisson: 100/s}, for: 1m}
`)
	b.ReportMetric(r.VirtualSeconds*float64(b.N)/wall, "times")
}

// BenchmarkShards tells how many whole searches a wall second are left when
// each has more shards, on 4 data nodes, and how many shards that is.
func BenchmarkShards(b *testing.B) {
	for _, shards := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			wall, r := measured(b, fmt.Sprintf(`
cluster: {managers: 3, data: 4, workers: 10000, indices: {logs: {shards: %d, service_time: 20ms}}}
load:
  - {name: l, user: u, via: all, arrive: {poisson: 4000/s}, for: 2s}
`, shards))
			done := float64(r.Loads["l"].Completed)
			require.Greater(b, done, 7_000.0)
			b.ReportMetric(done*float64(b.N)/wall, "searches/s")
			b.ReportMetric(done*float64(b.N*shards)/wall, "shards/s")
		})
	}
}

// BenchmarkMemory tells what a cluster has on the heap after a minute with
// a few searches. Budget: 512 MiB for a hundred nodes.
func BenchmarkMemory(b *testing.B) {
	for _, data := range []int{1, 10, 97} {
		b.Run(fmt.Sprintf("3and%d", data), func(b *testing.B) {
			f, err := scenario.Parse("bench.yaml", fmt.Appendf(nil, `version: 1
name: a benchmark
cluster: {managers: 3, data: %d}
load:
  - {name: l, user: u, via: all, arrive: {constant: 10/s}, for: 1m}
`, data))
			require.NoError(b, err)
			var m runtime.MemStats
			for b.Loop() {
				_, err := world.Drive(f, world.Options{Bare: true}, func(c *world.Cluster) {
					time.Sleep(time.Minute - c.Now())
					runtime.GC()
					runtime.ReadMemStats(&m)
				})
				require.NoError(b, err)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
			b.ReportMetric(float64(m.Sys)/(1<<20), "process-MiB")
		})
	}
}
