//go:build exact

package exact_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/exact"
)

// orders returns which cases of a select were taken, and in what order a map
// was walked through, in a bubble.
func orders(t *testing.T, seed uint64) (seen []int) {
	t.Helper()
	exact.Begin(seed, exact.Options{})
	defer exact.End()
	require.Equal(t, 1, runtime.GOMAXPROCS(0))
	require.NoError(t, bubble.Run(func() {
		one, two, numbers := make(chan int, 20), make(chan int, 20), map[int]int{}
		for i := range 20 {
			one <- 1
			two <- 2
			numbers[i] = i
		}
		for range 20 {
			select {
			case n := <-one:
				seen = append(seen, n)
			case n := <-two:
				seen = append(seen, n)
			}
		}
		for n := range numbers {
			seen = append(seen, n)
		}
	}))
	return seen
}

func TestSwitchDecidesOrders(t *testing.T) {
	require.True(t, exact.Enabled)
	first := orders(t, 1)
	require.Equal(t, first, orders(t, 1))
	require.NotEqual(t, first, orders(t, 2))
}

func TestSwitchGivesBackWhatItTook(t *testing.T) {
	percent := debug.SetGCPercent(70)
	defer debug.SetGCPercent(percent)
	processors := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(processors)
	exact.Begin(1, exact.Options{})
	exact.End()
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	require.Equal(t, 70, debug.SetGCPercent(70))
}

func TestSwitchRefusesASecondRunAtOnce(t *testing.T) {
	exact.Begin(1, exact.Options{})
	defer exact.End()
	require.Panics(t, func() { exact.Begin(2, exact.Options{}) })
}
