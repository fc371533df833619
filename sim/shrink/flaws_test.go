package shrink_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// flaw is a planted flaw with the known smallest form of its failure.
type flaw struct {
	file    string // in the folder of scenarios
	set     []string
	failure string
	form    []string // what is left of the steps or actors
	cheap   bool     // ordinary tests shrink it, too
}

// notRequired takes out of a file what a smaller one is not asked for, and that
// it says of the flaw that is planted in it.
var notRequired = []string{"breaks=[]", "explore.require=[]"}

// explored are flaws that explorations of one node find: each value of a switch
// that makes a difference there, and each regression of one.
var explored = []flaw{
	{"explore/the-registration-lag", []string{"switches.missing_counters=default_group"}, "rejection_attribution",
		[]string{"update: put_group", "first: search", "second: search"}, true},
	{"explore/a-count-during-a-change-of-the-map", []string{"switches.counters=plain", "switches.count_failure=swallows_rejection"}, "rejection_kept",
		[]string{"update: put_group", "first: search", "second: search"}, false},
	{"explore/exact-permits-refuse-nobody-needlessly", []string{"switches.acquire=rollback"}, "forbid first == 429 && second == 429",
		[]string{"first: search", "second: search"}, false},
	{"explore/names-with-a-comma-stay-apart", []string{"switches.principal_join=comma"}, "buckets_distinct",
		[]string{"bob: search", "mallory: search"}, true},
	{"explore/the-registration-lag", []string{"switches.principal_carrier=header"}, "principal_stays",
		[]string{"second: search"}, false},

	{"regression/a-swallowed-rejection-runs-without-a-permit", nil, "rejection_kept", []string{"update: put_group", "second: search"}, false},
	{"regression/a-count-that-meets-a-change-of-a-plain-map-is-lost", []string{"explore.forbid=[uncounted > 0]"}, "forbid uncounted > 0",
		[]string{"update: put_group", "first: search", "second: search"}, false},
	{"regression/stats-fail-while-a-plain-map-changes", []string{"explore.forbid=[status == 500]"}, "forbid status == 500",
		[]string{"update: put_group", "reader: get_stats"}, false},
	{"regression/a-rejection-on-the-default-group", nil, "rejection_attribution",
		[]string{"update: put_group", "first: search", "second: search"}, false},
	{"regression/a-header-takes-the-principal-along", nil, "principal_stays", []string{"search: search"}, false},
	{"regression/a-comma-makes-two-users-one", nil, "buckets_distinct", []string{"bob: search", "mallory: search"}, false},
	{"regression/a-comma-lends-a-role", nil, "buckets_distinct", []string{"mallory: search"}, false},
	{"regression/a-trailing-blank-makes-two-users-one", nil, "buckets_distinct", []string{"bob: search", "blank: search"}, false},
	{"regression/a-rollback-refuses-one-too-many", []string{"explore.forbid=[first == 429 && second == 429]"}, "forbid first == 429 && second == 429",
		[]string{"first: search", "second: search"}, false},
	{"regression/a-monitor-group-rejects", []string{"profile=upstream", "under={}", "explore.forbid=[second == 429]"}, "forbid second == 429",
		[]string{"second: search"}, false},
	{"regression/a-role-depends-on-the-order-of-roles", []string{"profile=upstream", "under={}", "explore.forbid=[bob and eve]"}, "forbid bob and eve",
		[]string{"bob: search", "eve: search"}, false},
}

