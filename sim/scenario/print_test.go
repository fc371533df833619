package scenario_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Promise 3: what is printed parses to an equal file, whatever is in it.
func TestWhatIsPrintedParsesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		text := scenario.Print(f)
		back, err := scenario.Parse("file.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !scenario.Equal(f, back) {
			t.Fatalf("printed:\n%s\nread back:\n%s", text, scenario.Print(back))
		}
	})
}

// Readers of older YAML take some words for true, false or numbers.
func TestWordsThatOtherReadersTakeForValuesAreQuoted(t *testing.T) {
	f := &scenario.File{Version: 1, Name: "Off", About: "a: b"}
	for _, name := range []string{"on", "y", "NULL", "1e3", "plain"} {
		f.Groups = append(f.Groups, scenario.Group{Name: name})
	}
	require.Equal(t, `version: 1
name: "Off"
about: "a: b"
groups:
  - {name: "on"}
  - {name: "y"}
  - {name: "NULL"}
  - {name: "1e3"}
  - {name: plain}
`, string(scenario.Print(f)))
}

// Promises 1 and 3: any text is a file or has faults; a file prints as it parses.
func FuzzParse(f *testing.F) {
	for _, path := range []string{"testdata/design.yaml", "testdata/explore.yaml", "testdata/faults.yaml", "starter.yaml"} {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, item := range scenario.Catalog() {
		f.Add(base + "steps:\n" + item.Example)
	}
	f.Add("a: |\n  x\nb: >-\n  y\n? c\n: {[a]: 1}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := scenario.Parse("file.yaml", []byte(text))
		if err != nil {
			require.IsType(t, scenario.Faults{}, err)
			require.NotEmpty(t, err.Error())
			return
		}
		printed := scenario.Print(file)
		back, err := scenario.Parse("printed.yaml", printed)
		require.NoError(t, err, string(printed))
		require.True(t, scenario.Equal(file, back), string(printed))
		require.Equal(t, string(printed), string(scenario.Print(back)))
		require.NotNil(t, file.Filled())
	})
}

// Promise 5: any assignment gives a file or faults.
func FuzzSet(f *testing.F) {
	design, err := os.ReadFile("testdata/design.yaml")
	require.NoError(f, err)
	for _, set := range []string{"groups.analytics.throttling.node_limit=5", "steps.1.at=1s", "load.nightly.via=[m1]", "users.alice.roles=[]", "under.submitted.expect=['true']", "cluster.settings.a.b=c", "explore.actors={}", "=", "name={"} {
		f.Add(set)
	}
	f.Fuzz(func(t *testing.T, set string) {
		file, err := scenario.Parse("design.yaml", design, set)
		if err != nil {
			require.IsType(t, scenario.Faults{}, err)
			return
		}
		back, err := scenario.Parse("printed.yaml", scenario.Print(file))
		require.NoError(t, err)
		require.True(t, scenario.Equal(file, back))
	})
}

func FuzzParseTrace(f *testing.F) {
	f.Add("time,user,roles,index,service_time\n0s,alice,analyst;admin,logs,50ms\n")
	f.Add("time,user,roles,index,service_time\n0s,\"")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := scenario.ParseTrace("t.csv", []byte(text))
		if err != nil {
			require.IsType(t, scenario.Faults{}, err)
			return
		}
		for _, row := range rows {
			require.GreaterOrEqual(t, row.At, time.Duration(0))
		}
	})
}

// The generators below draw only what the format allows.

