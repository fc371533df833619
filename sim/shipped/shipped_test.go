// Package shipped_test holds the files under scenarios/ to what they say: each
// runs and holds, under each profile that it names, and each can break.
package shipped_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const folder = "../../scenarios"

// files lists every scenario, by its path in the folder.
func files(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") {
			found = append(found, path)
		}
		return err
	}))
	require.GreaterOrEqual(t, len(found), 32)
	return found
}

func read(t *testing.T, path string, set ...string) *scenario.File {
	t.Helper()
	f, err := scenario.Read(filepath.Join(folder, filepath.FromSlash(path)), set...)
	require.NoError(t, err)
	return f
}

// run runs a file under a profile, "" for its own, with assignments made.
func run(t *testing.T, path, profile string, set ...string) *world.Result {
	t.Helper()
	r, err := world.Run(read(t, path, set...), world.Options{Path: "scenarios/" + path, Profile: profile, Set: set})
	require.NoError(t, err)
	return r
}

// runs says whether a file runs, and is not just an exploration, which package
// explore is tested with.
func runs(f *scenario.File) bool { return f.Explore == nil || len(f.Steps)+len(f.Load) > 0 }

func TestEveryFileHolds(t *testing.T) {
	for _, path := range files(t) {
		f := read(t, path)
		if !runs(f) {
			continue
		}
		profiles := []string{f.Filled().Profile}
		for profile := range f.Under {
			profiles = append(profiles, profile)
		}
		for _, profile := range profiles {
			t.Run(path+"/"+profile, func(t *testing.T) {
				t.Parallel()
				requireHeld(t, run(t, path, profile))
			})
		}
	}
}

func requireHeld(t *testing.T, r *world.Result) {
	t.Helper()
	if r.Verdict == check.Held {
		return
	}
	for _, c := range r.Checks {
		if c.Verdict != check.Held {
			t.Errorf("%s:%d: %s: %s %s", r.File, c.Line, c.Verdict, c.Name, c.Message)
		}
	}
	t.Fatalf("%s; %s", r.Verdict, r.Repeat)
}

