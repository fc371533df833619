package wlm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

// node is a throttle under some switches, and a state that it was told of whose
// groups are written in the switches' form.
type node struct {
	t     *testing.T
	th    *wlm.Throttle
	state *cluster.State
	steps []probe.Step
}

func newNode(t *testing.T, switches wlm.Switches, groups ...cluster.Group) *node {
	t.Helper()
	n := &node{t: t, state: written(t, switches, groups...)}
	n.th = throttle(t, wlm.Config{Switches: switches, Probe: probe.New("n1", probe.HookFunc(func(e probe.Event) { n.steps = append(n.steps, e.Step) }))}, n.state)
	n.steps = nil
	return n
}

// search admits a search and returns what became of it: "permit", "no permit"
// or "429", with "+" if it was counted.
func (n *node) search(ctx context.Context, group string, parent *wlm.Permit) (string, *wlm.Permit) {
	n.t.Helper()
	p := new(wlm.Permit)
	err := n.th.AdmitNested(ctx, n.state, group, "search", parent, p)
	what := "no permit"
	switch {
	case err != nil:
		require.Equal(n.t, cluster.TooMany, cluster.KindOf(err))
		what = "429"
	case p.Held():
		what = "permit"
	}
	if p.Counted() {
		what += "+"
	}
	return what, p
}

func (n *node) expect(want string, ctx context.Context, group string, parent *wlm.Permit) *wlm.Permit {
	n.t.Helper()
	got, p := n.search(ctx, group, parent)
	require.Equal(n.t, want, got)
	return p
}

func (n *node) throttled(group string) (throttled, would uint64) {
	n.t.Helper()
	s := stats(n.t, n.th, group)
	if s.WouldThrottle != nil {
		would = *s.WouldThrottle
	}
	return s.Throttled, would
}

func in(mode cluster.ResiliencyMode, g cluster.Group) cluster.Group {
	g.ResiliencyMode = mode
	return g
}

func free(name string) cluster.Group {
	g := group(name, cluster.ByGroup, 1)
	g.Throttling = nil
	return g
}

var nobody = context.Background()

// TestACountedParentExemptsItsSearches is section 2.1 of the reference, step 5,
// and the throttle's part of case C10.
func TestACountedParentExemptsItsSearches(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), group("g", cluster.ByGroup, 1), group("full", cluster.ByUsername, 1))
	parent := n.expect("permit+", nobody, "g", nil)
	child := n.expect("no permit+", nobody, "g", parent)
	n.expect("no permit+", nobody, "g", child) // through two levels
	n.expect("429", nobody, "g", nil)
	n.expect("permit+", user("alice"), "full", nil)
	n.expect("no permit+", user("alice"), "full", parent) // whatever its own bucket
	n.expect("no permit+", nobody, "full", parent)        // and whoever asks
	require.Equal(t, []wlm.GroupPermits{{Group: "full", Buckets: 1, Held: 1}, {Group: "g", Buckets: 1, Held: 1}}, n.th.Permits())
	require.False(t, child.Release())
	require.True(t, parent.Release())
	n.expect("no permit+", nobody, "g", parent) // the mark outlives the permit, as the task does its release
	n.expect("permit+", nobody, "g", nil)
}

// TestAParentThatWasNotCountedExemptsNothing: an _msearch, which takes nothing,
// a search of a group without a limit, a refused one, one without a principal.
func TestAParentThatWasNotCountedExemptsNothing(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), group("g", cluster.ByGroup, 1), group("u", cluster.ByUsername, 1), free("free"))
	for name, parent := range map[string]*wlm.Permit{
		"no parent":                nil,
		"a search of no group":     n.expect("no permit", nobody, "", nil),
		"a group without a limit":  n.expect("no permit", nobody, "free", nil),
		"a group that is not here": n.expect("no permit", nobody, "gone", nil),
		"nobody, by user":          n.expect("no permit", nobody, "u", nil),
		"an empty memory":          new(wlm.Permit),
	} {
		t.Run(name, func(t *testing.T) {
			p := n.expect("permit+", nobody, "g", parent)
			refused := n.expect("429", nobody, "g", parent)
			n.expect("429", nobody, "g", refused)
			require.True(t, p.Release())
		})
	}
}

