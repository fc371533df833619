package cluster_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
)

func ptr[T any](v T) *T { return &v }

func group(id, name string) cluster.Group {
	return cluster.Group{ID: id, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.01}, UpdatedAt: 1}
}

func throttled(id, name string, by cluster.Attribute, limit int64) cluster.Group {
	g := group(id, name)
	g.Throttling = &cluster.Throttling{Attribute: by, NodeLimit: &limit}
	return g
}

// apply returns the state after commands none of which may be refused.
func apply(t require.TestingT, s *cluster.State, commands ...cluster.Command) *cluster.State {
	for _, c := range commands {
		next, err := cluster.Apply(s, c)
		require.NoError(t, err, "%s %+v", cluster.KindName(c), c)
		s = next
	}
	return s
}

func create(g cluster.Group) cluster.Command { return &cluster.CreateGroup{Group: g} }

const needsLimit = "throttling.node_limit is required when throttling.attribute is set; set throttling as null to disable throttling instead"
const ceiling = "Effective throttle ceiling is 0 (node_limit=0); this would reject all requests. Set node_limit to a positive value, or set throttling as null to disable throttling"

// badGroups is what no client may create, with OpenSearch's message; the same
// values must be survived where they are stored already.
var badGroups = []struct {
	name    string
	spoil   func(*cluster.Group)
	kind    cluster.Kind
	message string
}{
	{"name empty", func(g *cluster.Group) { g.Name = "" }, cluster.IllegalArgument, "WorkloadGroup.name shouldn't be null, empty or more than 50 chars long"},
	{"name too long", func(g *cluster.Group) { g.Name = strings.Repeat("n", 10_000) }, cluster.IllegalArgument, "WorkloadGroup.name shouldn't be null, empty or more than 50 chars long"},
	{"name of 26 surrogate pairs", func(g *cluster.Group) { g.Name = strings.Repeat("\U0001F40C", 26) }, cluster.IllegalArgument, "WorkloadGroup.name shouldn't be null, empty or more than 50 chars long"},
	{"mode absent", func(g *cluster.Group) { g.ResiliencyMode = "" }, cluster.NullPointer, "WorkloadGroup.resiliencyMode can't be null"},
	{"mode unknown", func(g *cluster.Group) { g.ResiliencyMode = "hard" }, cluster.IllegalArgument, "Invalid value for WorkloadGroupMode: hard"},
	{"limits absent", func(g *cluster.Group) { g.ResourceLimits = nil }, cluster.NullPointer, "WorkloadGroup.resourceLimits can't be null"},
	{"limits empty", func(g *cluster.Group) { g.ResourceLimits = map[string]float64{} }, cluster.IllegalArgument, "WorkloadGroup.resourceLimits should at least have 1 resource limit"},
	{"resource unknown", func(g *cluster.Group) { g.ResourceLimits = map[string]float64{"CPU": 0.1} }, cluster.IllegalArgument, "Unknown resource type: [CPU]"},
	{"limit zero", func(g *cluster.Group) { g.ResourceLimits = map[string]float64{"cpu": 0} }, cluster.IllegalArgument, "resource value should be greater than 0 and less or equal to 1.0"},
	{"limit negative", func(g *cluster.Group) { g.ResourceLimits = map[string]float64{"cpu": -0.1} }, cluster.IllegalArgument, "resource value should be greater than 0 and less or equal to 1.0"},
	{"limit over one", func(g *cluster.Group) { g.ResourceLimits = map[string]float64{"cpu": 0.9, "memory": 1.01} }, cluster.IllegalArgument, "resource value should be greater than 0 and less or equal to 1.0"},
	{"attribute unknown", func(g *cluster.Group) { g.Throttling.Attribute = "tenant" }, cluster.IllegalArgument, "throttling.attribute must be one of [group, username, role] but was 'tenant'"},
	{"attribute in capitals", func(g *cluster.Group) { g.Throttling.Attribute = "Username" }, cluster.IllegalArgument, "throttling.attribute must be one of [group, username, role] but was 'Username'"},
	{"attribute absent", func(g *cluster.Group) { g.Throttling.Attribute = "" }, cluster.IllegalArgument, "throttling.attribute is required when a throttle limit is set"},
	{"node_limit absent", func(g *cluster.Group) { g.Throttling.NodeLimit = nil }, cluster.IllegalArgument, needsLimit},
	{"throttling of nothing", func(g *cluster.Group) { g.Throttling = &cluster.Throttling{} }, cluster.IllegalArgument, needsLimit},
	{"node_limit zero", func(g *cluster.Group) { g.Throttling.NodeLimit = ptr[int64](0) }, cluster.IllegalArgument, ceiling},
	{"node_limit negative", func(g *cluster.Group) { g.Throttling.NodeLimit = ptr[int64](-5) }, cluster.IllegalArgument, "throttling.node_limit must be non-negative but was -5"},
	{"node_limit over the greatest", func(g *cluster.Group) { g.Throttling.NodeLimit = ptr[int64](2147483648) }, cluster.IllegalArgument, "throttling.node_limit must not exceed 2147483647 but was 2147483648"},
	{"setting unknown", func(g *cluster.Group) { g.Settings = map[string]string{"search.max_bucket": "1"} }, cluster.IllegalArgument, "Unknown workload group setting: search.max_bucket; one of [override_request_values search.batched_reduce_size search.cancel_after_time_interval search.default_search_timeout search.max_buckets search.max_concurrent_shard_requests]"},
	{"setting no time", func(g *cluster.Group) { g.Settings = map[string]string{"search.default_search_timeout": "soon"} }, cluster.IllegalArgument, "Invalid value 'soon' for search.default_search_timeout: failed to parse setting [search.default_search_timeout] with value [soon] as a time value: [soon] is not -1, 0, or a whole number with a unit (nanos, micros, ms, s, m, h, d)"},
	{"setting too small", func(g *cluster.Group) { g.Settings = map[string]string{"search.batched_reduce_size": "1"} }, cluster.IllegalArgument, "Invalid value '1' for search.batched_reduce_size: Failed to parse value [1] for setting [search.batched_reduce_size] must be >= 2"},
	{"setting no boolean", func(g *cluster.Group) { g.Settings = map[string]string{"override_request_values": "yes"} }, cluster.IllegalArgument, "Invalid value 'yes' for override_request_values: Failed to parse value [yes] as only [true] or [false] are allowed."},
}

