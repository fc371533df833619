package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/simtest"
	"github.com/wlmsim/wlmsim/sim/world"
)

// What satisfies TB without an adaptor.
var (
	_ simtest.TB = (*testing.T)(nil)
	_ simtest.TB = (*testing.B)(nil)
	_ simtest.TB = (*rapid.T)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "cluster: {managers: 1, data: 1}\n"

// recorder is a TB that keeps what it is told.
type recorder struct {
	name    string
	text    strings.Builder
	log     strings.Builder
	ended   bool
	skipped bool
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return r.name }
func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) FailNow()                          { r.ended = true; runtime.Goexit() }
func (r *recorder) Skipped() bool                     { return r.skipped }

// recorded runs a test that may fail, and returns what it told.
func recorded(o simtest.Options, f func(*simtest.Cluster)) (*recorder, *world.Result) {
	r := &recorder{name: "TestOf/it's (me)"}
	var result *world.Result
	done := make(chan struct{})
	go func() {
		defer close(done)
		result = simtest.Run(r, o, f)
	}()
	<-done
	return r, result
}

// A broken promise fails the test and tells how to see it again.
func TestABrokenPromiseFailsTheTest(t *testing.T) {
	r, result := recorded(simtest.Options{Seed: 7, Scenario: small + `
switches: {principal_carrier: header}
`}, func(c *simtest.Cluster) {
		c.Ask("search: {id: one, user: bob}")
	})
	require.False(t, r.ended, "it goes on, as after Errorf")
	require.Equal(t, check.Broken, result.Verdict)
	require.Contains(t, r.text.String(), "simtest: broken\n\tprincipal_stays broken: a principal's canary was sent from one node to another")
	require.Contains(t, r.text.String(), "\tseed 7; run it again: WLMSIM_SEED=7 go test -count=1 -run "+
		`'^TestOf$/^it'\''s \(me\)$' github.com/wlmsim/wlmsim/sim/simtest`+"\n\tto the bit: ")
}

func TestAnExpectationOfTheScenarioFailsTheTest(t *testing.T) {
	r, _ := recorded(simtest.Options{Scenario: small + `
steps:
  - {at: 1s, search: {id: one}}
expect:
  - one.status == 429
`}, func(*simtest.Cluster) {})
	require.Contains(t, r.text.String(), "an expectation is not true: one.status == 429 (line 6 of the scenario)")
}

// The seed that a failure names brings the same draws.
func TestTheSeed(t *testing.T) {
	o := simtest.Options{Scenario: small + "seed: 3\n"}
	id := func(o simtest.Options) (got string, seed uint64) {
		result := simtest.Run(t, o, func(c *simtest.Cluster) { got = c.Group("g") })
		return got, result.Seed
	}
	own, seed := id(o)
	require.EqualValues(t, 3, seed)
	o.Seed = 4
	other, seed := id(o)
	require.EqualValues(t, 4, seed)
	require.NotEqual(t, own, other)
	t.Setenv(simtest.SeedVariable, "3")
	again, seed := id(o)
	require.EqualValues(t, 3, seed)
	require.Equal(t, own, again)
	t.Setenv(simtest.SeedVariable, "three")
	r, _ := recorded(o, func(*simtest.Cluster) {})
	require.Contains(t, r.text.String(), `WLMSIM_SEED is "three": a number`)
	require.True(t, r.ended)
}

func TestWhatEndsATest(t *testing.T) {
	for name, row := range map[string]struct {
		options simtest.Options
		body    func(*simtest.Cluster)
		want    string
	}{
		"bad scenario":  {simtest.Options{Scenario: "groups: [{nmae: x}]"}, nil, `scenario:1:11: unknown key "nmae"`},
		"bad set":       {simtest.Options{Set: []string{"x=1"}}, nil, `unknown key "x"`},
		"both":          {simtest.Options{Scenario: small, File: "x"}, nil, "both Scenario and File"},
		"no file":       {simtest.Options{File: "none.yaml"}, nil, "none.yaml"},
		"bad profile":   {simtest.Options{Profile: "x"}, nil, `"x"`},
		"panic":         {simtest.Options{}, func(*simtest.Cluster) { panic("seven") }, "the body panicked: seven\n"},
		"limit":         {simtest.Options{Limit: time.Second}, func(c *simtest.Cluster) { <-c.Context().Done() }, "not returned after 1s"},
		"unknown node":  {simtest.Options{}, func(c *simtest.Cluster) { c.URL("m9") }, "there is no node m9: one of m1, d1, at 0s"},
		"node is down":  {simtest.Options{}, func(c *simtest.Cluster) { c.Begin("crash: {node: d1, restart_after: 1s}"); c.Node("d1") }, "node d1 is down"},
		"bad step":      {simtest.Options{}, func(c *simtest.Cluster) { c.Begin("crash: {node: d7}") }, `unknown node "d7"`},
		"no request":    {simtest.Options{}, func(c *simtest.Cluster) { c.Ask("search: {}") }, "no request with an id"},
		"bad expect":    {simtest.Options{}, func(c *simtest.Cluster) { c.Expect("x.status == 1") }, "unknown"},
		"unknown step":  {simtest.Options{}, func(c *simtest.Cluster) { c.Hold("m1", "x", probe.Filter{}) }, `step "x" is unknown`},
		"not held":      {simtest.Options{}, func(c *simtest.Cluster) { c.Release("m1", probe.Merged) }, "not held"},
		"nobody comes":  {simtest.Options{}, awaitNobody, "not as many arrivals as awaited are held at coordinator.merged of m1, at 10m0s"},
		"stats of none": {simtest.Options{}, func(c *simtest.Cluster) { c.Stats("m9", "g") }, "there is no node m9"},
	} {
		t.Run(name, func(t *testing.T) {
			if row.body != nil {
				row.options.Scenario = small
			}
			r, result := recorded(row.options, row.body)
			require.Nil(t, result)
			require.True(t, r.ended)
			require.Contains(t, r.text.String(), row.want)
		})
	}
}

