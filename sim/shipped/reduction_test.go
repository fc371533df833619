package shipped_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/wlm"
)

// shown is what an exploration shows: a line an outcome, and one for each
// promise that does not hold in every order.
type shown map[string]bool

func shownBy(r *explore.Result) shown {
	s := shown{}
	for _, o := range r.Outcomes {
		var line strings.Builder
		for _, v := range o.Observed {
			fmt.Fprintf(&line, "%s %v ", v.Name, v.Value)
		}
		s[line.String()] = true
	}
	for _, c := range r.Checks {
		if c.Verdict != check.Held {
			s[fmt.Sprintf("%s is %s", c.Name, c.Verdict)] = true
		}
	}
	return s
}

// lost lists what one exploration shows and another one does not.
func lost(by shown, in shown) []string {
	var missing []string
	for _, line := range slices.Sorted(maps.Keys(in)) {
		if !by[line] {
			missing = append(missing, line)
		}
	}
	return missing
}

// compared is an exploration that is held against others of the same file.
type compared struct{ path, profile, set string }

func (c compared) name() string {
	return strings.TrimSuffix(strings.Join([]string{c.path, c.profile, c.set}, "/"), "/")
}

// explore explores the file, which judges nothing: a promise that breaks is
// shown as broken.
func (c compared) explore(t *testing.T, o explore.Options) *explore.Result {
	t.Helper()
	var set []string
	if c.set != "" {
		set = append(set, c.set)
	}
	f := read(t, c.path, set...)
	f.Breaks, f.Under, f.Explore.Forbid, f.Explore.Require = nil, nil, nil, nil
	o.Profile = c.profile
	r, err := explore.Run(f, o)
	require.NoError(t, err)
	for _, one := range r.Checks {
		require.NotEqual(t, check.Undecided, one.Verdict, one.Message)
	}
	return r
}

// comparisons lists every exploration under every profile, and with each switch
// at what its own profile does not have.
func comparisons(t *testing.T) (all []compared) {
	t.Helper()
	for _, path := range explorations(t) {
		for _, profile := range wlm.Profiles() {
			all = append(all, compared{path, profile, ""})
		}
		own := profile(t, read(t, path).Filled().Profile)
		for _, name := range own.Names() {
			for _, value := range own.Values(name) {
				if value != own.Get(name) {
					all = append(all, compared{path, "", fmt.Sprintf("switches.%s=%s", name, value)})
				}
			}
		}
	}
	return all
}

// bounds are how many orders are tried: after reduction, of all, and at random.
// 0: all.
type bounds struct{ reduced, orders, draws int }

func (c compared) bounds(soak bool) bounds {
	switch {
	case !soak:
		return bounds{100, 100, 50}
	case c.set != "":
		return bounds{0, 10_000, 20_000}
	}
	return bounds{0, 50_000, 20_000}
}

// compare holds an exploration against more orders. It returns false for one
// that has more orders after reduction than the bound.
func (c compared) compare(t *testing.T, b bounds) bool {
	t.Helper()
	reduced := c.explore(t, explore.Options{Schedules: b.reduced})
	if !reduced.Complete {
		return false
	}
	full := c.explore(t, explore.Options{NoReduction: true, Schedules: b.orders})
	require.Empty(t, lost(shownBy(reduced), shownBy(full)), full.Repeat)
	if full.Complete {
		require.Empty(t, lost(shownBy(full), shownBy(reduced)), full.Repeat)
		t.Logf("%d orders in place of all %d", reduced.Schedules, full.Schedules)
		return true
	}
	random := c.explore(t, explore.Options{Strategy: explore.Random, Schedules: b.draws})
	require.Empty(t, lost(shownBy(reduced), shownBy(random)), random.Repeat)
	t.Logf("%d orders, %d of more, and %d at random", reduced.Schedules, full.Schedules, random.Schedules)
	return true
}

// Orders that are left out lose nothing, on the node itself: the outcomes and
// the promises that break are those of every order, where there are not too
// many, and none else is met by the first orders of all and by random ones. A
// short run does that for the small ones as reviewed and as submitted.
func TestTheOrdersThatAreLeftOutShowNothingElse(t *testing.T) {
	soak := os.Getenv("WLMSIM_SOAK") != ""
	var made atomic.Int32
	t.Run("all", func(t *testing.T) {
		for _, c := range comparisons(t) {
			if !soak && (c.set != "" || c.profile == wlm.ProfileUpstream) {
				continue
			}
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				if c.compare(t, c.bounds(soak)) {
					made.Add(1)
				}
			})
		}
	})
	least := int32(30)
	if soak {
		least = int32(len(comparisons(t)))
	}
	require.GreaterOrEqual(t, made.Load(), least)
}

// An exploration that leaves out orders that differ is noticed.
func TestOrdersThatShowMoreAreNoticed(t *testing.T) {
	c := compared{"explore/the-registration-lag.yaml", "submitted", ""}
	none := 0
	fewer, all := shownBy(c.explore(t, explore.Options{Preemptions: &none})), shownBy(c.explore(t, explore.Options{}))
	require.Empty(t, lost(all, fewer))
	require.Contains(t, lost(fewer, all), "rejection_attribution is broken")
	require.Contains(t, lost(fewer, all), "second 429 group 0 default 1 ")
}
