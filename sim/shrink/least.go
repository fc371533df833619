package shrink

import (
	"context"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Least returns the smallest file that it can get to from a checked file by
// moves after which fails is true, and calls told for each smaller one on the
// way. done says that no move from it fails any more; without that, ctx ended
// first. fails must be true for f itself, which is not asked.
func Least(ctx context.Context, f *scenario.File, fails func(*scenario.File) bool, told func(*scenario.File)) (least *scenario.File, done bool) {
	refused := map[string]bool{} // by text
	for smaller := true; smaller; {
		smaller = false
		list, size := moves(f), SizeOf(f)
		for i := 0; i < len(list); i++ {
			if ctx.Err() != nil {
				return f, false
			}
			g := list[i].apply(f, size)
			if g == nil {
				continue
			}
			if text := string(scenario.Print(g)); refused[text] || !fails(g) {
				refused[text] = true
				continue
			}
			told(g)
			// What comes next in the list moves up to this place.
			f, smaller = g, true
			list, size, i = moves(f), SizeOf(f), i-1
		}
	}
	return f, ctx.Err() == nil
}