// TestTheLimitIsLookedAtBeforeTheParent: step 5 stands between steps 4 and 6,
// so a counted parent marks no search that had nothing to be exempt from, and
// comes before the dimension is looked at.
func TestTheLimitIsLookedAtBeforeTheParent(t *testing.T) {
	switches := of(t, wlm.ProfileUpstream)
	n := newNode(t, switches, group("g", cluster.ByGroup, 1), group("u", cluster.ByUsername, 1), free("free"))
	odd, zero := group("odd", cluster.ByGroup, 1), group("zero", cluster.ByGroup, 0)
	odd.Throttling = &cluster.Throttling{By: cluster.ByGroup, NodeLimit: new(int64(1))} // an explicit group
	zero.Throttling = &cluster.Throttling{NodeLimit: new(int64(0))}
	n.state = apply(t, n.state, &cluster.CreateGroup{Group: odd}, &cluster.CreateGroup{Group: zero})
	require.NoError(t, n.th.ApplySettings(n.state, n.state))
	parent := n.expect("permit+", nobody, "g", nil)

	n.expect("no permit", nobody, "", parent)
	n.expect("no permit", nobody, "gone", parent)
	n.expect("no permit", nobody, "free", parent)
	require.Zero(t, n.th.FailedOpen())
	n.expect("no permit", nobody, "zero", parent)
	require.EqualValues(t, 1, n.th.FailedOpen(), "seen, though admitted")
	n.expect("no permit+", nobody, "odd", parent)
	n.expect("no permit+", nobody, "u", parent)
	require.EqualValues(t, 1, n.th.FailedOpen(), "exempt, not failed")
	n.expect("no permit", nobody, "odd", nil)
	require.EqualValues(t, 2, n.th.FailedOpen())

	off := apply(t, n.state, setMode(cluster.MonitorOnly))
	require.NoError(t, n.th.ApplySettings(n.state, off))
	n.expect("no permit", nobody, "g", parent)
}

// TestAStoredFormOfAnotherProfileIsNotThrottled: the node warns, and says how
// many searches it let pass.
func TestAStoredFormOfAnotherProfileIsNotThrottled(t *testing.T) {
	for _, row := range []struct {
		profile string
		stored  cluster.Throttling
		fault   string
	}{
		{wlm.ProfileUpstream, cluster.Throttling{Attribute: cluster.ByUsername, NodeLimit: new(int64(1))}, "Unknown throttle setting: attribute"},
		{wlm.ProfileUpstream, cluster.Throttling{By: cluster.ByGroup, NodeLimit: new(int64(1))}, "must be one of [username, role]"},
		{wlm.ProfileReviewed, cluster.Throttling{By: cluster.ByUsername, NodeLimit: new(int64(1))}, "Unknown throttle setting: by"},
		{wlm.ProfileSubmitted, cluster.Throttling{NodeLimit: new(int64(1))}, "throttling.attribute is required"},
	} {
		g := group("g", cluster.ByGroup, 1)
		g.Throttling = &row.stored
		s := inState(t, g)
		logged := &recorder{}
		th := throttle(t, wlm.Config{Switches: of(t, row.profile), Log: slog.New(logged)}, s)
		require.Equal(t, map[string]int{"g": 1}, logged.groups())
		require.Contains(t, logged.text(), row.fault)
		for range 2 {
			got, _ := admit(t, th, user("alice"), s, "g")
			require.Equal(t, "no permit", got)
		}
		require.EqualValues(t, 2, th.FailedOpen())
	}
}