// Promise 2 and case C12: the client is refused; where the value is stored
// already, in a log or in a snapshot, the node comes up and knows what is wrong.
func TestABadGroupIsRefusedFromAClientAndKeptWhereItIsStored(t *testing.T) {
	for _, row := range badGroups {
		t.Run(row.name, func(t *testing.T) {
			bad, good := throttled("b", "bad", cluster.ByUsername, 3), throttled("g", "good", cluster.ByUsername, 3)
			row.spoil(&bad)
			err := create(bad).Validate()
			require.EqualError(t, err, row.message)
			require.Equal(t, row.kind, cluster.KindOf(err))

			if row.name == "limit over one" { // the sum alone refuses this one in the log as well
				_, err := cluster.Apply(cluster.Empty(), create(bad))
				require.EqualError(t, err, "Total resource allocation for memory will go above the max limit of 1.0.")
				return
			}
			fromLog := apply(t, cluster.Empty(), create(bad), create(good))
			fromSnapshot := decodeState(t, encodeState(t, fromLog))
			for _, s := range []*cluster.State{fromLog, fromSnapshot} {
				require.Equal(t, []string{row.message}, s.Group("b").Faults(cluster.KeyAttribute))
				require.Equal(t, &bad, s.Group("b"), "kept as it was")
				require.Empty(t, s.Group("g").Faults(cluster.KeyAttribute))
			}
		})
	}
	several := cluster.Group{Throttling: &cluster.Throttling{Attribute: "tenant"}}
	require.Len(t, several.Faults(cluster.KeyAttribute), 4, "every fault is named: limits, name, mode, throttling")
}

