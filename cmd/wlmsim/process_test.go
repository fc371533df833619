package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/live"
)

// rounds is how often a leader and then a follower is killed.
func rounds() int {
	if os.Getenv("WLMSIM_SOAK") != "" {
		return 200
	}
	return 20
}

const (
	testWriters   = 4
	testSearchers = 6
	// clientPatience is longer than a write takes if a member is too starved to
	// apply it: cluster.publish.timeout is 30 s.
	clientPatience = 45 * time.Second
	roundPatience  = 3 * time.Minute
)

// Three processes, writes and searches under way, and the leader, then a
// follower, dies as by `kill -9`, again and again. Every write that was
// acknowledged is on every node afterwards, one whose outcome nobody can know
// says so, and no permit is left.
func TestKilledProcessesLoseNoAcknowledgedWriteAndNoPermit(t *testing.T) {
	c := startProcesses(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	writers := make([]*writer, testWriters)
	for i := range writers {
		writers[i] = newWriter(t, c, fmt.Sprintf("group-%d", i))
		load.Go(func() { writers[i].run(ctx, t) })
	}
	searches := make([]int, testSearchers)
	for i := range searches {
		load.Go(func() { searches[i] = search(ctx, c, i) })
	}
	for round := range rounds() {
		c.killAndRestart(t, c.leader(t))
		leader := c.leader(t)
		followers := slices.DeleteFunc([]string{"m1", "m2", "m3"}, func(name string) bool { return name == leader })
		c.killAndRestart(t, followers[round%len(followers)])
	}
	stop()
	load.Wait()

	for _, w := range writers {
		w.judge(t, c)
		t.Logf("%s: %d acknowledged, %d of unknown outcome, %d refused, %d times read", w.group, w.acknowledged, w.outcomeless, w.refused, w.seen)
		require.Positive(t, w.acknowledged)
		require.Positive(t, w.seen)
	}
	for i, n := range searches {
		require.Positive(t, n, "searcher %d", i)
	}
	c.requireNoPermit(t)
}

// processes is a cluster of three processes that can be killed.
type processes struct {
	dir    string
	client *http.Client

	mu      sync.Mutex
	running map[string]*live.Process
	http    map[string]string // name to ip:port, kept over restarts
	gossip  map[string]string
}

func startProcesses(t *testing.T) *processes {
	c := &processes{
		dir: t.TempDir(), client: &http.Client{Timeout: clientPatience},
		running: map[string]*live.Process{}, http: map[string]string{}, gossip: map[string]string{},
	}
	t.Cleanup(func() {
		for _, p := range c.all() {
			p.Kill()
		}
		c.client.CloseIdleConnections()
	})
	for _, name := range []string{"m1", "m2", "m3"} {
		c.start(t, name, "127.0.0.1:0")
	}
	for _, p := range c.all() {
		c.awaitReady(t, p)
	}
	return c
}

func (c *processes) all() []*live.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*live.Process
	for _, name := range slices.Sorted(maps.Keys(c.running)) {
		all = append(all, c.running[name])
	}
	return all
}