// TestNestedSearchesAreChargedInTheEarlierProfiles: the inner search of a full
// bucket refuses itself, once (case C10).
func TestNestedSearchesAreChargedInTheEarlierProfiles(t *testing.T) {
	for _, profile := range []string{wlm.ProfileReviewed, wlm.ProfileSubmitted} {
		n := newNode(t, of(t, profile), group("g", cluster.ByGroup, 1))
		parent := n.expect("permit+", nobody, "g", nil)
		n.expect("429", nobody, "g", parent)
		throttled, _ := n.throttled("g")
		require.EqualValues(t, 1, throttled)
		require.True(t, parent.Release())
		require.Empty(t, n.th.Permits())
	}
}

// TestAMonitorGroupIsObserved is section 2.1, step 10.
func TestAMonitorGroupIsObserved(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), in(cluster.Monitor, group("g", cluster.ByGroup, 1)))
	parent := n.expect("permit+", nobody, "g", nil)
	n.steps = nil
	over := n.expect("no permit+", nobody, "g", nil)
	require.Equal(t, []probe.Step{probe.AcquireBegin, probe.Observed}, n.steps)
	require.False(t, over.Release())
	n.expect("no permit+", nobody, "g", over)   // what it starts is not counted twice
	n.expect("no permit+", nobody, "g", parent) // nor what a search with a permit starts
	n.expect("no permit+", nobody, "g", nil)
	throttled, would := n.throttled("g")
	require.Equal(t, []uint64{0, 2}, []uint64{throttled, would})
	require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 1, Held: 1}}, n.th.Permits())

	// Those over the limit hold nothing, so they do not count when the group
	// rejects again.
	n.state = apply(t, n.state, &cluster.UpdateGroup{Name: "g", ResiliencyMode: cluster.Enforced, Form: cluster.KeyBy})
	n.expect("429", nobody, "g", nil)
	require.True(t, parent.Release())
	n.expect("permit+", nobody, "g", nil)
	throttled, would = n.throttled("g")
	require.Equal(t, []uint64{1, 2}, []uint64{throttled, would})
}

// TestTheOtherModesReject: soft ones too, and they count nothing that would
// have been throttled.
func TestTheOtherModesReject(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), in(cluster.Enforced, group("enforced", cluster.ByGroup, 1)), in(cluster.Soft, group("soft", cluster.ByGroup, 1)))
	for _, id := range []string{"enforced", "soft"} {
		n.expect("permit+", nobody, id, nil)
		n.expect("429", nobody, id, nil)
		throttled, would := n.throttled(id)
		require.Equal(t, []uint64{1, 0}, []uint64{throttled, would}, id)
	}
}

// TestMonitorRejectsInTheEarlierProfiles: under the earlier profiles a
// monitor group rejects and the statistics have no such counter.
func TestMonitorRejectsInTheEarlierProfiles(t *testing.T) {
	for _, profile := range []string{wlm.ProfileReviewed, wlm.ProfileSubmitted} {
		n := newNode(t, of(t, profile), in(cluster.Monitor, group("g", cluster.ByGroup, 1)))
		n.expect("permit+", nobody, "g", nil)
		n.expect("429", nobody, "g", nil)
		require.Nil(t, stats(t, n.th, "g").WouldThrottle)
	}
}

