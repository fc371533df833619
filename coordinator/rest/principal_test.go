package rest_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// percent writes every byte of a name as %XX.
func percent(name string) string {
	var b strings.Builder
	for i := range len(name) {
		fmt.Fprintf(&b, "%%%02X", name[i])
	}
	return b.String()
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// separators are the names of case C16, lookalikes those of case C17.
var (
	separators = []string{"a", "a,b", "a|b", `a\,b`, `a\|b`, "username|a", `"a"`, "a ", " a", "a\n", "a\x00", "\x1f", "a\tb", "%", "+", "a+b"}
	lookalikes = []string{"Bob", "bob", "BOB", "caf\u00e9", "cafe\u0301", "\u00c5", "\u00e5", "I", "\u0131", "\uff42\uff4f\uff42", "\u0430dmin", "bob\u200f", "\xff\xfe", "\xc3(", "\xed\xa0\x80"}
)

// C16, C17: a name reaches the throttle byte for byte, by all ways of naming.
func TestC16_C17_NamesArriveByteForByte(t *testing.T) {
	w := newWorld(t)
	for _, name := range append(append([]string{"a:b", "CN=x,OU=y,DC=z"}, separators...), lookalikes...) {
		for _, c := range []struct {
			how     string
			headers []string
			want    wlm.Principal
		}{
			{"percent-encoded user", []string{rest.HeaderUser, percent(name)}, wlm.Principal{User: name}},
			{"percent-encoded role", []string{rest.HeaderRole, percent(name)}, wlm.Principal{Roles: []string{name}}},
			{"user and roles", []string{rest.HeaderUser, percent(name), rest.HeaderRole, "x", rest.HeaderRole, percent(name)}, wlm.Principal{User: name, Roles: []string{"x", name}}},
			{"basic auth", []string{"Authorization", basic(name, "any")}, wlm.Principal{User: name}},
			{"the header before basic auth", []string{"Authorization", basic("other", "any"), rest.HeaderUser, percent(name)}, wlm.Principal{User: name}},
		} {
			if c.how == "basic auth" && strings.Contains(name, ":") {
				continue // what basic auth cannot name
			}
			w.searcher.principals = nil
			require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/_search", "", c.headers...).Code, "%s %q", c.how, name)
			require.Equal(t, []wlm.Principal{c.want}, w.searcher.principals, "%s %q", c.how, name)
		}
	}
}

// Bytes that a header may hold need no encoding.
func TestUnencodedNamesAreTakenAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.do(http.MethodGet, "/_search", "", rest.HeaderUser, "a+b\xff\u00e9,c|d")
	require.Equal(t, []wlm.Principal{{User: "a+b\xff\u00e9,c|d"}}, w.searcher.principals)
}

func TestWhoNamesNobodyIsNobody(t *testing.T) {
	w := newWorld(t)
	for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}, {"Authorization", basic("", "")}, {rest.HeaderUser, ""}} {
		require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/_search", "", headers...).Code)
	}
	require.Empty(t, w.searcher.principals)
	require.Equal(t, 4, w.searcher.nobodies)
}

func TestBadPrincipalsAreRefused(t *testing.T) {
	many := make([]string, 0, 2*(rest.MaxRoles+1))
	for range rest.MaxRoles + 1 {
		many = append(many, rest.HeaderRole, "r")
	}
	for _, c := range []struct {
		headers []string
		names   string
	}{
		{[]string{rest.HeaderUser, "%"}, rest.HeaderUser},
		{[]string{rest.HeaderUser, "%4"}, rest.HeaderUser},
		{[]string{rest.HeaderUser, "a%zz"}, rest.HeaderUser},
		{[]string{rest.HeaderRole, "ok", rest.HeaderRole, "%"}, rest.HeaderRole},
		{[]string{rest.HeaderUser, "a", rest.HeaderUser, "b"}, rest.HeaderUser},
		{[]string{"Authorization", "Basic !"}, "Authorization"},
		{[]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("no colon"))}, "Authorization"},
		{[]string{"Authorization", "basic"}, "Authorization"},
		{many, rest.HeaderRole},
	} {
		w := newWorld(t)
		for _, path := range []string{"/_search", "/_wlmsim/state"} {
			r := w.do(http.MethodGet, path, "", c.headers...)
			require.Equal(t, http.StatusBadRequest, r.Code, "%q", c.headers)
			require.Contains(t, reason(t, r), c.names)
		}
		require.Empty(t, w.searcher.requests)
	}
}

// C20: the written maximum is 1,024 bytes; 1 MB gets its 400.
func TestC20_LongNamesAreRefused(t *testing.T) {
	fits, long, huge := strings.Repeat("n", rest.MaxName), strings.Repeat("n", rest.MaxName+1), strings.Repeat("n", 1<<20)
	w := newWorld(t)
	for _, name := range []string{fits, percent(fits)} {
		require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/_search", "", rest.HeaderUser, name, rest.HeaderRole, name).Code)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/_search", "", "Authorization", basic(fits, "")).Code)
	require.Len(t, w.searcher.requests, 3)
	for _, headers := range [][]string{
		{rest.HeaderUser, long}, {rest.HeaderUser, percent(long)}, {rest.HeaderUser, huge}, {rest.HeaderUser, percent(huge)},
		{rest.HeaderRole, long}, {rest.HeaderRole, huge}, {"Authorization", basic(long, "")}, {"Authorization", basic(huge, "")},
		{"X-Opaque-Id", long}, {"workloadGroupId", long},
	} {
		r := w.do(http.MethodGet, "/_search", "", headers...)
		require.Equal(t, http.StatusBadRequest, r.Code, headers[0])
		require.Contains(t, reason(t, r), headers[0])
		require.Less(t, r.Body.Len(), 1024)
	}
	require.Len(t, w.searcher.requests, 3)
}

