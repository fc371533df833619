package rest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// Section 1.5 of the reference: what the API takes and how it refuses, in both
// forms of throttling. Want is the throttling that the answer shows, or the
// reason of the refusal.
func TestThrottlingIsReadInTheProfilesForm(t *testing.T) {
	zeros := strings.Repeat("0", 200) // more than a message shows
	const ceiling = "Effective throttle ceiling is 0 (node_limit=0); this would reject all requests. Set node_limit to a positive value, or set throttling as null to disable throttling"
	for form, rows := range map[cluster.DimensionKey][][2]string{
		cluster.KeyAttribute: {
			{`{"attribute":"username","node_limit":5}`, `{"attribute":"username","node_limit":5}`},
			{`{"node_limit":5,"attribute":"group"}`, `{"attribute":"group","node_limit":5}`},
			{`{}`, ``},
			{`null`, ``},
			{`{"attribute":null,"node_limit":null}`, ``},
			{`{"by":"username","node_limit":5}`, "Unknown throttle setting: by"},
			{`{"attribute":"tenant","node_limit":5}`, "throttling.attribute must be one of [group, username, role] but was 'tenant'"},
			{`{"attribute":"","node_limit":5}`, "throttling.attribute must be one of [group, username, role] but was ''"},
			{`{"attribute":"group","node_limit":"many"}`, `throttling.node_limit must be an integer but was '"many"'`},
			{`{"attribute":"group","node_limit":"10"}`, `throttling.node_limit must be an integer but was '"10"'`},
			{`{"attribute":5,"node_limit":10}`, "throttling.attribute must be one of [group, username, role] but was '5'"},
			{`{"attribute":"group","node_limit":-1}`, "throttling.node_limit must be non-negative but was -1"},
			{`{"attribute":"group","node_limit":2147483648}`, "throttling.node_limit must not exceed 2147483647 but was 2147483648"},
			{`{"attribute":"group","node_limit":1` + zeros + `}`, "throttling.node_limit must not exceed 2147483647 but was 1" + zeros[:127] + "..."},
			{`{"attribute":"group","node_limit":1` + zeros + `.5}`, "throttling.node_limit must be an integer but was '1" + zeros[:127] + "...'"},
			{`{"attribute":"group","node_limit":"` + zeros + `"}`, `throttling.node_limit must be an integer but was '"` + zeros[:128] + `..."'`},
			{`{"attribute":"group","node_limit":0}`, ceiling},
			{`{"attribute":"group"}`, "throttling.node_limit is required when throttling.attribute is set; set throttling as null to disable throttling instead"},
			{`{"node_limit":5}`, "throttling.attribute is required when a throttle limit is set"},
		},
		cluster.KeyBy: {
			{`{"by":"username","node_limit":5}`, `{"by":"username","node_limit":5}`},
			{`{"node_limit":5,"by":"role"}`, `{"by":"role","node_limit":5}`},
			{`{"node_limit":2147483647}`, `{"node_limit":2147483647}`},
			{`{"by":null,"node_limit":5}`, `{"node_limit":5}`},
			{`{}`, ``},
			{`null`, ``},
			{`{"attribute":"username","node_limit":5}`, "Unknown throttle setting: attribute"},
			{`{"attribute":null}`, "Unknown throttle setting: attribute"},
			{`{"shared_limit":5}`, "Unknown throttle setting: shared_limit"},
			{`{"by":"group","node_limit":5}`, "Invalid value 'group' for throttling.by: throttling.by must be one of [username, role] when set but was 'group'"},
			{`{"by":"","node_limit":5}`, "Invalid value '' for throttling.by: throttling.by must be one of [username, role] when set but was ''"},
			{`{"by":"Role","node_limit":5}`, "Invalid value 'Role' for throttling.by: throttling.by must be one of [username, role] when set but was 'Role'"},
			{`{"node_limit":"10"}`, `{"node_limit":10}`},
			{`{"by":"role","node_limit":"+10"}`, `{"by":"role","node_limit":10}`},
			{`{"node_limit":"0010"}`, `{"node_limit":10}`},
			{`{"node_limit":"` + zeros + `10"}`, `{"node_limit":10}`},
			{`{"node_limit":"` + zeros[:127] + `5x"}`, "Invalid value '" + zeros[:127] + "5...' for throttling.node_limit: Failed to parse value [" + zeros[:127] + "5...] for setting [node_limit]"},
			{`{"node_limit":"-` + zeros + `1"}`, "Invalid value '-" + zeros[:127] + "...' for throttling.node_limit: throttling.node_limit must be non-negative but was -" + zeros[:127] + "..."},
			{`{"node_limit":"2147483647"}`, `{"node_limit":2147483647}`},
			{`{"node_limit":"2147483648"}`, "Invalid value '2147483648' for throttling.node_limit: Failed to parse value [2147483648] for setting [node_limit]"},
			{`{"node_limit":"-1"}`, "Invalid value '-1' for throttling.node_limit: throttling.node_limit must be non-negative but was -1"},
			{`{"node_limit":"-0"}`, ceiling},
			{`{"node_limit":"0"}`, ceiling},
			{`{"node_limit":" 10"}`, "Invalid value ' 10' for throttling.node_limit: Failed to parse value [ 10] for setting [node_limit]"},
			{`{"node_limit":"1_0"}`, "Invalid value '1_0' for throttling.node_limit: Failed to parse value [1_0] for setting [node_limit]"},
			{`{"node_limit":"1e1"}`, "Invalid value '1e1' for throttling.node_limit: Failed to parse value [1e1] for setting [node_limit]"},
			{`{"node_limit":""}`, "Invalid value '' for throttling.node_limit: Failed to parse value [] for setting [node_limit]"},
			{`{"node_limit":true}`, "Invalid value 'true' for throttling.node_limit: Failed to parse value [true] for setting [node_limit]"},
			{`{"by":5,"node_limit":5}`, "Invalid value '5' for throttling.by: throttling.by must be one of [username, role] when set but was '5'"},
			{`{"node_limit":"many"}`, `Invalid value 'many' for throttling.node_limit: Failed to parse value [many] for setting [node_limit]`},
			{`{"node_limit":5.0}`, "Invalid value '5.0' for throttling.node_limit: Failed to parse value [5.0] for setting [node_limit]"},
			{`{"node_limit":-1}`, "Invalid value '-1' for throttling.node_limit: throttling.node_limit must be non-negative but was -1"},
			{`{"node_limit":2147483648}`, "Invalid value '2147483648' for throttling.node_limit: Failed to parse value [2147483648] for setting [node_limit]"},
			{`{"node_limit":0}`, ceiling},
			{`{"by":"username"}`, "throttling.node_limit is required when throttling.by is set; set throttling as null to disable throttling instead"},
		},
	} {
		for _, row := range rows {
			t.Run(string(form)+" "+row[0], func(t *testing.T) {
				w := newWorld(t, func(c *rest.Config) { c.Dimension = form })
				created := w.createGroup("g", row[0])
				w.createGroup("h", "null")
				updated := w.do(http.MethodPut, "/_wlm/workload_group/h", `{"throttling":`+row[0]+`}`)
				if want := row[1]; want == "" || strings.HasPrefix(want, "{") {
					for _, r := range []string{bodyOf(created), bodyOf(updated)} {
						_, shown, _ := strings.Cut(r, `"throttling":`)
						shown, _, _ = strings.Cut(shown, `,"updated_at"`)
						require.Equal(t, want, shown, r)
					}
					return
				}
				require.Equal(t, http.StatusBadRequest, created.Code)
				require.Equal(t, row[1], reason(t, created))
				require.Equal(t, http.StatusBadRequest, updated.Code)
				require.Equal(t, row[1], reason(t, updated))
			})
		}
	}
}