func awaitNobody(c *simtest.Cluster) {
	c.Hold("m1", probe.Merged, probe.Filter{})
	c.AwaitHeld("m1", probe.Merged, 1)
}

func TestWhatAFunctionSays(t *testing.T) {
	r, result := recorded(simtest.Options{Scenario: small}, func(c *simtest.Cluster) {
		time.Sleep(time.Second)
		c.Expect("1 == 2", "1 == 1")
	})
	require.Equal(t, "simtest: not true at 1s: 1 == 2\n", r.text.String())
	require.False(t, r.ended)
	require.Equal(t, check.Held, result.Verdict)

	var skipping recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		simtest.Run(&skipping, simtest.Options{Scenario: small}, func(*simtest.Cluster) { skipping.skipped = true; runtime.Goexit() })
	}()
	<-done
	require.False(t, skipping.ended)
	require.Empty(t, skipping.text.String())
}

func TestExampleIsATB(t *testing.T) {
	require.Equal(t, "ExampleX", simtest.Example("ExampleX").Name())
	require.PanicsWithValue(t, "ExampleX failed", func() { simtest.Example("ExampleX").FailNow() })
}

// A plain client meets what a client meets: searches, refusals, partitions that
// are not its own, a node that is down and back elsewhere.
func TestAPlainClient(t *testing.T) {
	simtest.Run(t, simtest.Options{File: "testdata/two_groups.yaml"}, func(c *simtest.Cluster) {
		require.Equal(t, []string{"http://m1:9200", "http://d1:9200", "http://d2:9200"}, c.URLs())
		client := c.Client()
		search := func(node, user string) int {
			request, err := http.NewRequestWithContext(c.Context(), "POST", c.URL(node)+"/logs/_search", strings.NewReader(`{"ext": {"wlmsim": {"service_time": "3s"}}}`))
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/json")
			request.SetBasicAuth(user, "x")
			response, err := client.Do(request)
			if errors.Is(err, syscall.ECONNREFUSED) {
				return 0
			}
			require.NoError(t, err)
			defer response.Body.Close()
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			return response.StatusCode
		}
		first := make(chan int)
		go func() { first <- search("m1", "alice") }()
		time.Sleep(time.Second)
		require.Equal(t, scenario.Permits{Held: 1, Buckets: 1}, c.Permits("m1", "analytics"))
		require.Equal(t, 429, search("m1", "alice"))
		require.Equal(t, 200, search("m1", "bob"), "another bucket")
		require.Equal(t, 200, search("d1", "alice"), "another node")
		require.Equal(t, 200, <-first)
		require.Equal(t, 1, c.Stats("", "analytics").TotalThrottled)
		require.Equal(t, scenario.Outcomes{Completed: 2, Throttled: 1}, c.Outcomes("m1", "analytics"))

		c.Begin("crash: {node: d2, restart_after: 5s, new_address: true}")
		require.Equal(t, 0, search("d2", "bob"))
		time.Sleep(10 * time.Second)
		require.Equal(t, "http://d2:9300", c.URL("d2"))
		require.Equal(t, 200, search("d2", "bob"))
		require.Equal(t, "d2", c.Node("d2").Name())
	})
}

func TestADialFunctionOfItsOwn(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: small}, func(c *simtest.Cluster) {
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.Dial(ctx, network, address)
		}
		client := http.Client{Transport: &http.Transport{DialContext: dial}}
		response, err := client.Get(c.URL("d1"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		client.CloseIdleConnections()
	})
}
