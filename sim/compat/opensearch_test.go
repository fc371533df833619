package compat_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/simtest"
)

// connect returns a client of all nodes; change may change what it is.
func connect(t *testing.T, c *simtest.Cluster, user string, change func(*opensearch.Config)) *opensearchapi.Client {
	t.Helper()
	config := opensearch.Config{
		Addresses: c.URLs(), Username: user, Password: "any",
		Transport: c.Transport(), Context: c.Context(),
	}
	if change != nil {
		change(&config)
	}
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: config})
	require.NoError(t, err)
	return client
}

func closed(t *testing.T, clients ...*opensearchapi.Client) {
	t.Helper()
	for _, client := range clients {
		require.NoError(t, client.Client.Close())
	}
}

// search returns a request for all documents that costs some time.
func search(cost string) *opensearchapi.SearchReq {
	return &opensearchapi.SearchReq{
		Indices: []string{"logs"},
		Body:    strings.NewReader(`{"query": {"match_all": {}}, "ext": {"wlmsim": {"service_time": "` + cost + `"}}}`),
	}
}

// failure returns the typed error that a request must have ended with.
func failure(t *testing.T, err error) *opensearch.StructError {
	t.Helper()
	var failed *opensearch.StructError
	require.ErrorAs(t, err, &failed)
	return failed
}

func TestRequestsAndAnswersFit(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: "cluster: {managers: 1, data: 2, indices: {logs: {shards: 4}}}"}, func(c *simtest.Cluster) {
		ctx := context.Background()
		client := connect(t, c, "bob", nil)
		defer closed(t, client)

		info, err := client.Info(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "opensearch", info.Version.Distribution)

		found, err := client.Search(ctx, search("10ms"))
		require.NoError(t, err)
		require.Equal(t, opensearchapi.ResponseShards{Total: 4, Successful: 4}, found.Shards)
		require.Len(t, found.Hits.Hits, 10)
		require.Equal(t, "logs", found.Hits.Hits[0].Index)
		require.Positive(t, found.Hits.Total.Value)

		made, err := client.Indices.Create(ctx, opensearchapi.IndicesCreateReq{
			Index: "extra", Body: strings.NewReader(`{"settings": {"index": {"number_of_shards": 3}}}`),
		})
		require.NoError(t, err)
		require.True(t, made.Acknowledged)
		there, err := client.Indices.Exists(ctx, opensearchapi.IndicesExistsReq{Indices: []string{"extra"}})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, there.StatusCode)
		found, err = client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"extra"}})
		require.NoError(t, err)
		require.Equal(t, 3, found.Shards.Successful)
		gone, err := client.Indices.Delete(ctx, opensearchapi.IndicesDeleteReq{Indices: []string{"extra"}})
		require.NoError(t, err)
		require.True(t, gone.Acknowledged)
	})
}

func TestErrorsFit(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: `
cluster: {managers: 1, data: 1}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 1}}
rules:
  - {workload_group: g, index_pattern: [logs]}
`}, func(c *simtest.Cluster) {
		ctx := context.Background()
		client := connect(t, c, "bob", func(o *opensearch.Config) { o.DisableRetry, o.Addresses = true, []string{c.URL("d1")} })
		defer closed(t, client)

		_, err := client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"none"}})
		failed := failure(t, err)
		require.Equal(t, http.StatusNotFound, failed.Status)
		require.Equal(t, "index_not_found_exception", failed.Err.Type)
		require.Equal(t, "none", failed.Err.Index)

		_, err = client.Indices.Create(ctx, opensearchapi.IndicesCreateReq{Index: "logs"})
		failed = failure(t, err)
		require.Equal(t, http.StatusBadRequest, failed.Status)
		require.Equal(t, "resource_already_exists_exception", failed.Err.Type)

		var slow sync.WaitGroup
		slow.Go(func() {
			_, err := client.Search(ctx, search("5s"))
			require.NoError(t, err)
		})
		time.Sleep(time.Second)
		_, err = client.Search(ctx, search("5s"))
		failed = failure(t, err)
		require.Equal(t, http.StatusTooManyRequests, failed.Status)
		require.Equal(t, "rejected_execution_exception", failed.Err.Type)
		require.NotEmpty(t, failed.Err.Reason)
		require.Equal(t, failed.Err.Type, failed.Err.RootCause[0].Type)
		slow.Wait()
		require.Equal(t, 1, c.Stats("d1", "g").TotalThrottled)
	})
}

// counting counts the attempts that a client makes.
type counting struct {
	http.RoundTripper
	attempts, refused *atomic.Int64
}

func (r counting) RoundTrip(request *http.Request) (*http.Response, error) {
	r.attempts.Add(1)
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		r.refused.Add(1)
	}
	return response, err
}

