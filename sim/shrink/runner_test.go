package shrink_test

import (
	"context"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// seventh is a runner whose runs of a search or more break with every seventh
// seed.
func seventh(_ context.Context, f *scenario.File, seed uint64) (*world.Result, error) {
	return &world.Result{Checks: sometimes(seed, len(f.Steps) > 0 && seed%7 == 0)}, nil
}

func sometimes(seed uint64, broken bool) []check.Result {
	c := check.Result{Name: string(scenario.PermitsReturn), Verdict: check.Held}
	if broken {
		c.Verdict, c.Message = check.Broken, "a permit is missing: seed "+string(rune('0'+seed%10))
	}
	return []check.Result{c}
}
