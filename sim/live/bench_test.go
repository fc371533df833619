package live_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/wlm"
)

// inFlight is how many requests the benchmarks keep under way.
const inFlight = 64

func options(t testing.TB) live.NodeOptions {
	switches, err := wlm.Profile(wlm.ProfileReviewed)
	require.NoError(t, err)
	enabled, refresh := string(cluster.Enabled), "1000"
	return live.NodeOptions{
		Switches: switches,
		Settings: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled, cluster.SettingRuleRefresh: &refresh}},
	}
}

// up starts three nodes with an index of six shards that cost nothing.
func up(t testing.TB, dir string) *live.Cluster { return upWith(t, dir, options(t)) }

func upWith(t testing.TB, dir string, o live.NodeOptions) *live.Cluster {
	c, err := live.Up(within(t), live.Options{Nodes: 3, HTTP: "127.0.0.1:0", DataDir: dir, Node: o})
	require.NoError(t, err)
	makeIndex(t, c, 6)
	return c
}

// makeIndex makes the index logs, again if the outcome is unknown: the one that
// is there then is as good.
func makeIndex(t testing.TB, c *live.Cluster, shards int) {
	ctx, index := within(t), cluster.CreateIndex{Name: "logs", UUID: "bench", Shards: shards}
	err := c.CreateIndex(ctx, index)
	for unknown(err) && ctx.Err() == nil {
		err = c.CreateIndex(ctx, index)
	}
	require.NoError(t, err)
}

// poster sends searches over keep-alive connections.
type poster struct {
	client *http.Client
	urls   []string
	next   atomic.Uint64
}

func newPoster(c *live.Cluster) *poster {
	p := &poster{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}}}
	for _, m := range c.Members {
		p.urls = append(p.urls, "http://"+m.Where().HTTP)
	}
	return p
}

func (p *poster) search(group string) (int, error) {
	url := p.urls[p.next.Add(1)%uint64(len(p.urls))]
	request, err := http.NewRequest(http.MethodPost, url+"/logs/_search", bytes.NewReader([]byte(`{"query":{"match_all":{}}}`)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Wlmsim-User", "alice")
	if group != "" {
		request.Header.Set("workloadGroupId", group)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, firstError(err, response.Body.Close())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fire sends b.N searches, inFlight at a time, and requires one status.
func (p *poster) fire(b *testing.B, group string, want int) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the commands up and node have it
	var left, wrong atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var lanes sync.WaitGroup
	for range inFlight {
		lanes.Go(func() {
			for left.Add(-1) >= 0 {
				if status, err := p.search(group); err != nil || status != want {
					wrong.Add(1)
				}
			}
		})
	}
	lanes.Wait()
	b.StopTimer()
	require.Zero(b, wrong.Load(), "searches without status %d", want)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "searches/s")
	p.client.CloseIdleConnections()
}

// Client and cluster share the processors here, as they do for a user.
func BenchmarkSearchOverHTTP(b *testing.B) {
	c := up(b, filepath.Join(b.TempDir(), "data"))
	defer c.Close()
	newPoster(c).fire(b, "", http.StatusOK)
}

// Every search of this one is refused: its group's only permit on each node is
// held by a search that lasts.
func BenchmarkThrottledSearchOverHTTP(b *testing.B) {
	c := up(b, filepath.Join(b.TempDir(), "data"))
	defer c.Close()
	one := int64(1)
	g := cluster.Group{
		ID: "bench-group-0000000000", Name: "bench", ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.1},
		Throttling: &cluster.Throttling{Attribute: cluster.ByGroup, NodeLimit: &one},
	}
	require.NoError(b, c.Members[0].Propose(context.Background(), &cluster.CreateGroup{Group: g}))
	p := newPoster(c)
	ctx, leave := context.WithCancel(context.Background())
	var holders sync.WaitGroup
	for _, url := range p.urls {
		holders.Go(func() {
			for ctx.Err() == nil { // another search may have had the permit
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/logs/_search", bytes.NewReader([]byte(`{"ext":{"wlmsim":{"service_time":"1h"}}}`)))
				if err != nil {
					b.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("workloadGroupId", g.ID)
				if response, err := p.client.Do(request); err == nil {
					_ = response.Body.Close()
				}
			}
		})
	}
	for held := 0; held < len(p.urls); {
		if status, err := p.search(g.ID); err == nil && status == http.StatusTooManyRequests {
			held++
		} else {
			held = 0
		}
	}
	p.fire(b, g.ID, http.StatusTooManyRequests)
	leave()
	holders.Wait()
}

// From nothing to three ready nodes, an index and the first answered search.
func BenchmarkUpToFirstSearch(b *testing.B) {
	for i := range b.N {
		c := up(b, filepath.Join(b.TempDir(), fmt.Sprint(i)))
		status, err := newPoster(c).search("")
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, status)
		b.StopTimer()
		require.NoError(b, c.Close())
		b.StartTimer()
	}
}

// An update of a group through a follower until every node has applied it.
func BenchmarkPutUntilAppliedEverywhere(b *testing.B) {
	c := up(b, filepath.Join(b.TempDir(), "data"))
	defer c.Close()
	g := cluster.Group{ID: "bench-group-0000000000", Name: "bench", ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.1}}
	require.NoError(b, c.Members[0].Propose(context.Background(), &cluster.CreateGroup{Group: g}))
	b.ResetTimer()
	for i := range b.N {
		require.NoError(b, c.Members[i%len(c.Members)].Propose(context.Background(), &cluster.UpdateGroup{Name: "bench", UpdatedAt: int64(i)}))
	}
}
