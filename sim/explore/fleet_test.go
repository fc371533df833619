package explore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

const wholeLagFile = "../../scenarios/clusters/the-lag-race-of-three-nodes.yaml"

// requireNothingBroken asserts that no promise broke and nothing forbidden
// happened. Whether all that is required was met in a few schedules is up to
// chance, and whether each repeats to the scheduler, which the race detector
// shuffles.
func requireNothingBroken(t *testing.T, r *explore.Result) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == "explore" && c.Verdict != check.Held {
			require.True(t, uncontrolled(r), c.Message)
		} else if !strings.HasPrefix(c.Name, "require ") {
			require.Equal(t, check.Held, c.Verdict, "%s: %s; %s", c.Name, c.Message, c.Schedule)
		}
	}
	require.False(t, r.Complete, "nobody tries every order of a whole cluster")
}

// uncontrolled says whether a schedule took another course than before.
func uncontrolled(r *explore.Result) bool {
	all := strings.Join(complaints(r), "\n")
	return strings.Contains(all, "the same schedule took another course") || strings.Contains(all, "the same schedule gave other events")
}

func TestWholeClustersKeepTheirPromises(t *testing.T) {
	paths, err := filepath.Glob("../../scenarios/clusters/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 7)
	for _, path := range paths {
		for _, strategy := range []string{explore.Random, explore.PCT} {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+"/"+strategy, func(t *testing.T) {
				r := run(t, read(t, path), explore.Options{Strategy: strategy, Schedules: 3})
				require.Equal(t, 3, r.Schedules)
				requireNothingBroken(t, r)
			})
		}
	}
}

// The flaw that one node shows is found on three, with raft and gossip between
// them, and its schedule shows it again.
func TestThePlantedFlawIsFoundInAWholeCluster(t *testing.T) {
	// One schedule in a hundred meets it; that none of thousands does has a
	// chance of one in many millions.
	var f *scenario.File
	var r *explore.Result
	for seed := 1; r == nil || r.Verdict != check.Broken; seed++ {
		require.Less(t, seed, 100)
		f = read(t, wholeLagFile, "switches.missing_counters=default_group", fmt.Sprint("seed=", seed))
		r = run(t, f, explore.Options{Schedules: 40})
	}
	i := slices.IndexFunc(r.Checks, func(c explore.Check) bool { return c.Name == string(scenario.RejectionAttribution) })
	require.Equal(t, check.Broken, r.Checks[i].Verdict)

	s, err := explore.ParseSchedule(r.Checks[i].Schedule)
	require.NoError(t, err)
	again := run(t, f, explore.Options{Schedule: s})
	if uncontrolled(again) {
		require.Equal(t, check.Undecided, again.Verdict)
		return
	}
	require.Equal(t, check.Broken, again.Checks[i].Verdict)
	var text strings.Builder
	require.NoError(t, explore.Write(&text, "text", []*explore.Result{again}, func(string, int) string { return "" }))
	require.Contains(t, text.String(), "wlm.counted on DEFAULT_WORKLOAD_GROUP")
	require.Contains(t, text.String(), "m1>d2.raft")
}

// known are orders in which a file shows what it says of another profile.
var known = map[string][]string{
	"a-data-node-crashes-under-a-search": {
		"first×3 second×4 first×3 second×2 crash×2", // each looks while the other one has counted itself
		"first×9 crash×2", // the node is gone before it is asked
	},
	"the-lag-race-of-three-nodes": {
		// Both searches come while d2 has published the group and not told the throttle.
		"update d1>m1.gossip m1>d2.raft d2>m1.raft m1>d2.raft d2.applier first d1>m1.gossip m1>d1.gossip second d1>m1.gossip m1>d1.gossip×2 first×4 second×6",
		// The throttle hears of it while the second one looks for the counters.
		"update d1>m1.gossip m1>d2.raft d2>m1.raft m1>d2.raft d2.applier first d1>m1.gossip m1>d1.gossip second d1>m1.gossip m1>d1.gossip×2 first×4 second×4 d2.applier second×2",
	},
}

// What a file says of another profile is so: everything that it says can be met,
// and nothing else breaks. Orders that are known come first, as far as they fit;
// where something is left, others are drawn. Each is met by one of a hundred or
// more, and that none of thousands does has a chance of one in many millions.
func TestWholeClustersAreWhatTheirFilesSayOfAProfile(t *testing.T) {
	paths, err := filepath.Glob("../../scenarios/clusters/*.yaml")
	require.NoError(t, err)
	profiles := 0
	for _, path := range paths {
		race := strings.TrimSuffix(filepath.Base(path), ".yaml")
		for profile, says := range read(t, path).Under {
			profiles++
			t.Run(race+"/"+profile, func(t *testing.T) {
				left := map[string]bool{}
				for _, p := range says.Breaks {
					left[string(p)] = true
				}
				for _, text := range says.Require {
					left["require "+string(text)] = true
				}
				require.NotEmpty(t, left)
				look := func(r *explore.Result) bool {
					for _, c := range r.Checks {
						require.NotEqual(t, check.Broken, c.Verdict, "%s: %s; %s", c.Name, c.Message, c.Schedule)
						if c.Verdict == check.Held && c.Schedule != "" {
							delete(left, c.Name)
						}
					}
					return len(left) == 0
				}
				for _, text := range known[race] {
					s, err := explore.ParseSchedule(text)
					require.NoError(t, err)
					look(run(t, read(t, path), explore.Options{Profile: profile, Schedule: s, Loose: true}))
				}
				for seed := 1; len(left) > 0; seed++ {
					require.Less(t, seed, 100, left)
					o := explore.Options{Profile: profile, Strategy: []string{explore.Random, explore.PCT}[seed%2], Schedules: 40, Until: look}
					look(run(t, read(t, path, fmt.Sprint("seed=", seed)), o))
				}
			})
		}
	}
	require.GreaterOrEqual(t, profiles, 4)
}