func drawFile(t *rapid.T) *scenario.File {
	f := &scenario.File{
		Version: 1, Name: rapid.String().Draw(t, "name"), About: rapid.String().Draw(t, "about"), Seed: rapid.Uint64().Draw(t, "seed"),
		Profile: rapid.SampledFrom([]string{"", "reviewed", "submitted"}).Draw(t, "profile"),
		Cluster: drawCluster(t), Users: drawUsers(t), Groups: drawGroups(t),
		Breaks: rapid.SampledFrom([][]scenario.Promise{nil, {scenario.Settles}, {scenario.PermitsReturn, scenario.OneOutcome}}).Draw(t, "breaks"),
		Expect: drawExpressions(t),
	}
	f.Load = list(t, 2, drawLoad)
	for i := range f.Load {
		f.Load[i].Name = fmt.Sprintf("load%d", i)
	}
	f.Steps = list(t, 6, func(t *rapid.T) scenario.Step {
		return scenario.Step{At: drawTime(t), Action: drawAction(t)}
	})
	if rapid.Bool().Draw(t, "scroll") {
		first := scenario.Search{Request: scenario.Request{ID: "scrolled"}, Scroll: drawPositive(t)}
		at := drawTime(t)
		f.Steps = append(f.Steps, scenario.Step{At: at, Action: scenario.Action{Search: &first}},
			scenario.Step{At: at, Action: scenario.Action{Search: &scenario.Search{Request: drawRequest(t), PageOf: "scrolled"}}})
	}
	if rapid.Bool().Draw(t, "point") {
		at := drawTime(t)
		f.Steps = append(f.Steps,
			scenario.Step{At: at, Action: scenario.Action{OpenPit: &scenario.OpenPit{Request: scenario.Request{ID: "opened"}, KeepAlive: drawPositive(t)}}},
			scenario.Step{At: at, Action: scenario.Action{Search: &scenario.Search{Request: drawRequest(t), Pit: "opened"}}},
			scenario.Step{At: at, Action: scenario.Action{ClosePit: &scenario.ClosePit{Request: drawRequest(t), Pit: "opened"}}})
	}
	if rapid.Bool().Draw(t, "explore") {
		f.Explore, f.Cluster.Managers, f.Cluster.Data = drawExplore(t), 2, 3 // no more are explored whole
		f.Steps = append(f.Steps, scenario.Step{Action: scenario.Action{Expect: []scenario.Expression{"true"}}})
	}
	return f
}

func list[T any](t *rapid.T, most int, draw func(*rapid.T) T) []T {
	var all []T
	for range rapid.IntRange(0, most).Draw(t, "count") {
		all = append(all, draw(t))
	}
	return all
}

func maybe[T any](t *rapid.T, v T) *T {
	if rapid.Bool().Draw(t, "given") {
		return &v
	}
	return nil
}

func drawTime(t *rapid.T) scenario.Duration {
	units := []int64{1, 1000, 1e6, 1e9, 60e9, 3600e9}
	return scenario.Duration(rapid.Int64Range(0, 1000).Draw(t, "n") * rapid.SampledFrom(units).Draw(t, "unit"))
}

func drawPositive(t *rapid.T) scenario.Duration { return drawTime(t) + 1 }

func drawRange(t *rapid.T) scenario.Range {
	low := drawTime(t)
	return scenario.Range{Min: low, Max: low + drawTime(t)}
}

func drawShare(t *rapid.T) float64 { return rapid.Float64Range(0, 1).Draw(t, "share") }

func drawService(t *rapid.T) scenario.ServiceTime {
	mean := drawPositive(t)%scenario.Duration(time.Hour) + 1
	return rapid.SampledFrom([]scenario.ServiceTime{
		{}, {Fixed: mean}, {Exponential: &scenario.Exponential{Mean: mean}}, {Lognormal: &scenario.Lognormal{P50: mean, P99: 2 * mean}},
		{Pareto: &scenario.Pareto{Min: mean, Alpha: 1.5}},
	}).Draw(t, "service time")
}

func drawCluster(t *rapid.T) scenario.Cluster {
	c := scenario.Cluster{
		Managers: rapid.IntRange(1, 9).Draw(t, "managers"), Data: rapid.IntRange(2, 20).Draw(t, "data"),
		Storage: rapid.SampledFrom([]string{"", "memory", "bolt"}).Draw(t, "storage"),
		Workers: rapid.IntRange(0, 9).Draw(t, "workers"), Queue: rapid.IntRange(0, 9).Draw(t, "queue"),
		Network: drawNetwork(t), Indices: map[string]scenario.Index{"logs": {}},
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "indices") {
		c.Indices[fmt.Sprintf("i%d", i)] = scenario.Index{Shards: rapid.IntRange(0, 1024).Draw(t, "shards"), ServiceTime: maybe(t, drawService(t))}
	}
	if rapid.Bool().Draw(t, "settings") {
		c.Settings = map[string]scenario.Setting{cluster.SettingMaxGroups: "50", cluster.SettingAllowPartialResults: "false", cluster.SettingSearchTimeout: "5s"}
		c.Delays = map[string]scenario.Range{string(drawStep(t)): drawRange(t)}
	}
	return c
}

func drawNetwork(t *rapid.T) scenario.Network {
	return scenario.Network{Latency: maybe(t, drawRange(t)), Loss: drawShare(t), Duplicate: drawShare(t), Reorder: drawShare(t)}
}

