package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// rule makes the rule of a group from a text such as
// "user=alice,bob role=admin index=logs*,test".
func (w *world) rule(id, group, text string) {
	r := cluster.Rule{ID: id, Description: id, WorkloadGroup: "id-" + group}
	for part := range strings.FieldsSeq(text) {
		attribute, values, _ := strings.Cut(part, "=")
		switch list := strings.Split(values, ","); attribute {
		case "user":
			r.Usernames = list
		case "role":
			r.Roles = list
		case "index":
			r.IndexPatterns = list
		default:
			w.t.Fatalf("unknown attribute %q", attribute)
		}
	}
	w.apply(&cluster.CreateRule{Rule: r})
}

// tagWorld has groups a, b and c without throttling and no data nodes that
// answer: only the tag matters.
func tagWorld(t testing.TB) *world {
	w := newWorld(t, options{quiet: true})
	for _, name := range []string{"a", "b", "c"} {
		w.apply(&cluster.CreateGroup{Group: cluster.Group{ID: "id-" + name, Name: name, ResiliencyMode: cluster.Soft}})
	}
	return w
}

// tagged returns the group that a search is counted on, without "id-", "" for
// the default group.
func (w *world) tagged(ctx context.Context, r coordinator.Request) string {
	before := map[string]uint64{}
	for _, o := range w.c.Outcomes() {
		before[o.Group] = o.Completed + o.Failed
	}
	w.search(ctx, r)
	for _, o := range w.c.Outcomes() {
		if o.Completed+o.Failed == before[o.Group] {
			continue
		}
		if o.Group == cluster.DefaultGroupID {
			return ""
		}
		return strings.TrimPrefix(o.Group, "id-")
	}
	w.t.Fatal("the search has no outcome")
	return ""
}