// Eight programs of one user, who may run two searches at a time on a node,
// share two nodes for ten minutes.
func TestTenMinutesOfRetriesAndBackOff(t *testing.T) {
	var attempts, refused, completed atomic.Int64
	start := time.Now()
	result := simtest.Run(t, simtest.Options{Scenario: `
cluster: {managers: 1, data: 1}
users: {etl: {roles: [batch]}}
groups:
  - {name: nightly, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 2}}
rules:
  - {workload_group: nightly, principal.role: [batch]}
`}, func(c *simtest.Cluster) {
		var running sync.WaitGroup
		for i := range 8 {
			draw := rand.New(rand.NewPCG(7, uint64(i)))
			client := connect(t, c, "etl", func(o *opensearch.Config) {
				o.Transport = counting{c.Transport(), &attempts, &refused}
				o.RetryOnStatus, o.MaxRetries = []int{http.StatusTooManyRequests}, 100
				o.RetryBackoff = func(attempt int) time.Duration {
					most := min(100*time.Millisecond<<min(attempt, 10), 8*time.Second)
					return most/2 + time.Duration(draw.Int64N(int64(most/2)))
				}
			})
			running.Go(func() {
				defer closed(t, client)
				for c.Now() < 10*time.Minute {
					_, err := client.Search(context.Background(), search("3s"))
					require.NoError(t, err)
					completed.Add(1)
				}
			})
		}
		running.Wait()
		require.Equal(t, refused.Load(), int64(c.Stats("", "nightly").TotalThrottled))
	})
	t.Logf("%d searches, %d attempts, %d of them refused: %.0f s of virtual time in %v", completed.Load(), attempts.Load(), refused.Load(), result.VirtualSeconds, time.Since(start))
	require.Greater(t, result.VirtualSeconds, 600.0)
	require.Equal(t, check.Held, result.Verdict)
	require.EqualValues(t, completed.Load(), result.Searches.Completed)
	require.EqualValues(t, refused.Load(), result.Searches.Throttled)
	require.Greater(t, refused.Load(), int64(100))
	require.Greater(t, completed.Load(), int64(600), "of 800 that fit")
}

// A client that gives up sees the last 429 itself.
func TestRetriesThatAreNotEnough(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: `
cluster: {managers: 1, data: 1}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: group, node_limit: 1}}
rules:
  - {workload_group: g, index_pattern: [logs]}
`}, func(c *simtest.Cluster) {
		c.Begin("search: {id: slow, group: g, via: m1, service_time: 1h}")
		time.Sleep(time.Second)
		var attempts, refused atomic.Int64
		client := connect(t, c, "bob", func(o *opensearch.Config) {
			o.Addresses, o.Transport = []string{c.URL("m1")}, counting{c.Transport(), &attempts, &refused}
			o.RetryOnStatus, o.MaxRetries = []int{http.StatusTooManyRequests}, 3
			o.RetryBackoff = func(int) time.Duration { return time.Minute }
		})
		defer closed(t, client)
		before := c.Now()
		_, err := client.Search(context.Background(), search("1s"))
		require.Equal(t, http.StatusTooManyRequests, failure(t, err).Status)
		require.InDelta(t, 3*time.Minute, c.Now()-before, float64(time.Second))
		require.EqualValues(t, 4, refused.Load())

		hurried, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		_, err = client.Search(hurried, search("1s"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 6, refused.Load())
		c.Begin("cancel: {search: slow}")
	})
}

func TestTheOtherNodesWhileOneIsDown(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: "cluster: {managers: 1, data: 2, indices: {logs: {}}}"}, func(c *simtest.Cluster) {
		client := connect(t, c, "bob", nil)
		defer closed(t, client)
		searches := func(n int) {
			for range n {
				_, err := client.Search(context.Background(), search("1ms"))
				require.NoError(t, err)
			}
		}
		searches(20)
		require.Positive(t, c.Outcomes("d2", "").Completed)

		c.Begin("crash: {node: d2, restart_after: 5m}")
		searches(20)
		time.Sleep(10 * time.Minute)
		require.Equal(t, scenario.Outcomes{}, c.Outcomes("d2", ""), "another life")
		// The client warms a node up that has come back: it takes it for one
		// search in many at first.
		searches(400)
		require.Positive(t, c.Outcomes("d2", "").Completed, "the client has found it again")
	})
}

// The typed state of the cluster has its version, leader, nodes and shards.
func TestTheStateOfTheClusterIsTyped(t *testing.T) {
	simtest.Run(t, simtest.Options{Scenario: "cluster: {managers: 1, data: 2, indices: {logs: {shards: 4}}}"}, func(c *simtest.Cluster) {
		client := connect(t, c, "bob", nil)
		defer closed(t, client)
		state, err := client.Cluster.State(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "m1", state.Nodes[state.ClusterManagerNode].Name)
		require.Equal(t, state.ClusterManagerNode, state.MasterNode)
		require.Positive(t, state.Version)
		require.Len(t, state.Nodes, 3)
		require.Contains(t, state.Metadata.Indices, "logs")
		require.Len(t, state.RoutingTable.Indices["logs"].Shards, 4)
		for _, copies := range state.RoutingTable.Indices["logs"].Shards {
			require.Len(t, copies, 1)
			require.Equal(t, "STARTED", copies[0].State)
			require.Contains(t, []string{"d1", "d2"}, state.Nodes[*copies[0].Node].Name)
		}
	})
}