// TestAnObservationThatCannotBeCountedStillAdmits: in the registration lag it
// is skipped, and a sink that is broken changes nothing.
func TestAnObservationThatCannotBeCountedStillAdmits(t *testing.T) {
	switches := of(t, wlm.ProfileUpstream)
	state := written(t, switches, in(cluster.Monitor, group("late", cluster.ByGroup, 1)))
	broken := false
	th, err := wlm.New(wlm.Config{Switches: switches, CountFault: func(string) error {
		if broken {
			return errors.New("sink is closed")
		}
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, th.ApplySettings(cluster.Empty(), state))
	require.NoError(t, th.Admit(nobody, state, "late", "", new(wlm.Permit)))
	var over wlm.Permit
	require.NoError(t, th.Admit(nobody, state, "late", "", &over))
	require.True(t, over.Counted())
	require.Zero(t, *stats(t, th, cluster.DefaultGroupID).WouldThrottle)
	require.NoError(t, th.ClusterChanged(cluster.Empty(), state))
	broken = true
	require.NoError(t, th.Admit(nobody, state, "late", "", &over))
	require.Zero(t, *stats(t, th, "late").WouldThrottle)
	broken = false
	require.NoError(t, th.Admit(nobody, state, "late", "", &over))
	require.EqualValues(t, 1, *stats(t, th, "late").WouldThrottle)
}

// TestNextPagesOfAScroll are charged from upstream on, by the same bucket.
func TestNextPagesOfAScroll(t *testing.T) {
	for profile, want := range map[string]string{wlm.ProfileSubmitted: "no permit", wlm.ProfileReviewed: "no permit", wlm.ProfileUpstream: "429"} {
		n := newNode(t, of(t, profile), group("g", cluster.ByGroup, 1))
		held := n.expect("permit+", nobody, "g", nil)
		page := func() string {
			p := held // memory that served another search, its mark too
			if held.Held() {
				p = new(wlm.Permit)
			}
			if err := n.th.AdmitPage(nobody, n.state, "g", "page", p); err != nil {
				require.Equal(t, cluster.TooMany, cluster.KindOf(err))
				return "429"
			}
			if p.Held() {
				require.True(t, p.Release())
				return "permit"
			}
			require.False(t, p.Counted())
			return "no permit"
		}
		require.Equal(t, want, page(), profile)
		require.True(t, held.Release())
		require.Equal(t, strings.Replace(want, "429", "permit", 1), page(), profile)
		require.Empty(t, n.th.Permits())
	}
}

// TestTheTextOfARejection is section 2.9: it names the group, and whoever was
// charged.
func TestTheTextOfARejection(t *testing.T) {
	analytics := func(by cluster.Attribute, limit int64) cluster.Group {
		g := group("an-id", by, limit)
		g.Name = "analytics"
		return g
	}
	for _, row := range []struct {
		by   cluster.Attribute
		as   context.Context
		want string
	}{
		{cluster.ByGroup, user("alice"), "Request throttled: workload group [analytics] reached its per-node limit of 2 concurrent requests."},
		{cluster.ByUsername, user("alice"), "Request throttled: workload group [analytics] for username [alice] reached its per-node limit of 2 concurrent requests."},
		{cluster.ByRole, roles("readall", "all_access"), "Request throttled: workload group [analytics] for role [all_access] reached its per-node limit of 2 concurrent requests."},
	} {
		n := newNode(t, of(t, wlm.ProfileUpstream), analytics(row.by, 2))
		n.expect("permit+", row.as, "an-id", nil)
		n.expect("permit+", row.as, "an-id", nil)
		err := n.th.Admit(row.as, n.state, "an-id", "", new(wlm.Permit))
		require.EqualError(t, err, row.want)
		require.EqualError(t, errors.Unwrap(err), row.want)
	}
	require.EqualError(t, &wlm.Rejection{Limit: 7}, "Node-level workload group throttle limit reached: 7 concurrent in-flight requests")
}

// TestTheSmallestRoleIsCharged whatever the order of the tokens; the others of
// the same user have buckets that nobody fills.
func TestTheSmallestRoleIsCharged(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), group("r", cluster.ByRole, 1))
	n.expect("permit+", roles("readall", "all_access"), "r", nil)
	n.expect("429", roles("all_access", "readall"), "r", nil)
	n.expect("429", roles("", "all_access", "zebra"), "r", nil)
	n.expect("permit+", roles("readall"), "r", nil)
	n.expect("no permit", user("all_access"), "r", nil)

	// In Java's order a pair of surrogates comes before U+E000 and all above.
	n.expect("permit+", roles("\ue000", "\U0001F40C"), "r", nil)
	n.expect("429", roles("\U0001F40C"), "r", nil)
	n.expect("permit+", roles("\ue000"), "r", nil)
}