func TestARuleTagsASearch(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  [][3]string // id, group, rule
		user   string      // and roles, separated by spaces
		index  string
		header string
		want   string
	}{
		{"no rule", nil, "alice", "logs", "", ""},
		{"user", [][3]string{{"1", "a", "user=alice"}}, "alice", "logs", "", "a"},
		{"any of its users", [][3]string{{"1", "a", "user=bob,alice"}}, "alice", "logs", "", "a"},
		{"another user", [][3]string{{"1", "a", "user=alice"}}, "bob", "logs", "", ""},
		{"users are compared exactly", [][3]string{{"1", "a", "user=alice,al*"}}, "Alice", "logs", "", ""},
		{"a star in a user is a star", [][3]string{{"1", "a", "user=al*"}}, "alice", "logs", "", ""},
		{"no principal", [][3]string{{"1", "a", "user=alice"}, {"2", "b", "role=x"}}, "", "logs", "", ""},
		{"role", [][3]string{{"1", "a", "role=analyst"}}, "alice analyst", "logs", "", "a"},
		{"any of the user's roles", [][3]string{{"1", "a", "role=analyst"}}, "alice x y analyst", "logs", "", "a"},
		{"a role is no user", [][3]string{{"1", "a", "role=alice"}, {"2", "b", "user=analyst"}}, "alice analyst", "logs", "", ""},
		{"index", [][3]string{{"1", "a", "index=logs"}}, "alice", "logs", "", "a"},
		{"prefix with a star", [][3]string{{"1", "a", "index=lo*"}}, "alice", "logs", "", "a"},
		{"prefix without a star", [][3]string{{"1", "a", "index=lo"}}, "alice", "logs", "", "a"},
		{"a star alone", [][3]string{{"1", "a", "index=*"}}, "alice", "logs", "", "a"},
		{"a star in the middle is dropped", [][3]string{{"1", "a", "index=l*gs"}, {"2", "b", "index=l*ogs"}}, "alice", "logs", "", "b"},
		{"longer than the index", [][3]string{{"1", "a", "index=logs-2026"}}, "alice", "logs", "", ""},
		{"an expression of the request is a text", [][3]string{{"1", "a", "index=test_1"}, {"2", "b", "index=test_2"}}, "alice", "test_*", "", ""},
		{"test_* over two groups tags neither", [][3]string{{"1", "a", "index=test_ role=x"}, {"2", "b", "index=test_ role=y"}}, "alice x y", "test_*", "", ""},
		{"all requested indices agree", [][3]string{{"1", "a", "index=logs,metrics"}}, "alice", "logs,metrics-1", "", "a"},
		{"one requested index does not match", [][3]string{{"1", "a", "index=logs"}}, "alice", "logs,metrics", "", ""},
		{"two requested indices of two groups", [][3]string{{"1", "a", "index=logs"}, {"2", "b", "index=metrics"}}, "alice", "logs,metrics", "", ""},
		{"a request without an index", [][3]string{{"1", "a", "index=*"}}, "alice", "", "", ""},
		{"every attribute of a rule must match", [][3]string{{"1", "a", "user=alice index=logs"}}, "bob", "logs", "", ""},
		{"every attribute matches", [][3]string{{"1", "a", "user=alice role=x index=logs"}}, "alice x", "logs", "", "a"},
		{"the longest prefix", [][3]string{{"1", "a", "index=lo"}, {"2", "b", "index=logs"}, {"3", "c", "index=log"}}, "alice", "logs-1", "", "b"},
		{"the longest prefix that all share", [][3]string{{"1", "a", "index=logs-1,lo"}, {"2", "b", "index=log"}}, "alice", "logs-1,logs-2", "", "b"},
		{"user before index", [][3]string{{"1", "a", "index=logs-1"}, {"2", "b", "user=alice"}}, "alice", "logs-1", "", "b"},
		{"user before role", [][3]string{{"1", "a", "role=x"}, {"2", "b", "user=alice"}}, "alice x", "logs", "", "b"},
		{"role before index", [][3]string{{"1", "a", "index=logs"}, {"2", "b", "role=x"}}, "alice x", "logs", "", "b"},
		{"the group that all attributes agree on", [][3]string{{"1", "a", "user=alice"}, {"2", "b", "user=alice index=logs"}}, "alice", "logs", "", "b"},
		{"agreement of two rules of a group", [][3]string{{"1", "a", "user=alice role=y"}, {"2", "b", "user=alice"}, {"3", "b", "index=logs"}, {"4", "a", "index=metrics"}}, "alice y", "logs", "", "a"},
		{"two roles of two groups", [][3]string{{"1", "a", "role=x"}, {"2", "b", "role=y"}}, "alice x y", "logs", "", ""},
		{"two rules of one group", [][3]string{{"1", "a", "role=x"}, {"2", "a", "role=y"}}, "alice x y", "logs", "", "a"},
		{"a tie of roles broken by the index", [][3]string{{"1", "a", "role=x"}, {"2", "b", "role=y index=logs"}}, "alice x y", "logs", "", "b"},
		{"header", nil, "alice", "logs", "id-a", "a"},
		{"header of a group that is not there", nil, "alice", "logs", "id-gone", ""},
		{"header where no rule matches", [][3]string{{"1", "a", "user=bob"}}, "alice", "logs", "id-b", "b"},
		{"header where rules tie", [][3]string{{"1", "a", "role=x"}, {"2", "b", "role=y"}}, "alice x y", "logs", "id-c", "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := tagWorld(t)
			for _, r := range test.rules {
				w.rule(r[0], r[1], r[2])
			}
			ctx := t.Context()
			if names := strings.Fields(test.user); len(names) > 0 {
				ctx = as(ctx, names[0], names[1:]...)
			}
			require.Equal(t, test.want, w.tagged(ctx, coordinator.Request{Index: test.index, GroupHeader: test.header}))
		})
	}
}

