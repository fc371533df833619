package cluster_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
)

const byNeedsLimit = "throttling.node_limit is required when throttling.by is set; set throttling as null to disable throttling instead"

func notBy(value string) string {
	return fmt.Sprintf("Invalid value '%s' for throttling.by: throttling.by must be one of [username, role] when set but was '%s'", value, value)
}

// by returns a throttling in the form of KeyBy, without a limit if it is -1.
func by(dimension cluster.Attribute, limit int64) *cluster.Throttling {
	t := &cluster.Throttling{By: dimension}
	if limit != -1 {
		t.NodeLimit = &limit
	}
	return t
}

func createBy(t *cluster.Throttling) *cluster.CreateGroup {
	g := group("g", "g")
	g.Throttling = t
	return &cluster.CreateGroup{Group: g, Form: cluster.KeyBy}
}

// Section 1.5 of the reference, generation G3, on create.
func TestThrottlingInTheFormOfBy(t *testing.T) {
	for _, row := range []struct {
		name       string
		throttling *cluster.Throttling
		err        string
	}{
		{"none", nil, ""},
		{"by user", by("username", 5), ""},
		{"by role", by("role", 1), ""},
		{"a limit without by is the whole group's", by("", 5), ""},
		{"at the greatest limit", by("username", math.MaxInt32), ""},
		{"over the greatest limit", by("username", math.MaxInt32+1), "Invalid value '2147483648' for throttling.node_limit: Failed to parse value [2147483648] for setting [node_limit]"},
		{"a limit of 0", by("username", 0), ceiling},
		{"a group's limit of 0", by("", 0), ceiling},
		{"a negative limit", by("role", -5), "Invalid value '-5' for throttling.node_limit: throttling.node_limit must be non-negative but was -5"},
		{"by without a limit", by("username", -1), byNeedsLimit},
		{"by group", by("group", 5), notBy("group")},
		{"by in capitals", by("Username", 5), notBy("Username")},
		{"by with blanks", by(" username ", 5), notBy(" username ")},
		{"by something else, and no limit", by("tenant", -1), notBy("tenant")},
		{"the key of the other form", &cluster.Throttling{Attribute: "username", NodeLimit: ptr[int64](5)}, "Unknown throttle setting: attribute"},
		{"both keys", &cluster.Throttling{Attribute: "group", By: "role", NodeLimit: ptr[int64](5)}, "Unknown throttle setting: attribute"},
		{"nothing", &cluster.Throttling{}, byNeedsLimit},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := createBy(row.throttling).Validate()
			if row.err == "" {
				require.NoError(t, err)
				require.Empty(t, createBy(row.throttling).Group.Faults(cluster.KeyBy))
				return
			}
			require.EqualError(t, err, row.err)
			require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
			require.NotContains(t, err.Error(), "-1", "the value that stands for none is nobody's business")
		})
	}
	err := (&cluster.CreateGroup{Group: group("g", "g"), Form: "per"}).Validate()
	require.EqualError(t, err, "throttling has no form [per]: one of [attribute, by]")
}

// Sections 1.4 and 1.5 of the reference, generation G3, on update.
func TestUpdatesInTheFormOfBy(t *testing.T) {
	role, limit := cluster.Give(cluster.ByRole), cluster.Give[int64](7)
	noBy, noLimit := cluster.Null[cluster.Attribute](), cluster.Null[int64]()
	for _, row := range []struct {
		name  string
		old   *cluster.Throttling
		patch cluster.ThrottlingPatch
		want  *cluster.Throttling
		err   string
	}{
		{"absent keeps", by("username", 5), cluster.ThrottlingPatch{}, by("username", 5), ""},
		{"a limit overwrites, by stays", by("username", 5), cluster.ThrottlingPatch{NodeLimit: limit}, by("username", 7), ""},
		{"by overwrites, the limit stays", by("username", 5), cluster.ThrottlingPatch{By: role}, by("role", 5), ""},
		{"by is added to a group's limit", by("", 5), cluster.ThrottlingPatch{By: role}, by("role", 5), ""},
		{"null by returns to the group's limit", by("role", 5), cluster.ThrottlingPatch{By: noBy}, by("", 5), ""},
		{"null limit of a group's limit ends throttling", by("", 5), cluster.ThrottlingPatch{NodeLimit: noLimit}, nil, ""},
		{"null limit under by", by("role", 5), cluster.ThrottlingPatch{NodeLimit: noLimit}, nil, byNeedsLimit},
		{"both null", by("role", 5), cluster.ThrottlingPatch{By: noBy, NodeLimit: noLimit}, nil, ""},
		{"null or {} clears", by("role", 5), cluster.ThrottlingPatch{Clear: true}, nil, ""},
		{"by without any limit", nil, cluster.ThrottlingPatch{By: role}, nil, byNeedsLimit},
		{"a limit where there was none", nil, cluster.ThrottlingPatch{NodeLimit: limit}, by("", 7), ""},
		{"a limit of 0", by("", 5), cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](0)}, nil, ceiling},
		{"by group", by("", 5), cluster.ThrottlingPatch{By: cluster.Give(cluster.ByGroup)}, nil, notBy("group")},
		{"empty by", by("", 5), cluster.ThrottlingPatch{By: cluster.Give[cluster.Attribute]("")}, nil, notBy("")},
		{"the key of the other form", by("", 5), cluster.ThrottlingPatch{Attribute: role}, nil, "Unknown throttle setting: attribute"},
		{"the key of the other form as null", by("", 5), cluster.ThrottlingPatch{Attribute: noBy}, nil, "Unknown throttle setting: attribute"},
		{"a limit, where the other form is stored", &cluster.Throttling{Attribute: "role", NodeLimit: ptr[int64](5)}, cluster.ThrottlingPatch{NodeLimit: limit}, nil, "Unknown throttle setting: attribute"},
		{"the other form is cleared", &cluster.Throttling{Attribute: "role", NodeLimit: ptr[int64](5)}, cluster.ThrottlingPatch{Clear: true}, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := apply(t, cluster.Empty(), createBy(row.old))
			update := &cluster.UpdateGroup{Name: "g", Throttling: row.patch, Form: cluster.KeyBy}
			err := update.Validate()
			if err == nil {
				var next *cluster.State
				if next, err = cluster.Apply(s, update); err == nil {
					require.Equal(t, row.want, next.Group("g").Throttling)
				}
			}
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, row.err)
			}
		})
	}
}