// start starts a node, or starts it again on its folder.
func (c *processes) start(t *testing.T, name, address string) *live.Process {
	wlmsim, err := exec.LookPath("wlmsim")
	require.NoError(t, err)
	args := []string{"node", "--follow-input", "--format", "json", "--name", name, "--http", address, "--data-dir", filepath.Join(c.dir, name)}
	c.mu.Lock()
	var join []string
	for other, at := range c.gossip {
		if other != name {
			join = append(join, at)
		}
	}
	c.mu.Unlock()
	if len(join) > 0 {
		args = append(args, "--join", strings.Join(join, ","))
	}
	p, err := live.StartProcess(name, wlmsim, args, os.Stderr)
	require.NoError(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[name] = p
	c.http[name], c.gossip[name] = p.Where().HTTP, p.Where().Gossip
	return p
}

func (c *processes) awaitReady(t *testing.T, p *live.Process) {
	ctx, cancel := context.WithTimeout(t.Context(), roundPatience)
	defer cancel()
	_, err := p.Ready(ctx)
	require.NoError(t, err, "node %s", p.Name())
}

// killAndRestart kills a node, waits until a write goes through without it,
// and takes it back.
func (c *processes) killAndRestart(t *testing.T, name string) {
	c.mu.Lock()
	victim, address := c.running[name], c.http[name]
	delete(c.running, name)
	c.mu.Unlock()
	began := time.Now()
	victim.Kill()
	c.awaitWrite(t)
	wrote := time.Now()
	c.awaitReady(t, c.start(t, name, address))
	t.Logf("%s: a write went through %v after it was killed, and it was ready again %v later", name, wrote.Sub(began).Round(time.Millisecond), time.Since(wrote).Round(time.Millisecond))
}

// awaitWrite waits until a write is acknowledged.
func (c *processes) awaitWrite(t *testing.T) {
	for deadline := time.Now().Add(roundPatience); ; {
		status, body, err := c.call(t.Context(), c.anyURL(), http.MethodPut, "/_cluster/settings", "", `{"persistent":{"wlm.workload_group.duress_streak":4}}`)
		if err == nil && status == http.StatusOK {
			return
		}
		require.True(t, time.Now().Before(deadline), "no write went through: %d %s %v", status, body, err)
	}
}

func (c *processes) anyURL() string {
	all := c.all()
	return "http://" + all[rand.IntN(len(all))].Where().HTTP
}

func (c *processes) call(ctx context.Context, url, method, path, user, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewBufferString(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if user != "" {
		request.SetBasicAuth(user, "any")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// leader returns the name of the leader that the nodes agree on.
func (c *processes) leader(t *testing.T) string {
	for deadline := time.Now().Add(roundPatience); ; {
		names := map[string]int{}
		for _, p := range c.all() {
			names[c.stateOf(t, p).Leader]++
		}
		if len(names) == 1 && names[""] == 0 {
			return slices.Collect(maps.Keys(names))[0]
		}
		require.True(t, time.Now().Before(deadline), "the nodes see leaders %v", names)
	}
}

type nodeState struct {
	Leader  string `json:"leader"`
	Version uint64 `json:"version"`
	Permits map[string]struct {
		Buckets int `json:"buckets"`
		Held    int `json:"held"`
	} `json:"permits"`
}

func (c *processes) stateOf(t *testing.T, p *live.Process) nodeState {
	var s nodeState
	status, body, err := c.call(t.Context(), "http://"+p.Where().HTTP, http.MethodGet, "/_wlmsim/state", "", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.NoError(t, json.Unmarshal(body, &s))
	return s
}

// requireNoPermit waits for the searches that outlived their clients.
func (c *processes) requireNoPermit(t *testing.T) {
	for _, p := range c.all() {
		for deadline := time.Now().Add(roundPatience); ; {
			held := c.stateOf(t, p).Permits
			if len(held) == 0 {
				break
			}
			require.True(t, time.Now().Before(deadline), "node %s still holds %v", p.Name(), held)
		}
	}
}

// writer counts a group's node_limit up and remembers what it was told.
type writer struct {
	c            *processes
	group        string
	next         int
	last         int   // highest limit that was acknowledged
	unknown      []int // limits whose outcome nobody knows: a late one may still come
	acknowledged int
	seen         int // how often the limit was read between two updates
	outcomeless  int // how often nobody could say what came of an update
	refused      int
}

func newWriter(t *testing.T, c *processes, group string) *writer {
	w := &writer{c: c, group: group, next: 2, last: 1}
	body := fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},"throttling":{"attribute":"username","node_limit":1}}`, group)
	status, text, err := c.call(t.Context(), c.anyURL(), http.MethodPut, "/_wlm/workload_group", "", body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s", text)
	return w
}

func (w *writer) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		w.write(t)
		w.next++
		w.look(t)
	}
}

// look reads the limit from the leader, before the next update covers up what
// became of the last one.
func (w *writer) look(t *testing.T) {
	status, body, err := w.c.call(t.Context(), w.c.anyURL(), http.MethodGet, "/_wlm/workload_group/"+w.group, "", "")
	switch {
	case err != nil || status == http.StatusServiceUnavailable: // the node died, or knows no leader
	case status != http.StatusOK:
		t.Errorf("%s: a read was answered %d %s", w.group, status, body)
	default:
		w.seen++
		if limit, err := limitIn(body); err != nil || !slices.Contains(w.possible(), limit) {
			t.Errorf("%s: limit %d was read (%v): acknowledged %d, unknown %v", w.group, limit, err, w.last, w.unknown)
		}
	}
}

// possible are the limits that the group may have.
func (w *writer) possible() []int { return append([]int{w.last}, w.unknown...) }

// limitIn returns the limit of the one group in an answer.
func limitIn(body []byte) (int, error) {
	var got struct {
		Groups []struct {
			Throttling struct {
				NodeLimit int `json:"node_limit"`
			} `json:"throttling"`
		} `json:"workload_groups"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return 0, err
	}
	if len(got.Groups) != 1 {
		return 0, fmt.Errorf("%d groups in %s", len(got.Groups), body)
	}
	return got.Groups[0].Throttling.NodeLimit, nil
}

// write tries one update. A status that promises that nothing was done must
// keep that promise, so such a limit may not be seen later.
func (w *writer) write(t *testing.T) {
	body := fmt.Sprintf(`{"throttling":{"node_limit":%d}}`, w.next)
	status, text, err := w.c.call(t.Context(), w.c.anyURL(), http.MethodPut, "/_wlm/workload_group/"+w.group, "", body)
	switch {
	case err == nil && status == http.StatusOK:
		w.acknowledged++
		w.last = w.next
	case err != nil, bytes.Contains(text, []byte("outcome unknown")):
		w.unknown = append(w.unknown, w.next)
		w.outcomeless++
	case status == http.StatusServiceUnavailable:
		w.refused++
	default:
		t.Errorf("%s: an update was answered %d %s", w.group, status, text)
	}
}

// judge looks on every node for the last acknowledged limit, or one of unknown
// outcome.
func (w *writer) judge(t *testing.T, c *processes) {
	var seen []int
	for _, p := range c.all() {
		for deadline := time.Now().Add(roundPatience); c.stateOf(t, p).Version < c.newest(t); {
			require.True(t, time.Now().Before(deadline), "node %s does not catch up", p.Name())
		}
		status, body, err := c.call(t.Context(), "http://"+p.Where().HTTP, http.MethodGet, "/_wlm/workload_group/"+w.group+"?local=true", "", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, "%s", body)
		limit, err := limitIn(body)
		require.NoError(t, err)
		require.Contains(t, w.possible(), limit, "%s on node %s: acknowledged %d, unknown %v", w.group, p.Name(), w.last, w.unknown)
		seen = append(seen, limit)
	}
	require.Len(t, slices.Compact(seen), 1, "%s differs between the nodes", w.group)
}

func (c *processes) newest(t *testing.T) uint64 {
	var newest uint64
	for _, p := range c.all() {
		newest = max(newest, c.stateOf(t, p).Version)
	}
	return newest
}

// search keeps searching until the load ends and returns how many searches
// were answered, admitted or refused.
func search(ctx context.Context, c *processes, i int) int {
	answered := 0
	for ctx.Err() == nil {
		all := c.all()
		url := "http://" + all[(i+answered)%len(all)].Where().HTTP
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/_search", strings.NewReader(`{"ext":{"wlmsim":{"service_time":"5ms"}}}`))
		if err != nil {
			continue
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("workloadGroupId", fmt.Sprintf("group-%d", i%testWriters))
		request.SetBasicAuth(fmt.Sprintf("user-%d", i), "any")
		response, err := c.client.Do(request)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		answered++
	}
	return answered
}