func TestGroupsAtTheirBoundsAreTaken(t *testing.T) {
	for _, g := range []cluster.Group{
		group("1", strings.Repeat("n", 50)),
		group("2", strings.Repeat("\U0001F40C", 25)),
		group("3", "ünïcödé, with , and |"),
		throttled("4", "greatest", cluster.ByRole, math.MaxInt32),
		throttled("5", "least", cluster.ByGroup, 1),
		{ID: "6", Name: "whole", ResiliencyMode: cluster.Monitor, ResourceLimits: map[string]float64{"cpu": 1, "memory": 1}},
		{ID: "7", Name: "set", ResiliencyMode: cluster.Soft, ResourceLimits: map[string]float64{"cpu": 1}, Settings: map[string]string{
			"search.default_search_timeout": "-1", "search.cancel_after_time_interval": "5m", "search.max_concurrent_shard_requests": "1",
			"search.batched_reduce_size": "2", "search.max_buckets": "0", "override_request_values": "true"}},
	} {
		require.NoError(t, create(g).Validate(), g.Name)
		require.Empty(t, g.Faults(cluster.KeyAttribute), g.Name)
	}
}

// What needs the state is refused by Apply; the order is count, name, sum.
func TestCreateIsRefusedInOpenSearchsOrder(t *testing.T) {
	full := func(id, name string, cpu float64) cluster.Group {
		g := group(id, name)
		g.ResourceLimits = map[string]float64{"cpu": cpu}
		return g
	}
	one := &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMaxGroups: ptr("1")}}}
	s := apply(t, cluster.Empty(), create(full("a", "first", 0.6)))
	for _, row := range []struct {
		name    string
		state   *cluster.State
		group   cluster.Group
		kind    cluster.Kind
		message string
	}{
		{"count, though the name is taken and the sum too great", apply(t, s, one), full("b", "first", 0.6), cluster.IllegalState, "Can't create more than 1 WorkloadGroups in the system."},
		{"name, though the sum is too great", s, full("b", "first", 0.6), cluster.IllegalArgument, "WorkloadGroup with name first already exists. Not creating a new one."},
		{"id", s, full("a", "other", 0.1), cluster.IllegalArgument, "WorkloadGroup with id a already exists. Not creating a new one."},
		{"the default's id", s, full(cluster.DefaultGroupID, "other", 0.1), cluster.IllegalArgument, "WorkloadGroup with id DEFAULT_WORKLOAD_GROUP already exists. Not creating a new one."},
		{"sum", s, full("b", "other", 0.41), cluster.IllegalArgument, "Total resource allocation for cpu will go above the max limit of 1.0."},
	} {
		t.Run(row.name, func(t *testing.T) {
			next, err := cluster.Apply(row.state, create(row.group))
			require.Nil(t, next)
			require.EqualError(t, err, row.message)
			require.Equal(t, row.kind, cluster.KindOf(err))
		})
	}
	apply(t, s, create(full("b", "other", 0.4))) // the whole may be given out
	// Upstream compares for equality: a bound below the present count bounds nothing.
	apply(t, apply(t, s, create(full("b", "other", 0.1))), one, create(full("c", "third", 0.1)))
}

func TestUnknownNamesAndIDs(t *testing.T) {
	for _, row := range []struct {
		command cluster.Command
		kind    cluster.Kind
		message string
	}{
		{&cluster.UpdateGroup{Name: "x"}, cluster.ResourceNotFound, "No WorkloadGroup exists with the provided name: x"},
		{&cluster.DeleteGroup{Name: "x"}, cluster.ResourceNotFound, "No WorkloadGroup exists with the provided name: x"},
		{&cluster.UpdateRule{ID: "x"}, cluster.ResourceNotFound, "Rule with ID x not found."},
		{&cluster.DeleteRule{ID: "x"}, cluster.ResourceNotFound, "Rule with ID x not found."},
		{&cluster.DeleteIndex{Name: "x"}, cluster.IndexNotFound, "no such index [x]"},
		{&cluster.RemoveNode{Name: "x"}, cluster.ResourceNotFound, "no node is named [x]"},
		{&cluster.CreateRule{Rule: cluster.Rule{WorkloadGroup: "x"}}, cluster.IllegalArgument, "x is not a valid workload group id"},
		{&cluster.CreateIndex{Name: "x", Shards: 1}, cluster.ClusterBlock, "index [x] cannot be created: the cluster has no data node yet"},
	} {
		next, err := cluster.Apply(cluster.Empty(), row.command)
		require.Nil(t, next)
		require.EqualError(t, err, row.message)
		require.Equal(t, row.kind, cluster.KindOf(err))
	}
}

