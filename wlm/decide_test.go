package wlm_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// TestWhoNeedsAPermit goes through the checks in their order: each row differs
// from a search that is throttled in one thing.
func TestWhoNeedsAPermit(t *testing.T) {
	unthrottled := group("free", cluster.ByGroup, 1)
	unthrottled.Throttling = nil
	soft, monitor := group("soft", cluster.ByGroup, 1), group("monitor", cluster.ByGroup, 1)
	soft.ResiliencyMode, monitor.ResiliencyMode = cluster.Soft, cluster.Monitor
	const on, off, watching = cluster.Enabled, cluster.Disabled, cluster.MonitorOnly
	nobody := context.Background()
	for _, row := range []struct {
		name   string
		mode   cluster.Mode
		group  string
		ctx    context.Context
		first  string
		second string
	}{
		{"a group of one bucket", on, "g", nobody, "permit", "429"},
		{"a group of one bucket, whoever asks", on, "g", user("alice"), "permit", "429"},
		{"a user", on, "u", user("alice"), "permit", "429"},
		{"a role", on, "r", roles("ops"), "permit", "429"},
		{"mode disabled", off, "g", nobody, "no permit", "no permit"},
		{"mode monitor_only", watching, "g", nobody, "no permit", "no permit"},
		{"no group", on, "", nobody, "no permit", "no permit"},
		{"the default group", on, cluster.DefaultGroupID, nobody, "no permit", "no permit"},
		{"a group that the state does not know", on, "other", nobody, "no permit", "no permit"},
		{"a group without throttling", on, "free", nobody, "no permit", "no permit"},
		{"no principal, by user", on, "u", nobody, "no permit", "no permit"},
		{"no principal, by role", on, "r", nobody, "no permit", "no permit"},
		{"a user without a name", on, "u", user(""), "no permit", "no permit"},
		{"a role without a user", on, "u", roles("ops"), "no permit", "no permit"},
		{"a user without roles", on, "r", user("alice"), "no permit", "no permit"},
		{"roles without a name", on, "r", roles("", ""), "no permit", "no permit"},
		{"resiliency mode soft", on, "soft", nobody, "permit", "429"},
		{"resiliency mode monitor", on, "monitor", nobody, "permit", "429"},
	} {
		for _, profile := range wlm.Profiles() {
			t.Run(row.name+", "+profile, func(t *testing.T) {
				switches := of(t, profile)
				state := apply(t, written(t, switches, group("g", cluster.ByGroup, 1), group("u", cluster.ByUsername, 1),
					group("r", cluster.ByRole, 1), unthrottled, soft, monitor), setMode(row.mode))
				th := throttle(t, wlm.Config{Switches: switches}, state)
				first, p := admit(t, th, row.ctx, state, row.group)
				second, _ := admit(t, th, row.ctx, state, row.group)
				require.Equal(t, row.first, first)
				want := row.second
				if row.group == "monitor" && profile == wlm.ProfileUpstream {
					want = "no permit"
				}
				require.Equal(t, want, second)
				require.Equal(t, first == "permit", p.Release())
				require.Empty(t, th.Permits())
			})
		}
	}
}

// TestOneOfSeveralRolesIsCharged: the first one with a name, or under upstream
// the smallest.
func TestOneOfSeveralRolesIsCharged(t *testing.T) {
	for profile, want := range map[string][]string{
		wlm.ProfileReviewed:  {"permit", "permit", "429"},
		wlm.ProfileSubmitted: {"permit", "permit", "429"},
		wlm.ProfileUpstream:  {"permit", "429", "permit"},
	} {
		switches := of(t, profile)
		s := written(t, switches, group("r", cluster.ByRole, 1))
		th := throttle(t, wlm.Config{Switches: switches}, s)
		for i, as := range []context.Context{roles("", "zebra", "all_access"), roles("all_access", "zebra"), roles("zebra")} {
			got, _ := admit(t, th, as, s, "r")
			require.Equal(t, want[i], got, "%s, search %d", profile, i)
		}
	}
}