// The table of users: a password for each name, whichever way the name came.
func TestUsersNeedTheirPassword(t *testing.T) {
	hash := func(password string) []byte {
		h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		require.NoError(t, err)
		return h
	}
	w := newWorld(t, func(c *rest.Config) {
		c.Users = map[string]rest.User{"alice": {PasswordHash: hash("secret"), Roles: []string{"analyst"}}, "a:b": {PasswordHash: hash("colon")}}
	})
	for range 2 { // the second time the password is remembered
		for _, c := range []struct {
			headers []string
			status  int
		}{
			{nil, 401},
			{[]string{"Authorization", basic("alice", "secret")}, 200},
			{[]string{"Authorization", basic("alice", "wrong")}, 401},
			{[]string{"Authorization", basic("alice", "")}, 401},
			{[]string{"Authorization", basic("Alice", "secret")}, 401},
			{[]string{"Authorization", basic("a", "colon")}, 401},
			{[]string{rest.HeaderUser, "alice"}, 401},
			{[]string{"Authorization", basic("alice", "secret"), rest.HeaderUser, "a:b"}, 401},
			{[]string{"Authorization", basic("", "colon"), rest.HeaderUser, "a%3Ab"}, 200},
			{[]string{"Authorization", "Bearer secret"}, 401},
		} {
			for _, path := range []string{"/_search", "/", "/_nonsense"} {
				r := w.do(http.MethodGet, path, "", c.headers...)
				if c.status == 401 {
					require.Equal(t, 401, r.Code, "%s %q", path, c.headers)
					require.Equal(t, `Basic realm="wlmsim", charset="UTF-8"`, r.Header().Get("WWW-Authenticate"))
				} else {
					require.NotEqual(t, 401, r.Code, "%s %q", path, c.headers)
				}
			}
		}
	}
	w.searcher.principals = nil
	w.do(http.MethodGet, "/_search", "", "Authorization", basic("alice", "secret"), rest.HeaderRole, "guest")
	require.Equal(t, []wlm.Principal{{User: "alice", Roles: []string{"analyst", "guest"}}}, w.searcher.principals)
}

// The principal is in the context of searches and counts and nowhere else.
func TestPrincipalsGoIntoSearchesOnly(t *testing.T) {
	w := newWorld(t)
	for _, route := range w.handler.Routes() {
		path := strings.NewReplacer("{index}", "_all", "{name}", "g", "{id}", "r", "{node}", "m1", "{group}", "g", "{step}", "wlm.acquired").Replace(route.Pattern)
		for _, method := range route.Methods {
			w.searcher.principals, w.searcher.requests = nil, nil
			r := w.do(method, path, "", rest.HeaderUser, "hush-hush", "X-Opaque-Id", "one")
			require.NotContains(t, r.Body.String(), "hush-hush")
			require.Equal(t, len(w.searcher.requests), len(w.searcher.principals))
			if searches := strings.HasSuffix(path, "_search") || strings.HasSuffix(path, "_count") || strings.HasPrefix(path, "/_search/scroll/") && method != http.MethodDelete; searches {
				require.Len(t, w.searcher.principals, 1, path)
			} else {
				require.Empty(t, w.searcher.principals, path)
			}
		}
	}
}

// Every principal gets a canary of its own, and nobody has none.
func TestEveryPrincipalHasItsCanary(t *testing.T) {
	n := 0
	w := newWorld(t, func(c *rest.Config) {
		c.Canary = func() string { n++; return fmt.Sprintf("canary-%d", n) }
	})
	w.do(http.MethodGet, "/_search", "", rest.HeaderUser, "a")
	w.do(http.MethodGet, "/_search", "")
	w.do(http.MethodGet, "/_search", "", rest.HeaderRole, "b")
	require.Equal(t, []wlm.Principal{{User: "a", Canary: "canary-1"}, {Roles: []string{"b"}, Canary: "canary-2"}}, w.searcher.principals)
}

// Go's server hands names over as they were sent, so that the headers' bytes
// are the ones that are decoded.
func TestHeaderNamesAreInTheServersForm(t *testing.T) {
	for _, name := range []string{rest.HeaderUser, rest.HeaderRole, rest.HeaderPermit} {
		require.Equal(t, http.CanonicalHeaderKey(name), name)
	}
	w := newWorld(t)
	r := httptest.NewRequest(http.MethodGet, "/_search", nil)
	r.Header.Set(strings.ToUpper(rest.HeaderGroup), "the-group")
	w.handler.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "the-group", w.searcher.requests[0].GroupHeader)
}