func TestRulesAreMatchedInTheNodesOwnView(t *testing.T) {
	w := tagWorld(t)
	alice := as(t.Context(), "alice")
	require.Zero(t, w.c.RulesVersion())
	require.Equal(t, "", w.tagged(alice, coordinator.Request{Index: "logs"}), "the first search takes the view")
	before := w.State().Version()
	require.Equal(t, before, w.c.RulesVersion())

	w.rule("1", "a", "user=alice")
	require.Equal(t, "", w.tagged(alice, coordinator.Request{Index: "logs"}), "not refreshed yet")
	require.Equal(t, before, w.c.RulesVersion())
	w.c.RefreshRules()
	require.Equal(t, w.State().Version(), w.c.RulesVersion())
	require.Equal(t, "a", w.tagged(alice, coordinator.Request{Index: "logs"}))

	w.apply(&cluster.DeleteGroup{Name: "b"})
	w.c.RefreshRules()
	require.Equal(t, w.State().Version(), w.c.RulesVersion(), "the same rules, a newer version")
	require.Equal(t, "a", w.tagged(alice, coordinator.Request{Index: "logs"}))

	w.apply(&cluster.DeleteRule{ID: "1"}, &cluster.DeleteGroup{Name: "a"})
	require.Equal(t, "", w.tagged(alice, coordinator.Request{Index: "logs"}), "a rule of the view whose group is gone tags nothing")

	w.c.RefreshRules()
	require.Equal(t, "c", w.tagged(alice, coordinator.Request{Index: "logs", GroupHeader: "id-c"}))
}

func TestTagsFollowTheClustersMode(t *testing.T) {
	for mode, want := range map[cluster.Mode]string{cluster.Enabled: "a", cluster.MonitorOnly: "a", cluster.Disabled: ""} {
		t.Run(string(mode), func(t *testing.T) {
			w := tagWorld(t)
			w.rule("1", "a", "user=alice")
			w.apply(&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingMode: ptr(string(mode))}}})
			require.Equal(t, want, w.tagged(as(t.Context(), "alice"), coordinator.Request{Index: "logs"}))
		})
	}
}

// The header is put once: what becomes of a search that has one and that a rule
// tags too is the switch group_header. The refusal comes before the admission.
func TestAHeaderAndARule(t *testing.T) {
	for _, row := range []struct {
		value, header string
		mode          cluster.Mode
		want          string // group, or "" for a refusal
	}{
		{"put_once", "id-b", cluster.Enabled, ""},
		{"put_once", "id-a", cluster.Enabled, ""},
		{"put_once", "id-b", cluster.Disabled, "b"},
		{"keeps_outer", "id-b", cluster.Enabled, "b"},
		{"keeps_outer", "id-a", cluster.MonitorOnly, "a"},
	} {
		t.Run(row.value+" "+row.header+" "+string(row.mode), func(t *testing.T) {
			w := newWorld(t, options{wlm: switched(t, "group_header", row.value)})
			for _, name := range []string{"a", "b"} {
				w.group(name, cluster.ByGroup, 100)
			}
			w.rule("1", "a", "user=alice")
			w.apply(&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingMode: ptr(string(row.mode))}}})
			w.c.RefreshRules()
			a := w.search(as(t.Context(), "alice"), coordinator.Request{Index: "logs", GroupHeader: row.header})
			if row.want != "" {
				require.Equal(t, "id-"+row.want, completed(t, a).Group)
				return
			}
			require.Equal(t, cluster.IllegalArgument, cluster.KindOf(a.err))
			require.EqualError(t, a.err, "value for key [workloadGroupId] already present")
			require.Zero(t, w.asked.Load(), "no data node was asked")
			require.Equal(t, uint64(1), w.outcomesOf(cluster.DefaultGroupID).Failed)
			w.idle()
		})
	}
}

// The compiled view against the policy's words, one rule after the other.
func TestTheViewOfTheRulesAgreesWithThePolicy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := tagWorld(t)
		subset := func(label string, of ...string) []string {
			var list []string
			for _, v := range of {
				if rapid.IntRange(0, 3).Draw(rt, label) == 0 {
					list = append(list, v)
				}
			}
			return list
		}
		for i := range rapid.IntRange(0, 8).Draw(rt, "rules") {
			r := cluster.Rule{
				ID: fmt.Sprint(i), Description: "d", WorkloadGroup: "id-" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "group"),
				Usernames: subset("user", "u", "v"), Roles: subset("role", "x", "y"), IndexPatterns: subset("pattern", "l", "lo*", "log", "m", "*"),
			}
			if next, err := cluster.Apply(w.State(), &cluster.CreateRule{Rule: r}); err == nil {
				w.state = next
			}
		}
		user := rapid.SampledFrom([]string{"u", "v", "w"}).Draw(rt, "as")
		roles := subset("with", "x", "y", "z")
		index := rapid.SampledFrom([]string{"", "l", "lo", "logs", "logs,lo", "logs,m", "m"}).Draw(rt, "index")
		want := naiveTag(w.State().Rules(), user, roles, index)
		if got := w.tagged(as(t.Context(), user, roles...), coordinator.Request{Index: index}); got != strings.TrimPrefix(want, "id-") {
			rt.Fatalf("user %s roles %v index %q is tagged %q, want %q by %+v", user, roles, index, got, want, w.State().Rules())
		}
	})
}

