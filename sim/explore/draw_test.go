package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawnOrders executes a toy so many times, each with what a function makes of a
// source of its own, and counts the orders of turns.
func drawnOrders(t require.TestingT, actors [][]operation, times int, with func(*rand.Rand) chooser) map[string]int {
	p, met := newToy(actors), map[string]int{}
	require.NoError(t, p.within(func() error {
		for i := range times {
			turns, done, err := play(p, 1000, with(rand.New(rand.NewPCG(7, uint64(i)))), nil)
			require.NoError(t, err)
			require.True(t, done)
			met[fmt.Sprint(turns)]++
		}
		return nil
	}))
	return met
}

// likePCT draws priorities for so many lanes.
func likePCT(lanes, changes, turns int) func(*rand.Rand) chooser {
	return func(draw *rand.Rand) chooser {
		p := &pct{draw: draw, changes: changes, turns: turns}
		p.restart(lanes)
		return p
	}
}

// three and two are actors that are no more than so many turns each.
var three = [][]operation{make([]operation, 3), make([]operation, 3), make([]operation, 3)}
var two = [][]operation{make([]operation, 2), make([]operation, 2)}

// A random walk gives each lane that can go the same chance in each turn, so an
// order has the product of them.
func TestARandomWalkChoosesEvenly(t *testing.T) {
	met := drawnOrders(t, two, 8000, func(draw *rand.Rand) chooser { return &walk{draw} })
	for order, chance := range map[string]int{
		"[0 0 1 1]": 4, "[0 1 0 1]": 8, "[0 1 1 0]": 8, "[1 0 0 1]": 8, "[1 0 1 0]": 8, "[1 1 0 0]": 4,
	} {
		require.InEpsilon(t, 8000/chance, met[order], 0.1, order)
	}
	require.Len(t, met, 6)
}

// Without changes of priorities PCT executes one lane after the other, in every
// order of the lanes alike; with two it meets every order that two make possible,
// and no less often than it promises.
func TestPCTMeetsWhatItsChangesMakePossible(t *testing.T) {
	const times = 6000
	met := drawnOrders(t, three, times, likePCT(3, 0, 9))
	require.Len(t, met, 6)
	for order, n := range met {
		require.InEpsilon(t, times/6, n, 0.1, order)
	}
	require.NotContains(t, drawnOrders(t, two, times, likePCT(2, 0, 4)), "[0 1 0 1]")
	require.NotContains(t, drawnOrders(t, two, times, likePCT(2, 1, 4)), "[0 1 0 1]", "it takes two changes")
	met = drawnOrders(t, two, times, likePCT(2, 2, 4))
	require.Len(t, met, orders(two))
	for order, n := range met {
		require.GreaterOrEqual(t, n, times/(2*4*4), order)
	}
}

// PCT leaves a lane that could go on no more often than priorities change.
func TestPCTPreemptsNoMoreOftenThanPrioritiesChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actors := drawProgram(t)
		changes := rapid.IntRange(0, 4).Draw(t, "changes")
		turns := 0
		for _, a := range actors {
			turns += len(a)
		}
		most := 0
		p := newToy(actors)
		require.NoError(t, p.within(func() error {
			for seed := range uint64(5) {
				taken, _, err := play(p, 1000, likePCT(len(actors), changes, turns)(rand.New(rand.NewPCG(seed, 0))), nil)
				require.NoError(t, err)
				most = max(most, left(taken))
			}
			return nil
		}))
		require.LessOrEqual(t, most, changes)
	})
}

// left counts the turns after which a lane is left that could go on.
func left(taken []uint8) (n int) {
	for i := 1; i < len(taken); i++ {
		if before := taken[i-1]; taken[i] != before && slices.Contains(taken[i:], before) {
			n++
		}
	}
	return n
}

// What draws priorities for turns meets every order of a small program, without
// any change, and those of two turns alike.
func TestPrioritiesOfTurnsMeetEveryOrder(t *testing.T) {
	like := func(draw *rand.Rand) chooser { return newSampling(draw, 3, 0, 0) }
	require.Len(t, drawnOrders(t, two, 1000, like), orders(two))
	one := [][]operation{make([]operation, 1), make([]operation, 1)}
	met := drawnOrders(t, one, 4000, like)
	require.InEpsilon(t, 2000, met["[0 1]"], 0.1)
	require.InEpsilon(t, 2000, met["[1 0]"], 0.1)
}
