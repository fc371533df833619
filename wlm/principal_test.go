package wlm_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/wlm"
)

// separators are the names of case C16.
func separators() []string {
	return []string{"a", "a,b", "a|b", `a\,b`, `a\|b`, "a:b", "username|a", `"a"`, "a ", "a\nb", "a\x00b",
		" a", "a,", ",a", `a\`, `a\\`, "a,username|b", "b", "role|a", "CN=x,OU=y,DC=z"}
}

// lookalikes are the names of case C17.
func lookalikes() []string {
	return []string{"Bob", "bob", "BOB", "caf\u00e9", "cafe\u0301", "\u00c5", "\u00e5", "I", "\u0131", "\uff42\uff4f\uff42",
		"\u0430dmin", "admin", "bob\u200f", "\xff\xfe", "\xff", "\ufffd"}
}

// oneBucketEach admits one search for each name and says which names were
// refused, and whether a second search of each name was refused.
func oneBucketEach(t *testing.T, switches wlm.Switches, by cluster.Attribute, as func(string) context.Context, names []string) (refused []string, secondsRefused int) {
	t.Helper()
	s := written(t, switches, group("g", by, 1))
	th := throttle(t, wlm.Config{Switches: switches}, s)
	for _, name := range names {
		if got, _ := admit(t, th, as(name), s, "g"); got == "429" {
			refused = append(refused, name)
		}
	}
	for _, name := range names {
		if got, _ := admit(t, th, as(name), s, "g"); got == "429" {
			secondsRefused++
		}
	}
	return refused, secondsRefused
}

func TestEveryNameHasItsOwnBucket(t *testing.T) {
	names := append(separators(), lookalikes()...)
	for by, as := range map[cluster.Attribute]func(string) context.Context{
		cluster.ByUsername: user,
		cluster.ByRole:     func(name string) context.Context { return roles(name) },
	} {
		refused, seconds := oneBucketEach(t, with(t), by, as, names)
		require.Empty(t, refused, "by %s", by)
		require.Equal(t, len(names), seconds, "by %s", by)
	}
}

// TestNamesCollideUnderComma is the flaw of remark 4, planted.
func TestNamesCollideUnderComma(t *testing.T) {
	refused, _ := oneBucketEach(t, with(t, "principal_join", "comma"), cluster.ByUsername, user, separators())
	require.Equal(t, []string{"a,b", "a ", "a,", `a\`, "a,username|b"}, refused, "they fall into the bucket of a, or of a\\,b that became a\\")

	for _, row := range []struct {
		as   wlm.Principal
		by   cluster.Attribute
		want string
	}{
		{wlm.Principal{User: "a,b"}, cluster.ByUsername, "a"},
		{wlm.Principal{User: " \t a\n,b"}, cluster.ByUsername, " \t a"},
		{wlm.Principal{User: ",username|b"}, cluster.ByUsername, "b"},
		{wlm.Principal{User: "a,role|admin", Roles: []string{"r"}}, cluster.ByRole, "admin"},
		{wlm.Principal{Roles: []string{"CN=x,OU=y", "x"}}, cluster.ByRole, "CN=x"},
		{wlm.Principal{Roles: []string{",", "x"}}, cluster.ByRole, "x"},
		{wlm.Principal{User: "\u00a0a\u2003"}, cluster.ByUsername, "\u00a0a\u2003"}, // Java trims ASCII only
	} {
		require.Equal(t, row.want, wlm.Value(wlm.JoinComma, wlm.RoleFirst, row.as, row.by), "%q by %s", row.as, row.by)
	}
}

// TestARoleWithCommasIsOneRole is the second half of case C16.
func TestARoleWithCommasIsOneRole(t *testing.T) {
	s := enabled(t, group("g", cluster.ByRole, 1))
	th := throttle(t, wlm.Config{}, s)
	for _, as := range []context.Context{roles("CN=x,OU=y,DC=z"), roles("x", "y"), roles("y"), roles("CN=x")} {
		got, _ := admit(t, th, as, s, "g")
		require.Equal(t, "permit", got)
	}
	got, _ := admit(t, th, roles("CN=x,OU=y,DC=z", "other"), s, "g")
	require.Equal(t, "429", got)
}

func TestThePrincipalTravelsByHeaderOnly(t *testing.T) {
	ctx := wlm.WithPrincipal(context.Background(), wlm.Principal{User: "a,b", Roles: []string{"ops", ""}, Canary: "canary-7f3a"})
	for _, row := range []struct {
		carrier, join string
		want          []wire.Header
	}{
		{"context", "escaped", nil},
		{"context", "comma", nil},
		{"header", "comma", []wire.Header{{Name: "workloadGroupPrincipal", Value: "username|a,b,role|ops"}, {Name: "workloadGroupPrincipal", Value: "canary-7f3a"}}},
		{"header", "escaped", []wire.Header{{Name: "workloadGroupPrincipal", Value: `username|a\,b,role|ops`}, {Name: "workloadGroupPrincipal", Value: "canary-7f3a"}}},
	} {
		th, err := wlm.New(wlm.Config{Switches: with(t, "principal_carrier", row.carrier, "principal_join", row.join)})
		require.NoError(t, err)
		require.Equal(t, row.want, th.CarrierHeaders(ctx))
		require.Empty(t, th.CarrierHeaders(context.Background()))
		require.Empty(t, th.CarrierHeaders(user("")))
	}
}

func TestAContextCarriesThePrincipalByteForByte(t *testing.T) {
	want := wlm.Principal{User: "a \xff", Roles: []string{"x,y"}, Canary: "c"}
	got, ok := wlm.PrincipalFrom(wlm.WithPrincipal(context.Background(), want))
	require.True(t, ok)
	require.Equal(t, want, got)
	_, ok = wlm.PrincipalFrom(context.Background())
	require.False(t, ok)
}

// TestNothingThatLeavesNamesAPrincipal looks through errors, statistics, steps
// and logs under profile reviewed.
func TestNothingThatLeavesNamesAPrincipal(t *testing.T) {
	const name, canary = "mallory-9c1e", "canary-7f3a"
	var seen bytes.Buffer
	steps := probe.New("n1", probe.HookFunc(func(e probe.Event) { fmt.Fprintf(&seen, "%+v\n", e) }))
	s := enabled(t, group("u", cluster.ByUsername, 1), group("r", cluster.ByRole, 1))
	th := throttle(t, wlm.Config{Probe: steps, Log: slog.New(slog.NewTextHandler(&seen, nil)),
		CountFault: func(string) error { return fmt.Errorf("sink is closed") }}, s)
	ctx := wlm.WithPrincipal(context.Background(), wlm.Principal{User: name, Roles: []string{name}, Canary: canary})
	for _, id := range []string{"u", "r"} {
		var held, refused wlm.Permit
		require.NoError(t, th.Admit(ctx, s, id, "one", &held))
		fmt.Fprintf(&seen, "%#v %+v\n", th.Admit(ctx, s, id, "two", &refused), th.Permits())
		held.Release()
	}
	all, err := th.Stats(nil)
	require.NoError(t, err)
	fmt.Fprintf(&seen, "%+v\n", all)
	require.Contains(t, seen.String(), "wlm.rejected")
	require.Contains(t, seen.String(), "sink is closed")
	require.NotContains(t, seen.String(), name)
	require.NotContains(t, seen.String(), canary)
}

// splitEscaped reads back what principal_join: escaped writes; it shares
// nothing with the writer.
func splitEscaped(text string) []string {
	tokens := []string{""}
	for i := 0; i < len(text); i++ {
		last := &tokens[len(tokens)-1]
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			*last += text[i : i+1]
		case text[i] == ',':
			tokens = append(tokens, "")
		default:
			*last += text[i : i+1]
		}
	}
	return tokens
}

// FuzzEscapedKeepsEveryByte joins a principal and splits the text again: every
// token comes back, and the value that is throttled by is the first token's.
func FuzzEscapedKeepsEveryByte(f *testing.F) {
	for _, name := range append(separators(), lookalikes()...) {
		f.Add(name, name, "x")
		f.Add("", "", name)
	}
	f.Fuzz(func(t *testing.T, name, first, second string) {
		p := wlm.Principal{User: name, Roles: []string{first, second}}
		var tokens []string
		want := map[cluster.Attribute]string{}
		for _, token := range []struct {
			by   cluster.Attribute
			name string
		}{{cluster.ByUsername, name}, {cluster.ByRole, first}, {cluster.ByRole, second}} {
			if token.name == "" {
				continue
			}
			tokens = append(tokens, string(token.by)+"|"+token.name)
			if want[token.by] == "" {
				want[token.by] = token.name
			}
		}
		text := wlm.Join(wlm.JoinEscaped, p)
		if len(tokens) == 0 {
			require.Empty(t, text)
		} else {
			require.Equal(t, tokens, splitEscaped(text))
		}
		for _, by := range []cluster.Attribute{cluster.ByUsername, cluster.ByRole} {
			require.Equal(t, want[by], wlm.Value(wlm.JoinEscaped, wlm.RoleFirst, p, by))
		}
		// Names without what comma stumbles over mean the same to both.
		if !strings.ContainsFunc(name+first+second, func(r rune) bool { return r <= ' ' || r == ',' }) {
			require.Equal(t, want[cluster.ByUsername], wlm.Value(wlm.JoinComma, wlm.RoleFirst, p, cluster.ByUsername))
		}
	})
}

// FuzzBucketsAreDistinct: two keys share a bucket only if they are equal.
func FuzzBucketsAreDistinct(f *testing.F) {
	f.Add("g", "alice", "g", "alice", uint64(0))
	f.Add("g", "a", "ga", "", uint64(1))
	f.Add("g:username", "x", "g", "username:x", uint64(2))
	f.Add("0123456789abcdef", "0123456789abcdef0", "0123456789abcdef0", "123456789abcdef0", uint64(3))
	f.Fuzz(func(t *testing.T, group1, value1, group2, value2 string, seed uint64) {
		for _, acquire := range []string{"exact", "rollback"} {
			th, err := wlm.New(wlm.Config{Seed: seed, Switches: with(t, "acquire", acquire)})
			require.NoError(t, err)
			var first, second, byRole wlm.Permit
			require.True(t, th.Acquire(group1, cluster.ByUsername, value1, 1, &first))
			same := group1 == group2 && value1 == value2
			require.Equal(t, !same, th.Acquire(group2, cluster.ByUsername, value2, 1, &second))
			require.True(t, th.Acquire(group1, cluster.ByRole, value1, 1, &byRole))
			require.True(t, first.Release())
			require.Equal(t, !same, second.Release())
			require.True(t, byRole.Release())
			require.Empty(t, th.Permits())
		}
	})
}