// A schedule of a whole cluster that does not fit is no fault of who asks: the
// course may be another one than before.
func TestACourseThatIsNotTheSameLeavesTheVerdictOpen(t *testing.T) {
	r := run(t, read(t, wholeLagFile), explore.Options{Schedule: explore.Schedule{"update", "d1>m1.raft"}})
	require.Equal(t, check.Undecided, r.Verdict)
	require.Contains(t, strings.Join(complaints(r), "\n"), "the same schedule took another course: schedule: lane d1>m1.raft cannot take turn 2")
}

func TestMisfitsOfWholeClustersAreRefused(t *testing.T) {
	const frame = "version: 1\nname: x\ncluster: {managers: 1, data: 1}\nexplore: {observe: {v: '1'}, actors: {%s}}"
	for _, row := range []struct {
		actors string
		o      explore.Options
		want   string
	}{
		{"a: [{search: {}}]", explore.Options{Strategy: explore.DFS}, "a whole cluster has too many orders to try each"},
		{
			"a: [{search: {}}]", explore.Options{Schedule: explore.Schedule{"applier"}},
			`lane "applier", which is unknown: one of [a m1.applier d1.applier m1>d1.gossip m1>d1.raft d1>m1.gossip d1>m1.raft m1>d1.gossip.2 m1>d1.raft.2 d1>m1.gossip.2 d1>m1.raft.2 m1>d1.gossip.3 m1>d1.raft.3 d1>m1.gossip.3 d1>m1.raft.3]`,
		},
		{"a: [{crash: {node: d1}}]", explore.Options{Schedule: explore.Schedule{"time"}}, `d1>m1.raft.3]`},
	} {
		f, err := scenario.Parse("x.yaml", fmt.Appendf(nil, frame, row.actors))
		require.NoError(t, err)
		_, err = explore.Run(f, row.o)
		require.ErrorIs(t, err, explore.ErrUsage)
		require.ErrorContains(t, err, row.want)
	}
}

// In a cluster of five there is room for a second stream to and from the first
// leader, and no more.
func TestInAClusterOfFiveWhatTheLeaderHearsCanOvertake(t *testing.T) {
	f, err := scenario.Parse("x.yaml", []byte(`version: 1
name: x
cluster: {managers: 3, data: 2}
explore:
  actors:
    one: [{put_group: {id: one, via: d1, name: g, resiliency_mode: soft, resource_limits: {memory: 0.1}}}]
    two: [{get_groups: {id: two, via: d1}}]
  observe: {one: one.status, two: two.status}
  forbid: [one != 200, two != 200]
`))
	require.NoError(t, err)
	_, err = explore.Run(f, explore.Options{Schedule: explore.Schedule{"nobody"}})
	require.ErrorIs(t, err, explore.ErrUsage)
	for lane, there := range map[string]bool{
		"m1>m2.raft.2": true, "d2>m1.gossip.2": true, "d1>d2.gossip": true,
		"m1>m2.raft.3": false, "m2>m3.raft.2": false, "d1>d2.gossip.2": false, "d1>d2.raft": false,
	} {
		require.Equal(t, there, slices.Contains(strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(" []", r) }), lane), lane)
	}
	// d1 asks twice at once, and m1 hears the later question first.
	s := explore.Schedule{"one", "two", "d1>m1.gossip.2"}
	r := run(t, f, explore.Options{Schedule: s})
	requireNothingBroken(t, r)
	require.True(t, uncontrolled(r) || strings.HasPrefix(r.Outcomes[0].Schedule, "one two d1>m1.gossip.2"), complaints(r))
}

// What one node cannot do a cluster can: a client that goes away while its
// search is at another node, actions before the first turn, a held search there.
func TestSearchesOfAWholeCluster(t *testing.T) {
	f, err := scenario.Parse("x.yaml", []byte(`version: 1
name: x
cluster: {managers: 1, data: 1}
groups: [{name: g, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}]
explore:
  before: [{search: {id: kept, user: ada, group: g, hold: true}}]
  actors:
    one:   [{search: {id: one, user: ada, group: g}}]
    two:   [{search: {id: two, user: bob}}]
    leave: [{cancel: {search: two}}]
  observe:
    kept: kept.status
    one: one.status
    two: two.status
    throttled: stats("m1", "g").total_throttled
`))
	require.NoError(t, err)
	r := run(t, f, explore.Options{Schedules: 30})
	requireNothingBroken(t, r)
	for _, o := range outcomes(r) {
		require.True(t, strings.HasPrefix(o, "200,429,") && strings.HasSuffix(o, ",1"), o)
	}
	require.Len(t, r.Outcomes, 2, "the client of two got its answer or went away")
}