func drawUsers(t *rapid.T) map[string]scenario.User {
	users := map[string]scenario.User{}
	for _, name := range rapid.SliceOfN(drawName(), 0, 3).Draw(t, "users") {
		users[name] = scenario.User{Roles: list(t, 2, func(t *rapid.T) string { return drawName().Draw(t, "role") })}
	}
	if len(users) == 0 {
		return nil
	}
	return users
}

func drawName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(1, 40, 200), rapid.SampledFrom([]string{"on", "no", "null", "~", "1e3", "0x10", "- a", "a: b", "a #b", " x ", "<<", "{", "*a", "&a", "!a", "%a", "@a", "`", "?", ":", "|", ">", "'", `"`, "\u2028", "\ufeff", "a\nb", "---", "...", "\t", "=", "2001-01-01", "é"}))
}

func drawGroups(t *rapid.T) []scenario.Group {
	groups := []scenario.Group{{Name: "analytics", ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.1}}}
	for i, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, 80), 0, 3, rapid.ID[string]).Draw(t, "groups") {
		g := scenario.Group{Name: fmt.Sprint(i, name), ResiliencyMode: cluster.Soft, ResourceLimits: map[string]float64{"memory": rapid.Float64Range(0.001, 0.3).Draw(t, "limit")}}
		if rapid.Bool().Draw(t, "throttled") {
			g.Throttling = &scenario.Throttling{Attribute: cluster.ByRole, NodeLimit: rapid.Int64Range(1, cluster.MaxNodeLimit).Draw(t, "limit")}
			g.Settings = map[string]scenario.Setting{"override_request_values": "true"}
		}
		groups = append(groups, g)
	}
	return groups
}

func drawLoad(t *rapid.T) scenario.Load {
	l := scenario.Load{User: rapid.String().Draw(t, "user"), Group: "analytics", Index: "logs", From: drawTime(t), For: drawPositive(t),
		ServiceTime: maybe(t, drawService(t)), Timeout: drawTime(t), AllowPartial: maybe(t, rapid.Bool().Draw(t, "partial")), CancelAfter: drawTime(t)}
	l.Via = rapid.SampledFrom([]scenario.Via{{}, {Mode: "all"}, {Mode: "random"}, {Nodes: []string{"m1", "d1"}}, {Weights: map[string]float64{"m1": 0.5, "d2": 2}}}).Draw(t, "via")
	rate := scenario.Rate{Count: rapid.Float64Range(0.01, 1e5).Draw(t, "rate"), Per: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "per")}
	l.Arrive = rapid.SampledFrom([]scenario.Arrival{{Poisson: rate}, {Constant: rate}, {Burst: &scenario.Burst{Size: 5, Every: drawPositive(t)}}, {Closed: 50, Think: drawTime(t)}}).Draw(t, "arrive")
	l.Retry = maybe(t, scenario.Retry{On: []int{429, 503}, Attempts: 3, Backoff: rapid.SampledFrom([]scenario.Backoff{{}, {Initial: 5, Factor: 1.5, Max: 50, Jitter: "equal"}}).Draw(t, "backoff")})
	return l
}

func drawStep(t *rapid.T) probe.Step { return rapid.SampledFrom(probe.Steps()).Draw(t, "step") }

func drawExpressions(t *rapid.T) []scenario.Expression {
	all := []scenario.Expression{"1 < 2", `stats("analytics").total_throttled == 0`, `state("m1").leader in ["m1", "m2"]`, "not (\n  1 > 2)", `"a: #b" != 'c'`, "true", `{"a": 1}.a == 1`}
	return list(t, 3, func(t *rapid.T) scenario.Expression { return rapid.SampledFrom(all).Draw(t, "expression") })
}

func drawRequest(t *rapid.T) scenario.Request {
	return scenario.Request{Via: rapid.SampledFrom([]string{"", "m1", "d2", "leader"}).Draw(t, "via")}
}