func TestRulesAreRefusedWithOpenSearchsMessages(t *testing.T) {
	eleven := strings.Split(strings.Repeat("v", 11), "")
	for _, row := range []struct {
		name    string
		rule    cluster.Rule
		message string
	}{
		{"no description", cluster.Rule{WorkloadGroup: "g", Roles: []string{"r"}}, "Rule description can't be null or empty"},
		{"long description", cluster.Rule{Description: strings.Repeat("d", 257), WorkloadGroup: "g", Roles: []string{"r"}}, "Rule description cannot exceed 256 characters."},
		{"no group", cluster.Rule{Description: "d", Roles: []string{"r"}}, "Rule featureValue can't be null or empty"},
		{"nothing", cluster.Rule{}, "Rule description can't be null or empty;2: Rule featureValue can't be null or empty;3: Rule should have at least 1 attribute requirement"},
		{"several values", cluster.Rule{Description: "d", WorkloadGroup: "g", IndexPatterns: []string{"", "logs"}, Usernames: eleven, Roles: []string{}}, "Attribute value [] is invalid (empty or exceeds 100 characters)" +
			";2: Each attribute can only have a maximum of 10 values. The input attribute principal.username has length 11, which exceeds this limit.;3: Attribute values for principal.role cannot be empty."},
		{"no attribute", cluster.Rule{Description: "d", WorkloadGroup: "g"}, "Rule should have at least 1 attribute requirement"},
		{"no values", cluster.Rule{Description: "d", WorkloadGroup: "g", IndexPatterns: []string{}}, "Attribute values for index_pattern cannot be empty."},
		{"too many values", cluster.Rule{Description: "d", WorkloadGroup: "g", Usernames: eleven}, "Each attribute can only have a maximum of 10 values. The input attribute principal.username has length 11, which exceeds this limit."},
		{"blank value", cluster.Rule{Description: "d", WorkloadGroup: "g", Roles: []string{"ok", " "}}, "Attribute value [ ] is invalid (empty or exceeds 100 characters)"},
		{"long value", cluster.Rule{Description: "d", WorkloadGroup: "g", Roles: []string{strings.Repeat("r", 101)}}, "Attribute value [" + strings.Repeat("r", 101) + "] is invalid (empty or exceeds 100 characters)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := (&cluster.CreateRule{Rule: row.rule}).Validate()
			require.EqualError(t, err, row.message)
			require.Equal(t, cluster.Validation, cluster.KindOf(err))
		})
	}
	full := cluster.Rule{Description: strings.Repeat("d", 256), WorkloadGroup: "g", Usernames: eleven[:10], Roles: []string{strings.Repeat("r", 100)}}
	require.NoError(t, (&cluster.CreateRule{Rule: full}).Validate())
	require.NoError(t, (&cluster.UpdateRule{ID: "r"}).Validate(), "an update may give nothing")
	require.EqualError(t, (&cluster.UpdateRule{ID: "r", Usernames: []string{""}}).Validate(), "Attribute value [] is invalid (empty or exceeds 100 characters)")
}