// run are flaws that runs find: each value of a switch, and each regression that
// a switch plants. What tells the other profile's value from that of the default
// one is expected here. An expectation of a moment, as in
// upstream/a-manager-that-is-cut-off-stops-waiting, has no one smallest form: it
// depends on how early it is asked for.
var run = []flaw{
	{"principal/a-comma-does-not-merge-users", []string{"switches.principal_join=comma"}, "buckets_distinct", []string{"search", "search"}, true},
	{"lag/the-limit-holds-before-the-counters-exist", []string{"switches.missing_counters=default_group"}, "rejection_attribution",
		[]string{"hold", "put_group", "search", "search"}, false},
	{"principal/a-principal-stays-on-its-coordinator", []string{"switches.principal_carrier=header"}, "principal_stays", []string{"search"}, false},
	{"lag/a-plain-map-only-loses-the-count", []string{"switches.count_failure=swallows_rejection"}, "rejection_kept",
		[]string{"search", "hold", "put_group", "search"}, false},
	{"throttle/a-rejection-reaches-the-client", []string{"switches.count_failure=swallows_rejection"}, "rejection_kept",
		[]string{"search", "fail_counts", "search"}, false},
	{"lag/a-rejection-survives-a-change-of-the-counters", []string{"switches.counters=plain"}, `expect stats("d1", "busy").total_throttled == 2`,
		[]string{"search", "hold", "put_group", "search", "search"}, false},
	{"throttle/a-burst-fills-the-bucket-exactly", []string{"switches.acquire=rollback"}, `expect bucket_peak("d1", "ten") == 10`, nil, false},
	{"upstream/a-comma-in-a-name-is-a-letter", []string{"switches.principal_join=comma"}, "buckets_distinct", []string{"search", "search"}, false},
	{"upstream/a-trailing-blank-is-lost", []string{"breaks=[]"}, "buckets_distinct", []string{"search", "search"}, false},
	{"upstream/a-trailing-blank-is-lost", []string{"switches.principal_join=escaped"}, "expect trailing.status == 429", []string{"search", "search"}, false},
	{"upstream/a-dead-node-ends-the-managers-wait", []string{"switches.publication=leader_first"}, "expect before2.status == 200",
		[]string{"put_group", "search", "search"}, false},
	{"upstream/the-manager-applies-last", []string{"switches.publication=leader_first"}, "expect manager2.status == 200",
		[]string{"put_group", "search", "search"}, false},
	{"upstream/a-monitor-group-only-observes", []string{"switches.monitor=rejects"}, "expect second.status == 200 and third.status == 200",
		[]string{"search", "search"}, false},
	{"upstream/who-passed-a-monitor-group-does-not-count-later", []string{"switches.monitor=rejects"},
		"expect passed1.status == 200 and passed2.status == 200 and not passed1.permit and not passed2.permit",
		[]string{"search", "put_group", "search", "search"}, false},
	{"upstream/a-nested-search-is-exempt", []string{"switches.nested=charged"}, "expect outer.status == 200 and outer.permit", []string{"search"}, false},
	{"upstream/each-page-of-a-scroll-needs-a-permit", []string{"switches.scroll=free"},
		"expect first.permit and second.status == 200 and second.permit", []string{"search", "search"}, false},
	{"upstream/a-role-is-not-capped-by-its-limit", []string{"switches.role_choice=first"}, "expect admin.permit and reader.permit", []string{"search", "search"}, false},
	{"upstream/the-smallest-role-is-charged-whatever-the-order", []string{"switches.role_choice=first"},
		`expect ben.status == 429 and ben.error.reason contains "for role [a_team]"`, []string{"search", "search"}, false},

	{"regression/a-failing-count-admits-a-search", notRequired[:1], "rejection_kept", []string{"search", "fail_counts", "search"}, false},
	{"regression/a-manager-keeps-the-old-limit", []string{"expect=[manager2.status == 429]"}, "expect manager2.status == 429",
		[]string{"put_group", "search", "search"}, false},
	{"regression/a-page-of-a-scroll-passes-a-full-bucket", []string{"profile=upstream", "under={}", "expect=[page.status == 429]"}, "expect page.status == 429",
		[]string{"search", "search", "search"}, false},
	{"regression/a-search-refuses-itself", []string{"profile=upstream", "under={}", "expect=[alone.status == 200]"}, "expect alone.status == 200",
		[]string{"search"}, false},
	{"regression/a-rule-on-top-of-a-header-fails-a-search", []string{"profile=upstream", "under={}", "expect=[outer.status == 200]"}, "expect outer.status == 200",
		[]string{"search"}, false},
	{"regression/a-refusal-does-not-say-whose-it-is", []string{"profile=upstream", "under={}", "expect=[one.error.reason != two.error.reason]"},
		"expect one.error.reason != two.error.reason", []string{"search", "search", "search", "search"}, false},
}

// byEvents are the promises that no switch, step or limit of a file breaks, as
// far as is known: package check plants their flaws as events.
var byEvents = []scenario.Promise{
	scenario.PermitsBounded, scenario.PermitsReturn, scenario.OneOutcome, scenario.CountersAddUp, scenario.VersionsForward,
	scenario.StatesEqual, scenario.HistoryLinearizable, scenario.Settles,
}

// Every promise that a file can break is broken by a flaw that is shrunk, by a
// run and by an exploration, and every switch in which two profiles differ plants
// one, but for dimension_key, which is how an attribute is written.
func TestEveryPlantedFlawIsShrunk(t *testing.T) {
	switches := map[string]bool{"dimension_key": true}
	for _, all := range [][]flaw{run, explored} {
		shown := map[string]bool{}
		for _, f := range all {
			shown[f.failure] = true
			for name := range f.read(t).Switches {
				switches[name] = true
			}
		}
		for _, m := range scenario.Promises() {
			require.Equal(t, !slices.Contains(byEvents, m.Promise), shown[string(m.Promise)], m.Promise)
		}
	}
	first, err := wlm.Profile(wlm.Profiles()[0])
	require.NoError(t, err)
	for _, name := range wlm.Profiles()[1:] {
		profile, err := wlm.Profile(name)
		require.NoError(t, err)
		for _, s := range profile.Names() {
			require.True(t, switches[s] || profile.Get(s) == first.Get(s), s)
		}
	}
}

// of returns the flaws to shrink: all of them in a long run, and else those that
// stand for their kind.
func of(all []flaw) []flaw {
	if soaked() {
		return all
	}
	var some []flaw
	for _, f := range all {
		if f.cheap {
			some = append(some, f)
		}
	}
	return some
}

func (f *flaw) read(t testing.TB) *scenario.File {
	t.Helper()
	file, err := scenario.Read("../../scenarios/"+f.file+".yaml", f.set...)
	require.NoError(t, err)
	if file.Explore != nil {
		file, err = file.Set(notRequired...)
		require.NoError(t, err)
	}
	return file
}