func TestARejectionHasKindTextAndGroup(t *testing.T) {
	s := enabled(t, group("g", cluster.ByGroup, 2))
	th := throttle(t, wlm.Config{}, s)
	for range 2 {
		require.NoError(t, th.Admit(context.Background(), s, "g", "", new(wlm.Permit)))
	}
	err := th.Admit(context.Background(), s, "g", "", new(wlm.Permit))
	require.EqualError(t, err, "Node-level workload group throttle limit reached: 2 concurrent in-flight requests")
	require.Equal(t, cluster.TooMany, cluster.KindOf(fmt.Errorf("search: %w", err)))
	require.Equal(t, &wlm.Rejection{Group: "g", Limit: 2, Counted: true}, err)
}

func TestTheModeInForceIsTheOneThatWasApplied(t *testing.T) {
	s := enabled(t, group("g", cluster.ByGroup, 1))
	th, err := wlm.New(wlm.Config{})
	require.NoError(t, err)
	got, _ := admit(t, th, context.Background(), s, "g")
	require.Equal(t, "no permit", got, "a node starts in the mode of an empty state, monitor_only")
	require.NoError(t, th.ApplySettings(cluster.Empty(), s))
	got, _ = admit(t, th, context.Background(), s, "g")
	require.Equal(t, "permit", got)
}

// TestLimitChangesHoldAtOnce: the limit is that of the state that the search
// read; permits stay.
func TestLimitChangesHoldAtOnce(t *testing.T) {
	for _, acquire := range []string{"exact", "rollback"} {
		five := enabled(t, group("g", cluster.ByGroup, 5))
		two := apply(t, five, &cluster.UpdateGroup{Name: "g", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(2))}})
		th := throttle(t, wlm.Config{Switches: with(t, "acquire", acquire)}, five)
		var held []*wlm.Permit
		for range 5 {
			got, p := admit(t, th, context.Background(), five, "g")
			require.Equal(t, "permit", got)
			held = append(held, p)
		}
		for i, want := range []string{"429", "429", "429", "429", "permit"} {
			got, p := admit(t, th, context.Background(), two, "g")
			require.Equal(t, want, got, "%d released", i)
			if want == "permit" {
				require.True(t, p.Held())
				break
			}
			require.True(t, held[i].Release())
		}
		got, _ := admit(t, th, context.Background(), five, "g")
		require.Equal(t, "permit", got)
		require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 1, Held: 3}}, th.Permits())
	}
}

// TestAStateThatWasNotAppliedIsJudgedTheSame: a search may have read a state
// that the node has left behind since.
func TestAStateThatWasNotAppliedIsJudgedTheSame(t *testing.T) {
	bad := group("bad", cluster.ByGroup, 1)
	bad.ResiliencyMode = "hard"
	old := inState(t, group("sound", cluster.ByGroup, 1), bad)
	th := throttle(t, wlm.Config{}, enabled(t))
	for _, row := range []struct{ group, first, second string }{{"sound", "permit", "429"}, {"bad", "no permit", "no permit"}} {
		first, _ := admit(t, th, context.Background(), old, row.group)
		second, _ := admit(t, th, context.Background(), old, row.group)
		require.Equal(t, []string{row.first, row.second}, []string{first, second}, row.group)
	}
}

// TestAStoredGroupInTheDefaultsPlaceIsNotThrottled: no command makes such a
// group, but a snapshot may hold one.
func TestAStoredGroupInTheDefaultsPlaceIsNotThrottled(t *testing.T) {
	var snapshot bytes.Buffer
	require.NoError(t, cluster.EncodeState(&snapshot, enabled(t, group("g", cluster.ByGroup, 1))))
	s, err := cluster.DecodeState(strings.NewReader(strings.Replace(snapshot.String(), `"_id":"g"`, `"_id":"`+cluster.DefaultGroupID+`"`, 1)))
	require.NoError(t, err)
	require.NotNil(t, s.Group(cluster.DefaultGroupID))
	th := throttle(t, wlm.Config{}, s)
	for range 2 {
		got, _ := admit(t, th, context.Background(), s, cluster.DefaultGroupID)
		require.Equal(t, "no permit", got)
	}
	all, err := th.Stats(nil)
	require.NoError(t, err)
	require.Equal(t, []wlm.GroupStats{{ID: cluster.DefaultGroupID}}, all)
}

