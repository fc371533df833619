package scenario_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

const asked = base + `load: [{name: dash, arrive: {closed: 1}, for: 1s}]
steps:
  - {at: 1s, search: {id: first}}
  - {at: 1s, search: {id: late}}
  - {at: 1s, msearch: {id: several, searches: 2}}
  - {at: 2s, get_stats: {id: counted, group: analytics}}
  - {at: 2s, get_groups: {id: listed}}
  - {at: 2s, put_group: {id: put, name: analytics}}
  - {at: 3s, open_pit: {id: opened, keep_alive: 1m}}
  - {at: 3s, close_pit: {id: closed, pit: opened}}
explore:
  actors: {a: [{search: {id: s}}]}
  observe: {status: s.status, node: s.node, took: s.took}
  forbid: [status == 429 and node == "m1"]
`

func world() scenario.Env {
	return scenario.Env{
		Answers: map[string]any{
			"first": scenario.SearchAnswer{
				Answer: scenario.Answer{Status: 429, Error: scenario.Failure{Type: "rejected_execution_exception", Reason: "why"}, Node: "d1", Took: 3 * time.Millisecond},
				Permit: true, TimedOut: true, Shards: scenario.ShardsSummary{Total: 3, Successful: 2, Failed: 1, FailedNodes: []string{"d2"}},
			},
			"several": scenario.MultiAnswer{Answer: scenario.Answer{Status: 200}, Items: []scenario.SearchAnswer{{Permit: true}, {Answer: scenario.Answer{Status: 429}}}},
			"counted": scenario.StatsAnswer{Answer: scenario.Answer{Status: 200}, Stats: scenario.Stats{TotalThrottled: 7}},
			"listed":  scenario.GroupsAnswer{Answer: scenario.Answer{Status: 200}, Groups: []string{"analytics"}},
			"put":     scenario.Answer{Status: 503},
			"opened":  scenario.PointAnswer{Answer: scenario.Answer{Status: 200}, Successful: true},
			"closed":  scenario.PointAnswer{Answer: scenario.Answer{Status: 200}},
		},
		Loads: map[string]scenario.LoadAnswer{"dash": {Sent: 10, Attempts: 12, Completed: 6, Failed: 1, Throttled: 2, Cancelled: 1, ThrottledShare: 0.2,
			Latency: scenario.Latency{P50: time.Second, P90: 2 * time.Second, P99: 3 * time.Second, Max: 4 * time.Second}}},
		Stats: func(node, group string) (scenario.Stats, error) {
			return scenario.Stats{TotalCompletions: len(node), TotalRejections: len(group), TotalCancellations: 1, TotalThrottled: 2}, nil
		},
		Outcomes: func(node, group string) (scenario.Outcomes, error) {
			return scenario.Outcomes{Completed: len(node), Failed: len(group), Throttled: 3, Cancelled: 4, Uncounted: 5}, nil
		},
		Permits: func(node, group string) (scenario.Permits, error) { return scenario.Permits{Held: 2, Buckets: 1}, nil },
		State: func(node string) (scenario.NodeState, error) {
			if node == "d2" {
				return scenario.NodeState{}, errors.New("node d2 is down")
			}
			return scenario.NodeState{Version: 9, Leader: "m2", RulesVersion: 8, Members: 5}, nil
		},
		BucketPeak: func(node, group string) (int, error) { return 6, nil },
	}
}