// naiveTag is the policy of doc.go in its own order: who applies, the sets of
// each attribute, their intersection, and the tie-break.
func naiveTag(rules []*cluster.Rule, user string, roles []string, index string) string {
	users, byRole, prefixes := map[string]int{}, map[string]int{}, map[string]int{} // group to rank
	var expressions []string
	if index != "" {
		expressions = strings.Split(index, ",")
	}
	groups := map[string]bool{}
	for _, r := range rules {
		if len(r.Usernames)+len(r.Roles)+len(r.IndexPatterns) == 0 {
			continue // stored so: it names nothing that could match
		}
		rank := 0
		if len(r.IndexPatterns) > 0 {
			rank = 1 << 20
			for _, e := range expressions {
				longest := 0
				for _, p := range r.IndexPatterns {
					if p = strings.ReplaceAll(p, "*", ""); strings.HasPrefix(e, p) && len(p)+1 > longest {
						longest = len(p) + 1
					}
				}
				rank = min(rank, longest)
			}
			if rank == 0 || len(expressions) == 0 {
				continue
			}
		}
		if len(r.Usernames) > 0 && !contains(r.Usernames, user) {
			continue
		}
		mine := false
		for _, role := range roles {
			mine = mine || contains(r.Roles, role)
		}
		if len(r.Roles) > 0 && !mine {
			continue
		}
		groups[r.WorkloadGroup] = true
		if len(r.Usernames) > 0 {
			users[r.WorkloadGroup] = 1
		}
		if len(r.Roles) > 0 {
			byRole[r.WorkloadGroup] = 1
		}
		if rank > 0 {
			prefixes[r.WorkloadGroup] = max(prefixes[r.WorkloadGroup], rank)
		}
	}
	left := map[string]bool{}
	for g := range groups {
		if (len(users) == 0 || users[g] > 0) && (len(byRole) == 0 || byRole[g] > 0) && (len(prefixes) == 0 || prefixes[g] > 0) {
			left[g] = true
		}
	}
	if len(left) == 0 {
		left = groups
	}
	for _, attribute := range []map[string]int{users, byRole, prefixes} {
		best := 0
		for g := range left {
			best = max(best, attribute[g])
		}
		next := map[string]bool{}
		for g := range left {
			if attribute[g] == best {
				next[g] = true
			}
		}
		left = next
	}
	if len(left) != 1 {
		return ""
	}
	for g := range left {
		return g
	}
	return ""
}

// A message to a data node carries the headers that are listed, and no other.
func TestAMessageCarriesTheListedHeaders(t *testing.T) {
	var got []wire.Header
	var search string
	w := newWorld(t, options{dataNodes: 1, peers: func(next coordinator.Peers) coordinator.Peers {
		return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			got, search = r.Headers, r.Search
			return next.Search(ctx, node, r)
		})
	}})
	w.group("g", cluster.ByUsername, 1)
	alice := as(t.Context(), "alice", "admin")
	completed(t, w.search(alice, in("one", "g")))
	require.Equal(t, []wire.Header{{Name: "X-Opaque-Id", Value: "one"}, {Name: "workloadGroupId", Value: "id-g"}}, got)
	require.Equal(t, "one", search)
	completed(t, w.search(alice, coordinator.Request{Index: "logs"}))
	require.Empty(t, got)
	require.Equal(t, "n1:1", search, "a search without an id is numbered")

	carrying := newWorld(t, options{dataNodes: 1, wlm: carrier(t), peers: func(next coordinator.Peers) coordinator.Peers {
		return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			got = r.Headers
			return next.Search(ctx, node, r)
		})
	}})
	completed(t, carrying.search(alice, coordinator.Request{Index: "logs"}))
	require.Len(t, got, 1, "principal_carrier: header adds the principal")
	require.Contains(t, got[0].Value, "alice")
}