// The form of by is as strange to attribute as the other way round.
func TestTheFormOfByIsUnknownToAttribute(t *testing.T) {
	g := group("g", "g")
	g.Throttling = by("username", 5)
	require.EqualError(t, create(g).Validate(), "Unknown throttle setting: by")
	update := &cluster.UpdateGroup{Name: "g", Throttling: cluster.ThrottlingPatch{By: cluster.Null[cluster.Attribute]()}}
	require.EqualError(t, update.Validate(), "Unknown throttle setting: by")
}

// Promise 2: what the API refuses is kept where it is stored, of either form,
// and each form calls the other's a fault.
func TestStoredThrottlingOfAnyFormIsKept(t *testing.T) {
	for name, row := range map[string]struct {
		throttling *cluster.Throttling
		faults     map[cluster.DimensionKey]string
	}{
		"attribute": {&cluster.Throttling{Attribute: "username", NodeLimit: ptr[int64](5)}, map[cluster.DimensionKey]string{
			cluster.KeyAttribute: "", cluster.KeyBy: "Unknown throttle setting: attribute"}},
		"by": {by("username", 5), map[cluster.DimensionKey]string{
			cluster.KeyAttribute: "Unknown throttle setting: by", cluster.KeyBy: ""}},
		"a limit alone": {by("", 5), map[cluster.DimensionKey]string{
			cluster.KeyAttribute: "throttling.attribute is required when a throttle limit is set", cluster.KeyBy: ""}},
		"a limit of 0": {by("", 0), map[cluster.DimensionKey]string{cluster.KeyAttribute: ceiling, cluster.KeyBy: ceiling}},
		"by group":     {by("group", 5), map[cluster.DimensionKey]string{cluster.KeyAttribute: "Unknown throttle setting: by", cluster.KeyBy: notBy("group")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group("g", "g")
			g.Throttling = row.throttling
			s := decodeState(t, encodeState(t, apply(t, cluster.Empty(), create(g))))
			require.Equal(t, row.throttling, s.Group("g").Throttling)
			for key, fault := range row.faults {
				if fault == "" {
					require.Empty(t, s.Group("g").Faults(key), "%s", key)
				} else {
					require.Equal(t, []string{fault}, s.Group("g").Faults(key), "%s", key)
				}
			}
		})
	}
}

// A command as a program wrote it that knew of one form, or of no throttling at
// all, still means what it meant.
func TestCommandsOfOlderPrograms(t *testing.T) {
	s := apply(t, cluster.Empty(), create(throttled("g", "g", cluster.ByRole, 5)))
	for text, want := range map[string]int64{
		`{"format":1,"kind":"update_group","body":{"name":"g","resource_limits":{"cpu":0.2},"updated_at":2}}`:                        5,
		`{"format":1,"kind":"update_group","body":{"name":"g","throttling":{"node_limit":{"given":true,"value":9}},"updated_at":2}}`: 9,
	} {
		c, err := cluster.DecodeCommand([]byte(text))
		require.NoError(t, err)
		g := apply(t, s, c).Group("g")
		require.Equal(t, cluster.ByRole, g.Throttling.Attribute)
		require.Equal(t, want, *g.Throttling.NodeLimit)
	}
	text, err := cluster.EncodeCommand(cluster.KeyAttribute.Create(throttled("g", "g", cluster.ByRole, 5)))
	require.NoError(t, err)
	require.NotContains(t, string(text), "form\":\"", "older programs can read it")
	require.False(t, strings.Contains(string(text), `"by"`))
}

// What is written in the form of attribute means the same when it is written in
// the other: the same dimension and limit, by the same patches.
func TestAFormIsTranslated(t *testing.T) {
	dimensions := rapid.SampledFrom([]cluster.Attribute{cluster.ByGroup, cluster.ByUsername, cluster.ByRole})
	limits := rapid.Int64Range(1, 9)
	rapid.Check(t, func(t *rapid.T) {
		limit := limits.Draw(t, "limit")
		old := &cluster.Throttling{Attribute: dimensions.Draw(t, "dimension"), NodeLimit: &limit}
		patch := cluster.ThrottlingPatch{Clear: rapid.Bool().Draw(t, "clear"), Attribute: optional(dimensions).Draw(t, "attribute"), NodeLimit: optional(limits).Draw(t, "node_limit")}
		want := patch.Merge(old)
		if cluster.KeyAttribute.Check(want) != nil {
			return // a patch may take away what the other form does without
		}
		got := cluster.KeyBy.WritePatch(patch).Merge(cluster.KeyBy.Write(old))
		require.NoError(t, cluster.KeyBy.Check(got))
		require.Equal(t, want == nil, got == nil)
		if want == nil {
			return
		}
		require.Equal(t, *want.NodeLimit, *got.NodeLimit)
		require.Equal(t, want.Attribute, cluster.KeyBy.Dimension(got))
		require.Equal(t, want.Attribute, cluster.KeyAttribute.Dimension(want))
		require.Equal(t, want, cluster.KeyAttribute.Write(want))
	})
}