// FuzzTheOrderOfRolesIsJavas compares with the order of the encoded texts.
func FuzzTheOrderOfRolesIsJavas(f *testing.F) {
	for _, pair := range [][2]string{{"a", "b"}, {"a", "ab"}, {"", "a"}, {"\ue000", "\U0001F40C"}, {"\uffff", "\U0010ffff"}, {"\ud7ff", "\U00010000"}, {"\xff", "\ufffd"}, {"a\xff", "a\xfe"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		got := wlm.CompareUTF16(a, b)
		require.Equal(t, -got, wlm.CompareUTF16(b, a))
		if want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))); want != 0 {
			require.Equal(t, want, got)
		} else {
			require.Equal(t, cmp.Compare(a, b), got, "texts that only their bytes tell apart")
		}
	})
}

// TestTheUnitSeparator: commas are safe, and a blank in front; what the
// reference says of a trailing blank, and a separator inside a name, are not.
func TestTheUnitSeparator(t *testing.T) {
	p := wlm.Principal{User: "a,b", Roles: []string{"x", "y"}}
	require.Equal(t, "username|a,b\x1frole|x\x1frole|y", wlm.Join(wlm.JoinUnitSeparator, p))
	for _, row := range []struct {
		as   wlm.Principal
		by   cluster.Attribute
		want string
	}{
		{p, cluster.ByUsername, "a,b"},
		{p, cluster.ByRole, "x"},
		{wlm.Principal{User: "alice "}, cluster.ByUsername, "alice"},
		{wlm.Principal{User: " alice"}, cluster.ByUsername, " alice"},
		{wlm.Principal{User: "   "}, cluster.ByUsername, ""},
		{wlm.Principal{User: "a\x1fb"}, cluster.ByUsername, "a"},
		{wlm.Principal{User: "b\x1fusername|a"}, cluster.ByUsername, "a"},
		{wlm.Principal{User: "username|a"}, cluster.ByUsername, "username|a"},
		{wlm.Principal{User: "role|x"}, cluster.ByRole, ""},
	} {
		require.Equal(t, row.want, wlm.Value(wlm.JoinUnitSeparator, wlm.RoleSmallest, row.as, row.by), "%q by %s", row.as, row.by)
	}
	refused, seconds := oneBucketEach(t, of(t, wlm.ProfileUpstream), cluster.ByUsername, user, separators())
	require.Equal(t, []string{"a "}, refused, "of the names of case C16 one shares a bucket, a's")
	require.Equal(t, len(separators()), seconds)
}

// TestWithoutAUsablePrincipalASearchIsAdmitted and not marked, so that nothing
// it starts is exempt.
func TestWithoutAUsablePrincipalASearchIsAdmitted(t *testing.T) {
	n := newNode(t, of(t, wlm.ProfileUpstream), group("u", cluster.ByUsername, 1), group("r", cluster.ByRole, 1))
	for name, as := range map[string]struct {
		ctx   context.Context
		group string
	}{
		"no principal, by user": {nobody, "u"}, "no principal, by role": {nobody, "r"},
		"an empty principal": {user(""), "u"}, "an empty role": {roles(""), "r"},
		"a role, by user": {roles("ops"), "u"}, "a user, by role": {user("alice"), "r"},
		"blanks alone": {user(" \t"), "u"},
	} {
		for range 2 {
			got, _ := n.search(as.ctx, as.group, nil)
			require.Equal(t, "no permit", got, name)
		}
	}
	require.Empty(t, n.th.Permits())
}