// A resource's limit may stand in quotes, in every form and on every way in.
func TestAResourcesLimitMayStandInQuotes(t *testing.T) {
	for text, want := range map[string]string{
		`0.25`: "0.25", `"0.25"`: "0.25", `" 1e-1 "`: "0.1", `"1"`: "1.0", `"0x1p-2"`: "0.25",
		`"0_1"`: `resource_limits.cpu must be a number but was '"0_1"'`, `"0x1_0p-8"`: `resource_limits.cpu must be a number but was '"0x1_0p-8"'`,
		`"0"`: "resource value should be greater than 0 and less or equal to 1.0", `"NaN"`: "resource value should be greater than 0 and less or equal to 1.0",
		`"2"`: "resource value should be greater than 0 and less or equal to 1.0", `""`: `resource_limits.cpu must be a number but was '""'`,
		`"much"`: `resource_limits.cpu must be a number but was '"much"'`, `true`: "resource_limits.cpu must be a number but was 'true'",
		`null`: "resource_limits.cpu must be a number but was 'null'", `"1e999"`: `resource_limits.cpu must be a number but was '"1e999"'`,
	} {
		w := newWorld(t)
		created := w.do(http.MethodPut, "/_wlm/workload_group", `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":`+text+`}}`)
		require.Equal(t, http.StatusOK, w.do(http.MethodPut, "/_wlm/workload_group", `{"name":"h","resiliency_mode":"soft","resource_limits":{"memory":0.5}}`).Code)
		updated := w.do(http.MethodPost, "/_wlm/workload_group/h", `{"resource_limits":{"cpu":`+text+`}}`)
		if !strings.HasPrefix(want, "0") && !strings.HasPrefix(want, "1") {
			require.Equal(t, want, reason(t, created), text)
			require.Equal(t, want, reason(t, updated), text)
			continue
		}
		require.Contains(t, bodyOf(created), `"resource_limits":{"cpu":`+want+`}`, text)
		if want != "1.0" {
			require.Contains(t, bodyOf(updated), `"resource_limits":{"cpu":`+want+`,"memory":0.5}`, text)
		}
	}
}