func drawAPI(t *rapid.T) scenario.Action {
	r := drawRequest(t)
	return rapid.SampledFrom([]scenario.Action{
		{PutGroup: &scenario.PutGroup{Group: scenario.Group{Name: "analytics", Throttling: &scenario.Throttling{}}, Request: r}},
		{PutGroup: &scenario.PutGroup{Group: scenario.Group{Name: "analytics", Throttling: &scenario.Throttling{NodeLimit: 3}}, Request: r}},
		{DeleteGroup: &scenario.DeleteGroup{Name: "analytics", Request: r}},
		{GetGroups: &scenario.GetGroups{Request: r, Local: rapid.Bool().Draw(t, "local")}},
		{GetStats: &scenario.GetStats{Group: "analytics", Request: r}},
		{PutSettings: &scenario.PutSettings{Persistent: map[string]scenario.Setting{cluster.SettingMode: "disabled"}, Request: r}},
		{PutRule: &scenario.PutRule{Rule: scenario.Rule{Name: drawName().Draw(t, "rule"), WorkloadGroup: "analytics", Roles: []string{"r"}}, Request: r}},
		{CreateIndex: &scenario.CreateIndex{Name: "new", Index: scenario.Index{Shards: 2, ServiceTime: maybe(t, drawService(t))}, Request: r}},
		{DeleteIndex: &scenario.DeleteIndex{Name: "logs", Request: r}},
		{Search: &scenario.Search{Request: r, User: rapid.String().Draw(t, "user"), Group: "analytics", Index: "lo*,logs", ServiceTime: maybe(t, drawService(t)), Timeout: drawTime(t), AllowPartial: maybe(t, true), Size: rapid.IntRange(0, 100).Draw(t, "size"), Unread: rapid.Bool().Draw(t, "unread")}},
	}).Draw(t, "request")
}

func drawAction(t *rapid.T) scenario.Action {
	if rapid.Bool().Draw(t, "api") {
		return drawAPI(t)
	}
	between := scenario.Between{Sides: []scenario.Side{{Nodes: []string{"m1", "d1"}}, {Word: "rest"}}, OneWay: rapid.Bool().Draw(t, "one way"), For: drawTime(t)}
	return rapid.SampledFrom([]scenario.Action{
		{Partition: &scenario.Partition{Between: between}},
		{Link: &scenario.Link{Between: between, Network: scenario.Network{Loss: 0.5, Latency: maybe(t, drawRange(t))}}},
		{Crash: &scenario.Crash{Node: "all", RestartAfter: drawTime(t), Disk: "lost", NewAddress: true}},
		{Restart: &scenario.Restart{Node: "m1"}},
		{Heal: &scenario.Heal{}},
		{Leave: &scenario.Leave{Node: "leader", ReturnAfter: drawTime(t)}},
		{Join: &scenario.Join{Node: "d77"}},
		{Search: &scenario.Search{Index: "logs", Lookups: []string{"logs", "lo*"}}},
		{MultiSearch: &scenario.MultiSearch{Searches: rapid.IntRange(1, 9).Draw(t, "searches"), MaxConcurrent: rapid.IntRange(0, 9).Draw(t, "at once"), User: rapid.String().Draw(t, "user"), Group: "analytics", Index: "logs", ServiceTime: maybe(t, drawService(t)), Request: drawRequest(t)}},
		{TransferLeadership: &scenario.TransferLeadership{}},
		{TransferLeadership: &scenario.TransferLeadership{To: "m1"}},
		{Disk: &scenario.Disk{Node: "m1", Fault: "full", For: drawTime(t)}},
		{Disk: &scenario.Disk{Node: "m1", Fault: "slow", By: scenario.Range{Min: 1, Max: drawPositive(t)}}},
		{Delay: &scenario.Delay{Node: "d1", Step: drawStep(t), By: drawRange(t), Listener: rapid.String().Draw(t, "listener")}},
		{StarveGossip: &scenario.StarveGossip{Node: "d1", For: drawTime(t)}},
		{Clock: &scenario.Clock{Node: "d1", Offset: scenario.Offset(rapid.Int64Range(-1e15, 1e15).Draw(t, "offset"))}},
		{FailCounts: &scenario.FailCounts{Node: "all", Group: "analytics"}},
		{Expect: append(drawExpressions(t), "true")},
	}).Draw(t, "action")
}

func drawExplore(t *rapid.T) *scenario.Explore {
	return &scenario.Explore{
		Before:  list(t, 2, drawAPI),
		Actors:  scenario.Ordered[[]scenario.Action]{{Name: "z", Value: []scenario.Action{drawAPI(t), {Search: &scenario.Search{Request: scenario.Request{ID: "seen"}, Hold: true}}}}, {Name: "a", Value: []scenario.Action{drawAPI(t)}}},
		Observe: scenario.Ordered[scenario.Expression]{{Name: "status", Value: "seen.status"}, {Name: "count", Value: `stats("analytics").total_throttled`}},
		Forbid:  []scenario.Expression{"status == 429 and count > 1"}, Require: []scenario.Expression{"status > 0"},
	}
}