func TestRulesAreUniqueAndCounted(t *testing.T) {
	rule := func(id string, users ...string) *cluster.CreateRule {
		return &cluster.CreateRule{Rule: cluster.Rule{ID: id, Description: "d", WorkloadGroup: "g", Usernames: users}}
	}
	ten := &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingMaxRules: ptr("10")}}}
	s := apply(t, cluster.Empty(), ten, create(group("g", "g")), rule("1", "a", "b"))
	refused := func(c cluster.Command, kind cluster.Kind, message string) {
		t.Helper()
		_, err := cluster.Apply(s, c)
		require.EqualError(t, err, message)
		require.Equal(t, kind, cluster.KindOf(err))
	}
	refused(rule("1", "c"), cluster.IllegalArgument, "Rule with ID 1 already exists.")
	refused(rule("2", "b", "a"), cluster.IllegalArgument, "Duplicate rule exists under id 1")
	refused(rule("2", "b", "a", "b"), cluster.IllegalArgument, "Duplicate rule exists under id 1")
	s = apply(t, s, rule("2", "a"))
	refused(&cluster.UpdateRule{ID: "2", Usernames: []string{"b", "a"}}, cluster.IllegalArgument, "Duplicate rule exists under id 1")
	refused(&cluster.UpdateRule{ID: "2", WorkloadGroup: "x"}, cluster.IllegalArgument, "x is not a valid workload group id")
	s = apply(t, s, &cluster.UpdateRule{ID: "2", Description: "new", Roles: []string{"r"}, UpdatedAt: 9})
	require.Equal(t, &cluster.Rule{ID: "2", Description: "new", WorkloadGroup: "g", Usernames: []string{"a"}, Roles: []string{"r"}, UpdatedAt: 9}, s.Rule("2"))
	apply(t, s, &cluster.UpdateRule{ID: "2", Usernames: []string{"a"}, Roles: []string{"r"}}) // a rule is no duplicate of itself
	for n := range 8 {
		s = apply(t, s, rule(fmt.Sprint("more", n), fmt.Sprint("user", n)))
	}
	refused(rule("last", "z"), cluster.TooMany, "This create operation will violate the cardinality limit of 10. Please delete some stale or redundant rules first")
}

// Case C14: a group goes when the last rule that points to it has gone.
func TestAGroupThatRulesPointToIsNotDeleted(t *testing.T) {
	s := apply(t, cluster.Empty(), create(group("g", "analytics")), create(group("h", "other")))
	for n := range 11 {
		s = apply(t, s, &cluster.CreateRule{Rule: cluster.Rule{ID: fmt.Sprintf("rule-%02d", n), Description: "d", WorkloadGroup: "g", Usernames: []string{fmt.Sprint(n)}}})
	}
	remove := &cluster.DeleteGroup{Name: "analytics"}
	refused := func(message string) {
		t.Helper()
		_, err := cluster.Apply(s, remove)
		require.EqualError(t, err, message)
		require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
	}
	refused("WorkloadGroup analytics cannot be deleted because rules still point to it: [rule-00, rule-01, rule-02, rule-03, rule-04, rule-05, rule-06, rule-07, rule-08, rule-09 and 1 more]. Delete these rules or point them to another group first.")
	for n := range 10 {
		s = apply(t, s, &cluster.DeleteRule{ID: fmt.Sprintf("rule-%02d", n)})
	}
	refused("WorkloadGroup analytics cannot be deleted because rules still point to it: [rule-10]. Delete these rules or point them to another group first.")
	s = apply(t, s, &cluster.UpdateRule{ID: "rule-10", WorkloadGroup: "h"}, remove)
	require.Nil(t, s.GroupNamed("analytics"))
}