// flaws plants one in each file: a switch of the review's, a limit, a fault
// that lasts longer. The file must notice.
var flaws = map[string][]string{
	"throttle/a-burst-fills-the-bucket-exactly.yaml":             {"switches.acquire=rollback"},
	"throttle/a-group-shares-one-bucket.yaml":                    {"groups.reports.throttling.attribute=username"},
	"throttle/a-multi-search-is-throttled-search-by-search.yaml": {"groups.two.throttling.node_limit=3"},
	"throttle/a-rejection-reaches-the-client.yaml":               {"switches.count_failure=swallows_rejection"},
	"throttle/a-point-in-time-takes-nothing.yaml":                {"groups.one.throttling.node_limit=2"},
	"throttle/a-rejection-takes-nothing.yaml":                    {"groups.two.throttling.node_limit=3"},
	"throttle/each-node-has-its-own-buckets.yaml":                {"groups.analytics.throttling.node_limit=3"},
	"throttle/each-role-has-a-bucket.yaml":                       {"groups.teams.throttling.attribute=username"},
	"throttle/each-user-has-a-bucket.yaml":                       {"groups.analytics.throttling.attribute=group"},
	"throttle/failure-returns-the-permit.yaml":                   {"groups.one.throttling.attribute=username"},
	"throttle/mixed-attributes-at-once.yaml":                     {"groups.roles.throttling.node_limit=4"},
	"throttle/no-principal-no-throttle.yaml":                     {"groups.users.throttling.attribute=group"},
	"throttle/soft-groups-are-throttled-too.yaml":                {"groups.watched.throttling.node_limit=2"},
	"throttle/success-returns-the-permit.yaml":                   {"load.chain.arrive.closed=2"},
	"lag/a-plain-map-only-loses-the-count.yaml":                  {"switches.count_failure=swallows_rejection"},
	"lag/a-rejection-survives-a-change-of-the-counters.yaml":     {"switches.counters=plain"},
	"lag/a-stale-node-keeps-the-old-limit.yaml":                  {"groups.g.throttling.node_limit=1"},
	"lag/rules-arrive-on-each-node-by-themselves.yaml":           {"cluster.settings={wlm.rule.sync_refresh_interval_ms: 1000}"},
	"lag/the-limit-holds-before-the-counters-exist.yaml":         {"switches.missing_counters=default_group"},
	"principal/a-comma-does-not-merge-users.yaml":                {"switches.principal_join=comma"},
	"principal/a-principal-stays-on-its-coordinator.yaml":        {"switches.principal_carrier=header"},
	"principal/lookalike-names-are-different-users.yaml":         {"groups.g.throttling.node_limit=2"},
	"load/a-noisy-neighbour-stays-outside.yaml":                  {"groups.shared.throttling.attribute=group"},
	"load/a-retry-storm-with-jitter.yaml":                        {"load.jitter.retry.backoff.jitter=none"},
	"load/a-retry-storm-with-one-second-waits.yaml":              {"load.herd.retry.backoff.initial=100ms"},
	"load/a-retry-storm-without-backoff.yaml":                    {"groups.g.throttling.node_limit=1"},
	"load/a-skewed-balancer-wastes-the-limit.yaml":               {"load.skewed.via=[d1, d2, d3]"},
	"load/a-slow-data-node-holds-nobody-up.yaml":                 {"groups.g.throttling.attribute=group"},
	"load/clients-that-give-up-return-their-permits.yaml":        {"load.impatient.cancel_after=1s"},
	"load/without-a-limit-the-neighbour-is-heard.yaml":           {"groups.shared.throttling={attribute: username, node_limit: 3}"},
	"settings/a-group-is-deleted-and-made-anew.yaml":             {"groups.g.throttling.node_limit=2"},
	"settings/a-group-with-rules-is-not-deleted.yaml":            {"groups.g.throttling.node_limit=2"},
	"settings/a-limit-changes-while-searches-run.yaml":           {"steps.ten.put_group.throttling.node_limit=11"},
	"settings/a-limit-flips-under-load.yaml":                     {"steps.last.put_group.throttling.node_limit=5"},
	"settings/an-attribute-changes-while-searches-run.yaml":      {"steps.by_user.put_group.throttling.attribute=group"},
	"settings/clocks-that-disagree.yaml":                         {"steps.ahead.put_group.throttling.node_limit=2"},
	"settings/management-off-and-on.yaml":                        {"steps.disable.put_settings.transient={wlm.workload_group.mode: enabled}"},
	"partition/a-leader-dies-under-writes.yaml":                  {"steps.last.put_group.name=i"},
	"partition/a-long-cut-heals-by-itself.yaml":                  {"steps.1.partition.for=100s"},
	"partition/a-lossy-network.yaml":                             {"groups.g.throttling.node_limit=5"},
	"partition/a-minority-keeps-the-old-limit.yaml":              {"steps.raise.put_group.throttling.node_limit=1"},
	"partition/a-one-way-cut.yaml":                               {"steps.one.search.timeout=30s"},
	"partition/a-starved-node-accuses-nobody.yaml":               {"steps.7.starve_gossip.node=d2", "steps.7.starve_gossip.for=60s"},
	"partition/leadership-flaps-faster-than-its-handler.yaml":    {"steps.1.disk.for=40s", "steps.2.disk.for=40s", "steps.3.disk.for=40s", "steps.1.disk.by=150ms", "steps.2.disk.by=150ms", "steps.3.disk.by=150ms"},
	"partition/leadership-moves-during-updates.yaml":             {"steps.last.put_group.throttling.node_limit=2"},
	"crash/a-coordinator-comes-back-empty.yaml":                  {"groups.g.throttling.node_limit=2"},
	"crash/a-data-node-dies-under-searches.yaml":                 {"steps.1.crash.restart_after=15s"},
	"crash/a-full-disk-stops-one-node.yaml":                      {"steps.2.disk.fault=slow", "steps.2.disk.by=1ms"},
	"crash/a-manager-loses-its-disk.yaml":                        {"steps.acknowledged.put_group.throttling.node_limit=2"},
	"crash/a-node-comes-back-at-a-new-address.yaml":              {"steps.second.join.node=d4"},
	"crash/a-slow-disk-slows-changes-alone.yaml":                 {"steps.3.disk.by=10ms"},
	"crash/everybody-restarts.yaml":                              {"steps.lower.put_group.throttling.node_limit=2"},
	"regression/a-failing-count-admits-a-search.yaml":            {"switches.count_failure=keeps_rejection"},
	"regression/a-manager-keeps-the-old-limit.yaml":              {"switches.publication=leader_first"},
	"regression/a-page-of-a-scroll-passes-a-full-bucket.yaml":    {"switches.scroll=charged"},
	"regression/a-refusal-does-not-say-whose-it-is.yaml":         {"switches.rejection_text=names_group"},
	"regression/a-rule-on-top-of-a-header-fails-a-search.yaml":   {"switches.group_header=keeps_outer"},
	"regression/a-search-refuses-itself.yaml":                    {"switches.nested=exempt"},
	"regression/a-request-is-lost-with-its-stream.yaml":          {"steps.2.at=3s"},
	"regression/an-answer-behind-a-one-way-cut-is-dropped.yaml":  {"steps.2.partition.for=1s"},
	"regression/the-first-refresh-of-the-rules-comes-late.yaml":  {"cluster.settings={wlm.rule.sync_refresh_interval_ms: 5000}"},
	"crash/the-leader-dies-half-way-through-a-change.yaml":       {"steps.unknown.put_group.throttling.node_limit=2"},

	// What OpenSearch made of it: a switch set back, or a limit.
	"upstream/a-cancelled-search-returns-its-permit-when-it-ends.yaml": {"groups.g.throttling.node_limit=2"},
	"upstream/a-comma-in-a-name-is-a-letter.yaml":                      {"switches.principal_join=comma"},
	"upstream/a-dead-node-ends-the-managers-wait.yaml":                 {"switches.publication=leader_first"},
	"upstream/a-deleted-group-throttles-nobody.yaml":                   {"groups.g.throttling.node_limit=2"},
	"upstream/a-lower-limit-lets-the-running-finish.yaml":              {"steps.lower.put_group.throttling.node_limit=5"},
	"upstream/a-manager-that-is-cut-off-stops-waiting.yaml":            {"switches.publication=leader_first"},
	"upstream/a-monitor-group-only-observes.yaml":                      {"switches.monitor=rejects"},
	"upstream/a-nested-search-is-exempt.yaml":                          {"switches.nested=charged"},
	"upstream/a-new-dimension-starts-from-zero.yaml":                   {"steps.by_user.put_group.throttling.attribute=group"},
	"upstream/a-refusal-names-the-user.yaml":                           {"groups.g.throttling.attribute=group"},
	"upstream/a-restart-forgets-permits-and-counters.yaml":             {"groups.g.throttling.node_limit=2"},
	"upstream/a-role-is-not-capped-by-its-limit.yaml":                  {"switches.role_choice=first"},
	"upstream/a-soft-group-still-refuses.yaml":                         {"groups.soft.throttling.node_limit=2"},
	"upstream/a-trailing-blank-is-lost.yaml":                           {"switches.principal_join=escaped"},
	"upstream/each-page-of-a-scroll-needs-a-permit.yaml":               {"switches.scroll=free"},
	"upstream/permits-survive-a-limit-that-is-taken-away.yaml":         {"steps.set.put_group.throttling.node_limit=3"},
	"upstream/the-manager-applies-last.yaml":                           {"switches.publication=leader_first"},
	"upstream/the-smallest-role-is-charged-whatever-the-order.yaml":    {"switches.role_choice=first"},
	"upstream/what-ran-with-management-off-never-counts.yaml":          {"groups.g.throttling.node_limit=3"},
	"upstream/who-passed-a-monitor-group-does-not-count-later.yaml":    {"switches.monitor=rejects"},
}

