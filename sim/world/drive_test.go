package world_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// drive drives a file that must be sound, and returns what Drive does.
func drive(t testing.TB, text string, body func(*world.Cluster), options ...func(*world.Options)) (*world.Result, error) {
	t.Helper()
	f, err := scenario.Parse("test.yaml", []byte("version: 1\nname: a test\n"+text))
	require.NoError(t, err)
	var o world.Options
	for _, option := range options {
		option(&o)
	}
	return world.Drive(f, o, body)
}

// ask sends a request to a node from the clients' machine.
func ask(t testing.TB, c *world.Cluster, node, method, path, body string, header ...string) (int, string) {
	t.Helper()
	address, err := c.Address(node)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(c.Context(), method, "http://"+address+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	transport := c.Client().HTTPTransport()
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestABodyRunsBesideTheFile(t *testing.T) {
	r, err := drive(t, `
steps:
  - {at: 1s, search: {id: early}}
  - {at: 3s, search: {id: late}}
expect: [early.status == 200, late.status == 200]
`, func(c *world.Cluster) {
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*time.Second, c.Now())
		id, err := c.Begin("search: {id: mine, via: d1}")
		require.NoError(t, err)
		answer, err := c.Await(c.Context(), id)
		require.NoError(t, err)
		require.Equal(t, 200, answer.(scenario.SearchAnswer).Status)
		for text, want := range map[scenario.Expression]bool{
			"early.status == 200 && mine.node == 'd1'": true,
			"late.status == 200":                       false,
		} {
			holds, err := c.Holds(text)
			require.NoError(t, err)
			require.Equal(t, want, holds, text)
		}
		_, err = c.Holds("mien.status == 200")
		require.ErrorContains(t, err, `unknown`)
		_, err = c.Begin("search: {id: mine}")
		require.ErrorContains(t, err, "used twice")
		_, err = c.Begin("expect: [1 == 1]")
		require.ErrorContains(t, err, "no step of a body")
	})
	require.NoError(t, err)
	require.Equal(t, check.Held, r.Verdict, r.Checks)
	require.Equal(t, 3, r.Searches.Completed)
	require.Greater(t, r.VirtualSeconds, 3.0, "the file goes on to its end")
}

// Clients that the world knows nothing of are judged as those of steps, and
// what they create is known by its name.
func TestClientsOverHTTPAreJudged(t *testing.T) {
	const group = `{"name": "mine", "resiliency_mode": "enforced", "resource_limits": {"cpu": 0.5}, "throttling": {"attribute": "username", "node_limit": 1}}`
	var r *world.Result
	var err error
	r, err = drive(t, `
users: {alice: {roles: [analyst]}}
groups:
  - {name: of roles, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: role, node_limit: 1}}
rules:
  - {workload_group: of roles, principal.role: [analyst]}
`, func(c *world.Cluster) {
		status, text := ask(t, c, "m2", "PUT", "/_wlm/workload_group", group)
		require.Equal(t, 200, status, text)
		status, text = ask(t, c, "m1", "GET", "/_wlm/workload_group", "")
		require.Equal(t, 200, status, text)
		require.Contains(t, text, c.Group("mine"))

		require.NoError(t, c.Hold("m1", probe.Merged, probe.Filter{Group: "mine", Count: 1}))
		slow := make(chan int)
		search := func(header ...string) int {
			status, _ := ask(t, c, "m1", "POST", "/logs/_search", `{}`, append(header, "X-Opaque-Id", "always the same")...)
			return status
		}
		go func() { slow <- search("X-Wlmsim-User", "bob", "workloadGroupId", c.Group("mine")) }()
		time.Sleep(time.Second)
		require.Equal(t, 429, search("X-Wlmsim-User", "bob", "workloadGroupId", c.Group("mine")))
		require.Equal(t, 200, search("X-Wlmsim-User", "eve", "workloadGroupId", c.Group("mine")))
		require.Equal(t, 200, search())
		permits, err := c.Permits("m1", "mine")
		require.NoError(t, err)
		require.Equal(t, scenario.Permits{Held: 1, Buckets: 1}, permits)
		require.NoError(t, c.Release("m1", probe.Merged))
		require.Equal(t, 200, <-slow)
		stats, err := c.Stats("m1", "mine")
		require.NoError(t, err)
		require.Equal(t, 1, stats.TotalThrottled)

		require.Equal(t, 200, search("X-Wlmsim-User", "alice"), "the file's roles are the users'")
		outcomes, err := c.Outcomes("m1", "of roles")
		require.NoError(t, err)
		require.Equal(t, 1, outcomes.Completed)
	})
	require.NoError(t, err)
	require.Equal(t, check.Held, r.Verdict, r.Checks)
	require.Equal(t, world.Searches{Sent: 5, Completed: 4, Throttled: 1}, r.Searches)
	require.EqualValues(t, 1, r.Groups["mine"].Throttled)
}

// The flaw of remark 1 is found in what a client over HTTP sees.
func TestAFlawIsFoundUnderClientsOverHTTP(t *testing.T) {
	r, err := drive(t, `
switches: {principal_carrier: header}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.5}, throttling: {attribute: username, node_limit: 1}}
`, func(c *world.Cluster) {
		status, text := ask(t, c, "m1", "POST", "/logs/_search", `{}`, "X-Wlmsim-User", "bob", "workloadGroupId", c.Group("g"))
		require.Equal(t, 200, status, text)
	})
	require.NoError(t, err)
	require.Equal(t, check.Broken, r.Verdict)
}

func TestABodyMayUseEveryFault(t *testing.T) {
	r, err := drive(t, `
cluster: {data: 2}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.5}, throttling: {attribute: group, node_limit: 1}}
`, func(c *world.Cluster) {
		for _, text := range []string{
			"delay: {node: d1, step: datanode.answer, by: 10ms, for: 2s}",
			"starve_gossip: {node: d2, for: 100ms}",
			"fail_counts: {node: m1, for: 1s}",
			"partition: {sides: [[m3], rest], for: 1s}",
			"crash: {node: d2, restart_after: 3s, new_address: true}",
		} {
			_, err := c.Begin(text)
			require.NoError(t, err, text)
		}
		_, err := c.Node("d2")
		require.ErrorContains(t, err, "down")
		require.Error(t, c.Hold("d2", probe.Merged, probe.Filter{}))
		require.Error(t, c.Release("m1", probe.Merged))
		require.Error(t, c.Hold("m9", probe.Merged, probe.Filter{}))
		time.Sleep(10 * time.Second)
		address, err := c.Address("d2")
		require.NoError(t, err)
		require.Equal(t, "d2:9300", address)
		_, err = c.Address("d7")
		require.ErrorContains(t, err, "m1, m2, m3, d1, d2")
		require.Contains(t, c.Nodes(), c.Leader())
	})
	require.NoError(t, err)
	require.Equal(t, check.Held, r.Verdict, r.Checks)
}

// The others take a node for dead that gets nothing from gossip. When they do is
// up to gossip, and so is when they forget that and hear of it as of a new one,
// since what it sends still leaves.
func TestAStarvedNodeIsTakenForDead(t *testing.T) {
	const most = time.Minute // a probe of each member, and the longest suspicion
	r, err := drive(t, "", func(c *world.Cluster) {
		_, err := c.Begin("starve_gossip: {node: d1, for: 1m}")
		require.NoError(t, err)
		for began, dead := c.Now(), false; !dead; {
			require.Less(t, c.Now()-began, most)
			time.Sleep(time.Second)
			dead, err = c.Holds(`state("m1").members == 5`)
			require.NoError(t, err)
		}
	})
	require.NoError(t, err)
	require.Equal(t, check.Held, r.Verdict, r.Checks)
}

func TestABodyThatDoesNotReturn(t *testing.T) {
	const load = "load: [{name: l, arrive: {constant: 10/s}, for: 10s}]"
	_, err := drive(t, load, func(*world.Cluster) { time.Sleep(time.Second); runtime.Goexit() })
	require.ErrorIs(t, err, world.ErrExited)

	cause := errors.New("seven")
	_, err = drive(t, load, func(*world.Cluster) { panic(cause) })
	var panicked *world.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, cause, panicked.Value)
	require.Contains(t, panicked.Stack, "drive_test.go")

	limit := func(o *world.Options) { o.Limit = time.Minute }
	_, err = drive(t, "", func(c *world.Cluster) { <-c.Context().Done() }, limit)
	require.ErrorContains(t, err, "the body has not returned after 1m0s of virtual time")
}