func TestSettingsAreRefusedWithOpenSearchsMessages(t *testing.T) {
	for _, row := range []struct{ key, value, message string }{
		{"wlm.workload_group.mod", "enabled", "persistent setting [wlm.workload_group.mod], not recognized"},
		{cluster.SettingMode, "on", "Invalid value for WlmMode: on"},
		{cluster.SettingDuressStreak, "2", "Failed to parse value [2] for setting [wlm.workload_group.duress_streak] must be >= 3"},
		{cluster.SettingDuressStreak, "%key", "Failed to parse value [%key] for setting [wlm.workload_group.duress_streak]"},
		{cluster.SettingEnforcementInterval, "999", "Failed to parse value [999] for setting [wlm.workload_group.enforcement_interval] must be >= 1000"},
		{cluster.SettingCPURejection, "0.91", "wlm.workload_group.node.cpu_rejection_threshold value cannot be greater than 0.90 as it can result in a node drop"},
		{cluster.SettingMemoryRejection, "NaN", "Failed to parse value [NaN] for setting [wlm.workload_group.node.memory_rejection_threshold]"},
		{cluster.SettingCPUCancellation, "0.96", "wlm.workload_group.node.cpu_cancellation_threshold value cannot be greater than 0.95 as it can result in a node drop"},
		{cluster.SettingMemoryCancellation, "1", "wlm.workload_group.node.memory_cancellation_threshold value cannot be greater than 0.95 as it can result in a node drop"},
		{cluster.SettingMaxGroups, "0", "node.workload_group.max_count should be in range [1-100]."},
		{cluster.SettingMaxGroups, "101", "node.workload_group.max_count should be in range [1-100]."},
		{cluster.SettingRuleRefresh, "999", "Failed to parse value [999] for setting [wlm.rule.sync_refresh_interval_ms] must be >= 1000"},
		{cluster.SettingMaxRules, "9", "Failed to parse value [9] for setting [wlm.autotagging.max_rules] must be >= 10"},
		{cluster.SettingPublishTimeout, "30", "failed to parse setting [cluster.publish.timeout] with value [30] as a time value: [30] is not -1, 0, or a whole number with a unit (nanos, micros, ms, s, m, h, d)"},
		{cluster.SettingAllowPartialResults, "TRUE", "Failed to parse value [TRUE] as only [true] or [false] are allowed."},
	} {
		t.Run(row.key+"="+row.value, func(t *testing.T) {
			change := cluster.SettingsChange{Persistent: map[string]*string{row.key: &row.value}}
			err := (&cluster.PutSettings{SettingsChange: change}).Validate()
			require.EqualError(t, err, row.message)
			require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
			// Stored already, it is kept and the default holds.
			stored, err := cluster.Apply(cluster.Empty(), &cluster.PutSettings{SettingsChange: change})
			if row.key == cluster.SettingCPURejection { // it passes the cancellation threshold, which needs the state
				require.EqualError(t, err, "wlm.workload_group.node.cpu_cancellation_threshold value should not be less than wlm.workload_group.node.cpu_rejection_threshold")
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.value, stored.Settings().Get(row.key))
			require.Equal(t, cluster.Empty().Mode(), stored.Mode())
			require.Equal(t, cluster.Empty().PublishTimeout(), stored.PublishTimeout())
			require.Equal(t, cluster.Empty().RuleRefresh(), stored.RuleRefresh())
			require.Equal(t, cluster.Empty().AllowPartialResults(), stored.AllowPartialResults())
		})
	}
	static := cluster.SettingsChange{Transient: map[string]*string{cluster.SettingRuleRefresh: ptr("1000")}}
	require.NoError(t, static.Validate(false))
	require.EqualError(t, static.Validate(true), "transient setting [wlm.rule.sync_refresh_interval_ms], not dynamically updateable")
	for key, known := range cluster.KnownSettings() {
		ok := cluster.SettingsChange{Persistent: map[string]*string{key: &known.Default}}
		require.NoError(t, ok.Validate(false), "the default of %s is valid", key)
		require.Equal(t, known.Default, cluster.Settings{}.Get(key))
		require.Equal(t, known.Dynamic, ok.Validate(true) == nil)
	}
}

func TestACancellationThresholdMustNotBeBelowTheRejectionOne(t *testing.T) {
	low := cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingCPUCancellation: ptr("0.7")}}
	_, err := cluster.Apply(cluster.Empty(), &cluster.PutSettings{SettingsChange: low})
	require.EqualError(t, err, "wlm.workload_group.node.cpu_cancellation_threshold value should not be less than wlm.workload_group.node.cpu_rejection_threshold")
	low.Persistent[cluster.SettingCPURejection] = ptr("0.7")
	apply(t, cluster.Empty(), &cluster.PutSettings{SettingsChange: low})
}

func TestTransientCoversPersistentCoversDefault(t *testing.T) {
	put := func(persistent, transient *string) *cluster.PutSettings {
		return &cluster.PutSettings{SettingsChange: cluster.SettingsChange{
			Persistent: map[string]*string{cluster.SettingMode: persistent}, Transient: map[string]*string{cluster.SettingMode: transient}}}
	}
	s := cluster.Empty()
	require.Equal(t, cluster.MonitorOnly, s.Mode())
	s = apply(t, s, put(ptr("enabled"), ptr("disabled")))
	require.Equal(t, cluster.Disabled, s.Mode())
	s = apply(t, s, put(ptr("enabled"), nil))
	require.Equal(t, cluster.Enabled, s.Mode())
	s = apply(t, s, put(nil, nil))
	require.Equal(t, cluster.MonitorOnly, s.Mode())
	require.Equal(t, cluster.Settings{}, s.Settings())
	require.True(t, cluster.SettingsChange{}.Empty())
	require.False(t, put(nil, nil).Empty())
}