// Promise 4: every name that expressions know is worked out from the world.
func TestExpressionsKnowTheWorld(t *testing.T) {
	f := parse(t, asked)
	vars := f.Vars(scenario.InRun, world())
	for _, e := range []scenario.Expression{
		`first.status == 429 and first.error.type == "rejected_execution_exception" and first.error.reason == "why"`,
		`first.node == "d1" and first.took < duration("5ms") and first.permit and first.timed_out`,
		`first.shards.total == 3 and first.shards.successful == 2 and first.shards.failed == 1 and "d2" in first.shards.failed_nodes`,
		`several.status == 200 and several.items[0].permit and several.items[1].status == 429 and count(several.items, .status == 429) == 1`,
		`late.status == 0 and late.node == "" and not late.permit`,
		`counted.status == 200 and counted.total_throttled == 7`,
		`listed.groups == ["analytics"] and put.status in [500, 503]`,
		`load.dash.sent == 10 and load.dash.attempts == 12 and load.dash.completed == 6 and load.dash.failed == 1`,
		`load.dash.throttled == 2 and load.dash.cancelled == 1 and load.dash.throttled_share < 0.5`,
		`load.dash.latency.p50 < load.dash.latency.p90 and load.dash.latency.p99 < load.dash.latency.max`,
		`stats("d1", "analytics").total_completions == 2 and stats("analytics").total_completions == 0`,
		`stats("analytics").total_rejections == 9 and stats("analytics").total_cancellations == 1 and stats("DEFAULT_WORKLOAD_GROUP").total_throttled == 2`,
		`outcomes("d1").completed == 2 and outcomes("d1").failed == 0 and outcomes("d1", "analytics").failed == 9`,
		`outcomes("d1").throttled == 3 and outcomes("d1").cancelled == 4 and outcomes("d1").uncounted == 5`,
		`permits("d1", "analytics").held == 2 and permits("d1", "analytics").buckets == 1`,
		`state("m1").version == 9 and state("m1").leader == "m2" and state("m1").rules_version == 8 and state("m1").members == 5`,
		`bucket_peak("d1", "analytics") == 6`,
		`stats(first.node, "analytics").total_completions == 2`,
	} {
		p, err := f.Compile(e, scenario.InRun)
		require.NoError(t, err, e)
		holds, err := p.Holds(vars)
		require.NoError(t, err, e)
		require.True(t, holds, e)
		p, err = f.Compile("not ("+e+")", scenario.InRun)
		require.NoError(t, err)
		holds, err = p.Holds(vars)
		require.NoError(t, err)
		require.False(t, holds, "the other way round")
	}
}

func TestAWorldThatCannotAnswerIsAnError(t *testing.T) {
	f := parse(t, asked)
	p, err := f.Compile(`state("d2").version > 0`, scenario.InRun)
	require.NoError(t, err)
	holds, err := p.Holds(f.Vars(scenario.InRun, world()))
	require.False(t, holds)
	require.EqualError(t, err, `state("d2").version > 0: node d2 is down`)

	_, err = f.Compile(`state("d2").verison > 0`, scenario.InRun)
	require.ErrorContains(t, err, `did you mean "version"?`)
	_, err = f.Compile(`several.items[0].statos == 200`, scenario.InRun)
	require.ErrorContains(t, err, `did you mean "status"?`)
	_, err = f.Compile(`first.status`, scenario.InRun)
	require.Error(t, err, "no truth")
}

// An exploration observes any values, and judges the observed ones.
func TestObservedValuesAreJudged(t *testing.T) {
	f := parse(t, asked)
	env := world()
	env.Answers = map[string]any{"s": scenario.SearchAnswer{Answer: scenario.Answer{Status: 429, Node: "m1", Took: time.Second}}}
	vars, seen := f.Vars(scenario.InExplore, env), map[string]any{}
	for _, o := range f.Explore.Observe {
		p, err := f.Compile(o.Value, scenario.InExplore)
		require.NoError(t, err)
		seen[o.Name], err = p.Eval(vars)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]any{"status": 429, "node": "m1", "took": time.Second}, seen)
	forbidden, err := f.Compile(f.Explore.Forbid[0], scenario.InOutcome)
	require.NoError(t, err)
	holds, err := forbidden.Holds(seen)
	require.NoError(t, err)
	require.True(t, holds)
	seen["status"] = 200
	holds, err = forbidden.Holds(seen)
	require.NoError(t, err)
	require.False(t, holds)
}

func BenchmarkObserve(b *testing.B) {
	f, err := scenario.Parse("f", []byte(asked))
	require.NoError(b, err)
	p, err := f.Compile(`s.status`, scenario.InExplore)
	require.NoError(b, err)
	env := world()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(f.Vars(scenario.InExplore, env)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(asked)
	for b.Loop() {
		if _, err := scenario.Parse("f", text); err != nil {
			b.Fatal(err)
		}
	}
}