// TestTheHeaderOfAGroupSetTwice is section 4.1's header that is put once.
func TestTheHeaderOfAGroupSetTwice(t *testing.T) {
	for profile, want := range map[string]string{wlm.ProfileSubmitted: "", wlm.ProfileReviewed: "", wlm.ProfileUpstream: "outer"} {
		th, err := wlm.New(wlm.Config{Switches: of(t, profile)})
		require.NoError(t, err)
		for _, pair := range [][2]string{{"", ""}, {"outer", ""}, {"", "inner"}} {
			got, err := th.Tag(pair[0], pair[1])
			require.NoError(t, err)
			require.Equal(t, pair[0]+pair[1], got)
		}
		for _, inner := range []string{"inner", "outer"} {
			got, err := th.Tag("outer", inner)
			require.Equal(t, want, got)
			if want != "" {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, "value for key [workloadGroupId] already present")
			require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
		}
	}
}

// TestChangesWhileSearchesRun is the table of section 2.7, under both forms.
func TestChangesWhileSearchesRun(t *testing.T) {
	for _, profile := range []string{wlm.ProfileReviewed, wlm.ProfileUpstream} {
		t.Run(profile, func(t *testing.T) {
			switches := of(t, profile)
			n := newNode(t, switches, group("g", cluster.ByGroup, 1))
			change := func(p cluster.ThrottlingPatch) {
				before := n.state
				n.state = apply(t, n.state, switches.DimensionKey.Update(cluster.UpdateGroup{Name: "g", Throttling: p}))
				require.NoError(t, n.th.ApplySettings(before, n.state))
				require.NoError(t, n.th.ClusterChanged(before, n.state))
			}
			old := n.expect("permit+", user("alice"), "g", nil)
			change(cluster.ThrottlingPatch{Attribute: cluster.Give(cluster.ByUsername)})
			fresh := n.expect("permit+", user("alice"), "g", nil) // new keys start from 0
			n.expect("429", user("alice"), "g", nil)
			require.Equal(t, []wlm.GroupPermits{{Group: "g", Buckets: 2, Held: 2}}, n.th.Permits())
			change(cluster.ThrottlingPatch{Clear: true})
			n.expect("no permit", user("alice"), "g", nil)
			change(cluster.ThrottlingPatch{Attribute: cluster.Give(cluster.ByUsername), NodeLimit: cluster.Give(int64(1))})
			n.expect("429", user("alice"), "g", nil) // permits of the same key still count
			require.True(t, fresh.Release())
			n.expect("permit+", user("alice"), "g", nil).Release()

			before := n.state
			n.state = apply(t, n.state, setMode(cluster.Disabled))
			require.NoError(t, n.th.ApplySettings(before, n.state))
			n.expect("no permit", user("alice"), "g", nil)
			before, n.state = n.state, apply(t, n.state, setMode(cluster.Enabled), &cluster.DeleteGroup{Name: "g"})
			require.NoError(t, n.th.ApplySettings(before, n.state))
			n.expect("no permit", user("alice"), "g", nil)
			require.True(t, old.Release(), "releases still work when the group is gone")
			require.Empty(t, n.th.Permits())
		})
	}
}

// TestALimitThatIsNoneMakesNoBucket: nobody may ask the ledger under one.
func TestALimitThatIsNoneMakesNoBucket(t *testing.T) {
	for _, acquire := range []string{"exact", "rollback"} {
		for _, limit := range []int{0, -1} {
			th, err := wlm.New(wlm.Config{Switches: with(t, "acquire", acquire)})
			require.NoError(t, err)
			require.PanicsWithValue(t, fmt.Sprintf("wlm: a permit was asked for under a limit of %d", limit), func() {
				th.Acquire("g", cluster.ByGroup, "", limit, new(wlm.Permit))
			})
			buckets, _, _ := th.Footprint()
			require.Zero(t, buckets)
		}
	}
}