// A group's counters show total_would_throttle where the throttle counts it,
// between total_throttled and the resources.
func TestStatsShowWouldThrottleWhereItIsCounted(t *testing.T) {
	for profile, want := range map[string]string{
		wlm.ProfileReviewed: `"total_throttled":15,"cpu"`,
		wlm.ProfileUpstream: `"total_throttled":15,"total_would_throttle":4,"cpu"`,
	} {
		w := newWorld(t)
		if profile == wlm.ProfileUpstream {
			w.cluster.would = new(uint64(4))
		}
		w.createGroup("g", "null")
		require.Contains(t, bodyOf(w.do(http.MethodGet, "/_wlm/stats", "")), want, profile)
	}
}

// The security plugin's own text names user and roles as the other headers do.
func TestUserInfoNamesThePrincipal(t *testing.T) {
	for _, row := range []struct {
		headers []string
		want    wlm.Principal
		err     string
	}{
		{[]string{rest.HeaderUserInfo, "alice|backend|analyst,ops|tenant"}, wlm.Principal{User: "alice", Roles: []string{"analyst", "ops"}}, ""},
		{[]string{rest.HeaderUserInfo, url.PathEscape(`a\|b||x\|y`)}, wlm.Principal{User: "a|b", Roles: []string{"x|y"}}, ""},
		{[]string{rest.HeaderUserInfo, "alice||ops", "Authorization", basic("bob", "any"), rest.HeaderRole, "more"}, wlm.Principal{User: "alice", Roles: []string{"ops", "more"}}, ""},
		{[]string{rest.HeaderUserInfo, "||ops"}, wlm.Principal{}, "header X-Wlmsim-User-Info: user info has no name"},
		{[]string{rest.HeaderUserInfo, "%zz"}, wlm.Principal{}, `header X-Wlmsim-User-Info is not percent-encoded: invalid URL escape "%zz"`},
		{[]string{rest.HeaderUserInfo, strings.Repeat("n", rest.MaxName+1)}, wlm.Principal{}, "header X-Wlmsim-User-Info: a name of 1025 bytes is longer than 1024"},
		{[]string{rest.HeaderUserInfo, "a", rest.HeaderUserInfo, "b"}, wlm.Principal{}, "header X-Wlmsim-User-Info stands 2 times: a request has one user"},
	} {
		w := newWorld(t)
		r := w.do(http.MethodGet, "/_search", "", row.headers...)
		if row.err != "" {
			require.Equal(t, http.StatusBadRequest, r.Code)
			require.Equal(t, row.err, reason(t, r))
			continue
		}
		require.Equal(t, []wlm.Principal{row.want}, w.searcher.principals)
	}
	require.Equal(t, http.CanonicalHeaderKey(rest.HeaderUserInfo), rest.HeaderUserInfo)
}

// Without a provider of principals nobody is named, whatever the request says.
func TestWithoutPrincipalsNobodyIsNamed(t *testing.T) {
	w := newWorld(t, func(c *rest.Config) { c.NoPrincipals = true })
	r := w.do(http.MethodGet, "/_search", "", rest.HeaderUser, "alice", rest.HeaderRole, "ops", rest.HeaderUserInfo, "bob", "Authorization", basic("carol", "any"))
	require.Equal(t, http.StatusOK, r.Code)
	require.Empty(t, w.searcher.principals)

	_, err := rest.New(rest.Config{NoPrincipals: true, Users: map[string]rest.User{}})
	require.ErrorContains(t, err, "rest: NoPrincipals and Users exclude each other")
}
