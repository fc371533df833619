package live_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// cluster of a test: it answers what the test says, at once or after a while.
type answering struct {
	answer func(*http.Request) (status int, after time.Duration)

	mu   sync.Mutex
	seen []string // method, URL, body
	last http.Header
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.seen = append(a.seen, r.Method+" "+r.URL.String()+" "+string(body))
	a.last = r.Header
	a.mu.Unlock()
	status, after := a.answer(r)
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// drive offers a load for a time, and returns what its clients saw.
func drive(t *testing.T, load string, d time.Duration, a *answering) live.LoadCounts {
	t.Helper()
	f, err := scenario.Parse("load.yaml", []byte(`version: 1
name: a load
cluster: {managers: 1, data: 1, indices: {logs: {}}}
users: {"a/l": {roles: [one, "t wo"]}}
groups: [{name: narrow, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}]
load: [{name: l, `+load+`}]
`))
	require.NoError(t, err)
	f = f.Filled()
	var counts live.LoadCounts
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), d)
		defer stop()
		driver := live.Drive(ctx, live.DriverConfig{
			File: f, URLs: map[string]string{"m1": "http://m1", "d1": "http://d1"}, Groups: map[string]string{"narrow": "ID"}, Seed: 1,
			Client: &http.Client{Transport: a},
		})
		driver.Wait()
		counts = driver.Counts()[0]
	})
	return counts
}

func status(code int) func(*http.Request) (int, time.Duration) {
	return func(*http.Request) (int, time.Duration) { return code, 0 }
}

func TestALoadIsSentInTimeAgainAndAgain(t *testing.T) {
	a := &answering{answer: status(200)}
	counts := drive(t, `user: a/l, group: narrow, index: "lo*", via: [d1, m1], arrive: {constant: 10/s}, for: 2s, service_time: 5ms, timeout: 3s, allow_partial: true`,
		5*time.Second+50*time.Millisecond, a)
	require.Equal(t, live.LoadCounts{Name: "l", Sent: 51, Attempts: 51, Completed: 51}, counts)
	require.Equal(t, `POST http://d1/lo%2A/_search?allow_partial_search_results=true&timeout=3000ms {"ext":{"wlmsim":{"service_time":"5ms"}}}`, a.seen[0])
	require.Contains(t, a.seen[1], "http://m1/")
	require.Equal(t, "a%2Fl", a.last.Get("X-Wlmsim-User"))
	require.Equal(t, []string{"one", "t%20wo"}, a.last["X-Wlmsim-Role"])
	require.Equal(t, "ID", a.last.Get("workloadGroupId"))
}

func TestASearchBringsItsServiceTime(t *testing.T) {
	for text, want := range map[string]string{
		"": "{}",
		", service_time: {exponential: {mean: 50ms}}":        `{"ext":{"wlmsim":{"service_time":{"exponential":{"mean":"50ms"}}}}}`,
		", service_time: {lognormal: {p50: 1ms, p99: 20ms}}": `{"ext":{"wlmsim":{"service_time":{"lognormal":{"p50":"1ms","p99":"20ms"}}}}}`,
		", service_time: {pareto: {min: 5ms, alpha: 1.5}}":   `{"ext":{"wlmsim":{"service_time":{"pareto":{"min":"5ms","alpha":1.5}}}}}`,
	} {
		a := &answering{answer: func(*http.Request) (int, time.Duration) { return 200, 0 }}
		drive(t, "index: logs, arrive: {constant: 1/s}, for: 1s"+text, time.Second, a)
		require.NotEmpty(t, a.seen)
		require.True(t, strings.HasSuffix(a.seen[0], " "+want), a.seen[0])
	}
}

func TestARefusedSearchIsTriedAgainOnTheNextNode(t *testing.T) {
	a := &answering{answer: func(r *http.Request) (int, time.Duration) {
		if r.URL.Host == "m1" {
			return 429, 0
		}
		return 200, 0
	}}
	counts := drive(t, `via: [m1, d1], arrive: {burst: {size: 2, every: 1s}}, for: 500ms, retry: {on: [429], attempts: 2, backoff: {initial: 100ms}}`, 900*time.Millisecond, a)
	require.Equal(t, live.LoadCounts{Name: "l", Sent: 2, Attempts: 3, Completed: 2}, counts)

	counts = drive(t, `via: [m1], arrive: {burst: {size: 1, every: 1s}}, for: 500ms, retry: {on: [429], attempts: 3, backoff: {initial: 100ms}}`, 900*time.Millisecond, a)
	require.Equal(t, live.LoadCounts{Name: "l", Sent: 1, Attempts: 3, Throttled: 1}, counts)
}

func TestEveryRequestEndsInOneWay(t *testing.T) {
	slow := func(*http.Request) (int, time.Duration) { return 200, time.Minute }
	for _, c := range []struct {
		name   string
		answer func(*http.Request) (int, time.Duration)
		want   live.LoadCounts
	}{
		{"an error", status(503), live.LoadCounts{Failed: 1}},
		{"no answer", status(0), live.LoadCounts{Failed: 1}},
		{"the client gave up", slow, live.LoadCounts{Gone: 1}},
	} {
		c.want.Name, c.want.Sent, c.want.Attempts = "l", 1, 1
		got := drive(t, `arrive: {burst: {size: 1, every: 1s}}, for: 500ms, cancel_after: 200ms`, 900*time.Millisecond, &answering{answer: c.answer})
		require.Equal(t, c.want, got, c.name)
	}
}

func TestClosedClientsWaitForTheirAnswers(t *testing.T) {
	a := &answering{answer: func(*http.Request) (int, time.Duration) { return 200, 100 * time.Millisecond }}
	counts := drive(t, `arrive: {closed: 3, think: 100ms}, from: 1s, for: 1s`, 1990*time.Millisecond, a)
	require.Equal(t, live.LoadCounts{Name: "l", Sent: 15, Attempts: 15, Completed: 15}, counts)
}

func TestSearchesUnderWayAreBounded(t *testing.T) {
	a := &answering{answer: func(*http.Request) (int, time.Duration) { return 200, time.Minute }}
	counts := drive(t, `arrive: {burst: {size: 10000, every: 1s}}, for: 500ms`, 900*time.Millisecond, a)
	require.Equal(t, uint64(live.MaxInFlight), counts.Sent)
}

func TestPlacesOfAFile(t *testing.T) {
	f, err := scenario.Parse("places.yaml", []byte("version: 1\nname: places\ncluster: {managers: 2, data: 1}\n"))
	require.NoError(t, err)
	require.Equal(t, []live.Place{
		{Name: "m1", Roles: []cluster.Role{cluster.Manager}}, {Name: "m2", Roles: []cluster.Role{cluster.Manager}}, {Name: "d1", Roles: []cluster.Role{cluster.Data}},
	}, live.PlacesOf(f.Filled()))
}

func TestTheFirstNodeHasToBeAManager(t *testing.T) {
	_, err := live.Up(t.Context(), live.Options{Places: []live.Place{{Name: "d1", Roles: []cluster.Role{cluster.Data}}}})
	require.ErrorContains(t, err, "the first node, d1, is no manager")
	_, err = live.Up(t.Context(), live.Options{Places: make([]live.Place, live.MaxNodes+1)})
	require.ErrorContains(t, err, "1 to 99 nodes, not 100")
}