func TestEveryFileCanBreak(t *testing.T) {
	for _, path := range files(t) {
		if runs(read(t, path)) {
			require.Contains(t, flaws, path, "a file without a planted flaw")
		}
	}
	for path, set := range flaws {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, check.Broken, run(t, path, "", set...).Verdict)
		})
	}
}

func TestEveryFileSaysWhatItIsFor(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	var named []string
	for _, m := range regexp.MustCompile(`\]\(([a-z]+/[a-z-]+\.yaml)\)`).FindAllSubmatch(readme, -1) {
		named = append(named, string(m[1]))
	}
	slices.Sort(named)
	require.Equal(t, files(t), named, "the files, and those in the table of README.md")
	names := map[string]string{}
	for _, path := range files(t) {
		text, err := os.ReadFile(filepath.Join(folder, path))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), scenario.SchemaLine+"\n"), "%s begins with the line that names the schema", path)
		f := read(t, path)
		require.NotEmpty(t, f.About, path)
		if strings.HasPrefix(path, "clusters/") {
			require.Contains(t, f.About, "OpenSearch", path)
		}
		require.True(t, len(f.Expect) > 0 || !runs(f), path)
		require.Empty(t, names[f.Name], "%s has the name of another file", path)
		names[f.Name] = path
	}
}