// TestStoredFaultsAreWarnedAboutOnceAndNotThrottled is the throttle's part of
// case C12.
func TestStoredFaultsAreWarnedAboutOnceAndNotThrottled(t *testing.T) {
	zero, negative, huge := int64(0), int64(-5), int64(1)<<40
	faults := map[string]*cluster.Throttling{
		"zero": {Attribute: cluster.ByGroup, NodeLimit: &zero}, "negative": {Attribute: cluster.ByUsername, NodeLimit: &negative},
		"huge": {Attribute: cluster.ByGroup, NodeLimit: &huge}, "nolimit": {Attribute: cluster.ByUsername},
		"tenant": {Attribute: "tenant", NodeLimit: new(int64(1))}, "noattribute": {NodeLimit: new(int64(1))}, "nothing": {},
	}
	groups := []cluster.Group{group("sound", cluster.ByGroup, 1)}
	for id, throttling := range faults {
		g := group(id, cluster.ByGroup, 1)
		g.Throttling = throttling
		groups = append(groups, g)
	}
	for id, name := range map[string]string{"nameless": "", "longname": strings.Repeat("x", 10_000)} {
		g := group(id, cluster.ByGroup, 1)
		g.Name = name
		groups = append(groups, g)
		faults[id] = g.Throttling
	}
	s := inState(t, groups...)
	logged := &recorder{}
	th := throttle(t, wlm.Config{Log: slog.New(logged)}, s)
	require.NoError(t, th.ClusterChanged(s, apply(t, s, setMode(cluster.Enabled))))
	require.Len(t, logged.groups(), len(faults))
	for id := range faults {
		require.Equal(t, 1, logged.groups()[id], id)
		for range 3 {
			got, _ := admit(t, th, user("alice"), s, id)
			require.Equal(t, "no permit", got, id)
		}
	}
	require.EqualValues(t, 3*len(faults), th.FailedOpen())
	got, _ := admit(t, th, user("alice"), s, "sound")
	require.Equal(t, "permit", got)
	got, _ = admit(t, th, user("alice"), s, "sound")
	require.Equal(t, "429", got)

	mended := apply(t, s, &cluster.UpdateGroup{Name: "zero", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(1))}})
	require.NoError(t, th.ClusterChanged(s, mended))
	got, _ = admit(t, th, user("alice"), mended, "zero")
	require.Equal(t, "permit", got)
	require.NoError(t, th.ClusterChanged(mended, s))
	require.Equal(t, 2, logged.groups()["zero"], "warned again after it was sound")
}

// Case C12 under every profile, in its own form: a limit of 0 that is stored
// refuses nobody.
func TestAStoredLimitOfZeroThrottlesNobody(t *testing.T) {
	for _, profile := range wlm.Profiles() {
		switches, err := wlm.Profile(profile)
		require.NoError(t, err)
		for _, by := range []cluster.Attribute{cluster.ByGroup, cluster.ByUsername} {
			g := group("zero", by, 0)
			g.Throttling = switches.DimensionKey.Write(g.Throttling)
			s := inState(t, g)
			th := throttle(t, wlm.Config{Switches: switches}, s)
			got, _ := admit(t, th, user("alice"), s, "zero")
			require.Equal(t, "no permit", got, "%s by %s", profile, by)
			require.EqualValues(t, 1, th.FailedOpen())
			require.Empty(t, th.Permits())
		}
	}
}

// recorder is a slog.Handler that keeps warnings.
type recorder struct {
	mu      sync.Mutex
	records []slog.Record
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record)
	return nil
}

// text is everything that was logged.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for _, record := range r.records {
		all.WriteString(record.Message)
		record.Attrs(func(a slog.Attr) bool {
			all.WriteString(" " + a.String())
			return true
		})
	}
	return all.String()
}

// groups counts the warnings by the group that they name.
func (r *recorder) groups() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[string]int{}
	for _, record := range r.records {
		if record.Level < slog.LevelWarn {
			continue
		}
		record.Attrs(func(a slog.Attr) bool {
			if a.Key == "group" {
				count[a.Value.String()]++
			}
			return true
		})
	}
	return count
}
