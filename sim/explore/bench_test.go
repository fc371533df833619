package explore_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/explore"
)

// Budget: schedules of the lag race on the real node, unreduced, with every
// promise judged on each, on two processors; and on one.
func BenchmarkTheLagRaceUnreduced(b *testing.B) {
	f := read(b, lagFile)
	for _, processors := range []int{1, 2} {
		b.Run(fmt.Sprintf("processors=%d", processors), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				r := run(b, f, explore.Options{NoReduction: true, Schedules: 20_000})
				require.Empty(b, r.Pruned)
				n += r.Schedules
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}
