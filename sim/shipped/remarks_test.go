package shipped_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// remarks are those of the review. Each has a file that meets it with every
// seed, by a step that it holds or by the searches that it sends, and another
// one that leaves to chance whether anything comes of it.
var remarks = []struct {
	promise scenario.Promise
	every   string // in the folder of scenarios
	chance  string // in testdata
}{
	{scenario.RejectionKept, "lag/a-rejection-survives-a-change-of-the-counters.yaml", "a-rejection-meets-a-write-of-the-counters.yaml"},
	{scenario.RejectionAttribution, "lag/the-limit-holds-before-the-counters-exist.yaml", "a-rejection-comes-before-the-counters.yaml"},
	{scenario.PrincipalStays, "principal/a-principal-stays-on-its-coordinator.yaml", "a-search-is-sent-to-another-node.yaml"},
	{scenario.BucketsDistinct, "principal/a-comma-does-not-merge-users.yaml", "a-name-with-a-comma-comes-beside-another.yaml"},
}

// Each remark of the review has a file in which the promise that it is about
// holds as reviewed and breaks as submitted.
func TestEveryRemarkOfTheReviewHasAFile(t *testing.T) {
	for _, r := range remarks {
		f := read(t, r.every)
		require.Empty(t, f.Breaks, r.every)
		require.Equal(t, []scenario.Promise{r.promise}, f.Under["submitted"].Breaks, r.every)
	}
}

// seeds is how many seeds a test takes: few, or all in a long run.
func seeds(few, all uint64) uint64 {
	if os.Getenv("WLMSIM_SOAK") != "" {
		return all
	}
	return few
}

// As submitted every seed meets a remark in its file, and as reviewed none
// does: the file, which says so, holds under both.
func TestEveryRemarkIsMetEveryTimeAsSubmittedAndNeverAsReviewed(t *testing.T) {
	for _, r := range remarks {
		f := read(t, r.every)
		for _, profile := range []string{"submitted", "reviewed"} {
			t.Run(string(r.promise)+"/"+profile, func(t *testing.T) {
				t.Parallel()
				for seed := range seeds(4, 500) {
					requireHeld(t, seeded(t, f, "scenarios/"+r.every, profile, seed))
				}
			})
		}
	}
}

// By chance a share of the seeds meets a remark as submitted, which is logged;
// as reviewed none does.
func TestRandomSeedsMeetRemarksAsSubmittedAlone(t *testing.T) {
	for _, r := range remarks {
		path := "testdata/" + r.chance
		f, err := scenario.Read(path)
		require.NoError(t, err)
		t.Run(string(r.promise)+"/reviewed", func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(40, 10_000) {
				requireHeld(t, seeded(t, f, "sim/shipped/"+path, "reviewed", seed))
			}
		})
		t.Run(string(r.promise)+"/submitted", func(t *testing.T) {
			t.Parallel()
			n, met := seeds(40, 10_000), uint64(0)
			for seed := range n {
				if meets(t, seeded(t, f, "sim/shipped/"+path, "submitted", seed), r.promise) {
					met++
				}
			}
			t.Logf("%s: %d of %d seeds meet it as submitted, %.1f%%", path, met, n, 100*float64(met)/float64(n))
			require.Positive(t, met, "no seed found the window")
			require.Less(t, met, n, "it is not chance whether a seed finds it")
		})
	}
}

func seeded(t *testing.T, f *scenario.File, path, profile string, seed uint64) *world.Result {
	t.Helper()
	r, err := world.Run(f, world.Options{Path: path, Profile: profile, Seed: &seed})
	require.NoError(t, err, "seed %d", seed)
	return r
}

// meets says whether a run broke a promise. It must not break anything else.
func meets(t *testing.T, r *world.Result, promise scenario.Promise) bool {
	t.Helper()
	met := false
	for _, c := range r.Checks {
		if c.Name == string(promise) {
			met = c.Verdict == check.Broken
			continue
		}
		require.Equal(t, check.Held, c.Verdict, "%s: %s; %s", c.Name, c.Message, r.Repeat)
	}
	return met
}

// By chance two searches refuse one another under acquire: rollback; under
// exact one of them is always admitted.
func TestRandomSeedsAreRefusedNeedlesslyByRollbackAlone(t *testing.T) {
	const path = "testdata/two-searches-come-at-once.yaml"
	rollback, err := scenario.Read(path)
	require.NoError(t, err)
	exact, err := rollback.Set("switches.acquire=exact")
	require.NoError(t, err)
	n, refused := seeds(40, 10_000), uint64(0)
	for seed := range n {
		requireHeld(t, seeded(t, exact, "sim/shipped/"+path, "", seed))
		if seeded(t, rollback, "sim/shipped/"+path, "", seed).Verdict == check.Broken {
			refused++
		}
	}
	t.Logf("%s: %d of %d seeds refuse both, %.1f%%", path, refused, n, 100*float64(refused)/float64(n))
	require.Positive(t, refused, "no seed found the window")
	require.Less(t, refused, n, "it is not chance whether a seed finds it")
}