// TestUserInfoIsReadByTheRulesOfThePlugin: the escapes of '|' are taken back,
// a comma inside a role is none of the plugin's.
func TestUserInfoIsReadByTheRulesOfThePlugin(t *testing.T) {
	for _, row := range []struct {
		info string
		want wlm.Principal
		err  string
	}{
		{"alice", wlm.Principal{User: "alice"}, ""},
		{"alice|backend1,backend2|role1,role2|tenant", wlm.Principal{User: "alice", Roles: []string{"role1", "role2"}}, ""},
		{"alice||role1", wlm.Principal{User: "alice", Roles: []string{"role1"}}, ""},
		{"alice|||", wlm.Principal{User: "alice"}, ""},
		{`a\|b||x\|y,z`, wlm.Principal{User: "a|b", Roles: []string{"x|y", "z"}}, ""},
		{`a\\|b|c`, wlm.Principal{User: `a\`, Roles: []string{"c"}}, ""},
		{`a\b\`, wlm.Principal{User: `a\b\`}, ""},
		{"a b, c ||r", wlm.Principal{User: "a b, c ", Roles: []string{"r"}}, ""},
		{"", wlm.Principal{}, "user info has no name"},
		{"||role1", wlm.Principal{}, "user info has no name"},
		{"a|||||||h", wlm.Principal{User: "a"}, ""},
		{"a||||||||i", wlm.Principal{}, "user info has 9 fields: at most 8"},
	} {
		got, err := wlm.ExtractPrincipal(row.info)
		if row.err != "" {
			require.EqualError(t, err, row.err, row.info)
		} else {
			require.NoError(t, err, row.info)
		}
		require.Equal(t, row.want, got, row.info)
	}
}

// userInfo writes a principal as the plugin does.
func userInfo(p wlm.Principal) string {
	escape := strings.NewReplacer(`\`, `\\`, `|`, `\|`)
	return escape.Replace(p.User) + "||" + escape.Replace(strings.Join(p.Roles, ","))
}

// FuzzUserInfoPrintsAsItParses: what a name has of pipes, backslashes and
// commas comes back; of roles all but commas.
func FuzzUserInfoPrintsAsItParses(f *testing.F) {
	for _, name := range append(separators(), lookalikes()...) {
		f.Add(name, "x", name)
	}
	f.Fuzz(func(t *testing.T, name, first, second string) {
		if name == "" || first == "" || strings.Contains(first+second, ",") {
			return
		}
		want := wlm.Principal{User: name, Roles: []string{first, second}}
		got, err := wlm.ExtractPrincipal(userInfo(want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// TestSearchesThatSkipTaggingAreCountedOnTheDefault is the throttle's part of
// case C15: every way in, with no group and nobody named.
func TestSearchesThatSkipTaggingAreCountedOnTheDefault(t *testing.T) {
	const each = 1_000
	for _, profile := range wlm.Profiles() {
		switches := of(t, profile)
		s := written(t, switches, group("g", cluster.ByGroup, 1), group("u", cluster.ByUsername, 1))
		logged := &recorder{}
		th := throttle(t, wlm.Config{Switches: switches, Log: slog.New(logged)}, s)
		var parent wlm.Permit
		for _, admit := range []func(id string, p *wlm.Permit) error{
			func(id string, p *wlm.Permit) error { return th.Admit(nobody, s, id, "search", p) },
			func(id string, p *wlm.Permit) error { return th.AdmitPage(nobody, s, id, "page", p) },
			func(id string, p *wlm.Permit) error { return th.AdmitNested(nobody, s, id, "inner", &parent, p) },
		} {
			for _, id := range []string{"", cluster.DefaultGroupID} {
				for range each {
					var p wlm.Permit
					require.NoError(t, admit(id, &p))
					require.False(t, p.Release())
					th.Completed(id)
				}
			}
			require.NoError(t, admit("u", new(wlm.Permit))) // a group by user, and nobody
		}
		all, err := th.Stats(nil)
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.EqualValues(t, 6*each, all[0].Completions)
		require.Empty(t, logged.text(), profile)
		require.Empty(t, th.Permits())
	}
}