func TestIndicesAndNodesAreRefused(t *testing.T) {
	index := func(name string, shards int) *cluster.CreateIndex {
		return &cluster.CreateIndex{Name: name, Shards: shards}
	}
	for _, row := range []struct {
		command cluster.Command
		message string
	}{
		{index("", 1), "Invalid index name [], must not be empty, '.' or '..'"},
		{index("..", 1), "Invalid index name [..], must not be empty, '.' or '..'"},
		{index("Logs", 1), "Invalid index name [Logs], must be lowercase"},
		{index("_logs", 1), "Invalid index name [_logs], must not start with '_', '-', or '+'"},
		{index("lo*gs", 1), `Invalid index name [lo*gs], must not contain the following characters [ , ", *, \, <, |, ,, >, /, ?, #, :]`},
		{index(strings.Repeat("l", 256), 1), "Invalid index name [" + strings.Repeat("l", 256) + "], index name is too long, (256 > 255)"},
		{index("logs", 0), "Failed to parse value [0] for setting [index.number_of_shards] must be >= 1 and <= 1024"},
		{index("logs", 1025), "Failed to parse value [1025] for setting [index.number_of_shards] must be >= 1 and <= 1024"},
		{&cluster.CreateIndex{Name: "logs", Shards: 1, ServiceTime: cluster.ServiceTime{Distribution: "zipf"}}, `index.wlmsim.service_time: service time distribution "zipf" is unknown: one of constant, exponential, lognormal, uniform, pareto`},
		{&cluster.CreateIndex{Name: "logs", Shards: 1, ServiceTime: cluster.ServiceTime{Mean: -1}}, "index.wlmsim.service_time: service time -1ns is out of bounds: 0s to 24h0m0s"},
		{&cluster.CreateIndex{Name: "logs", Shards: 1, ServiceTime: cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 2, P99: 1}}, "index.wlmsim.service_time: a lognormal service time needs 0s < p50 <= p99 but p50 was 2ns and p99 was 1ns"},
		{&cluster.CreateIndex{Name: "logs", Shards: 1, ServiceTime: cluster.ServiceTime{Distribution: cluster.Uniform, Min: 2, Max: 1}}, "index.wlmsim.service_time: a uniform service time needs min <= max but min was 2ns and max was 1ns"},
		{&cluster.CreateIndex{Name: "logs", Shards: 1, ServiceTime: cluster.ServiceTime{Distribution: cluster.Pareto, Min: 1, Alpha: 1}}, "index.wlmsim.service_time: a pareto service time needs min over 0s and alpha over 1, so that it has a mean, but min was 1ns and alpha was 1"},
		{&cluster.PutNode{Node: cluster.Node{Name: "n"}}, "a node needs a name and an id but had [n] and []"},
		{&cluster.PutNode{Node: cluster.Node{Name: "n", ID: "i", Roles: []cluster.Role{"ingest"}}}, "unknown role [ingest]: one of [cluster_manager, data]"},
	} {
		err := row.command.Validate()
		require.EqualError(t, err, row.message)
		require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
	}
	require.NoError(t, index("logs-2026.11", 1024).Validate())
	// A bound on memory holds whatever the log says.
	s := apply(t, cluster.Empty(), &cluster.PutNode{Node: cluster.Node{Name: "d", ID: "i", Roles: []cluster.Role{cluster.Data}}})
	_, err := cluster.Apply(s, index("logs", math.MaxInt))
	require.Error(t, err)
	s = apply(t, s, index("logs", 2))
	_, err = cluster.Apply(s, &cluster.CreateIndex{Name: "logs", Shards: 1})
	require.EqualError(t, err, "index [logs/] already exists")
	require.Equal(t, cluster.ResourceExists, cluster.KindOf(err))
}
