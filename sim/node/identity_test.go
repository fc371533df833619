package node_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
)

// ask sends a request as a user with a role and returns the status and the
// body; "" for either names none.
func (c *client) ask(ctx context.Context, name, method, path, user, role, body string, headers ...string) (int, string) {
	request, err := http.NewRequestWithContext(ctx, method, c.url(name)+path, strings.NewReader(body))
	require.NoError(c.l.t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if user != "" {
		request.Header.Set("X-Wlmsim-User", user)
	}
	if role != "" {
		request.Header.Set("X-Wlmsim-Role", role)
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// lockedBuffer is a buffer that several nodes log to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Case C18, without remote clusters: the words of a
// principal are nowhere but in the memory of the node that took its searches.
func TestAPrincipalIsNowhereButOnItsCoordinator(t *testing.T) {
	const user, role, path = "canary-7f3a", "canary-role", "/logs/_search"
	words := []string{user, role}
	dir := t.TempDir()
	log := &lockedBuffer{}
	config := netsim.Config{Seed: 1}
	var searches []*netsim.Search
	for _, word := range words {
		s, err := netsim.NewSearch([]byte(word), func(from, to string) bool { return from != "client" && to != "client" })
		require.NoError(t, err)
		searches = append(searches, s)
		config.Taps = append(config.Taps, s)
	}
	var told []string // to other users
	inLabOn(t, config, "m1 d1 d2 d3", func(c *node.Config) {
		c.Store = replica.Bolt(filepath.Join(dir, c.Name))
		c.Timings.SnapshotThreshold, c.Timings.TrailingLogs = 8, 2
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}, func(l *lab) {
		l.index(6)
		g := l.group("m1", "watched", cluster.ByUsername, 1)
		c := l.client()
		defer c.transport.CloseIdleConnections()
		search := func(ctx context.Context, user, role, service string) (int, string) {
			return c.ask(ctx, "m1", http.MethodPost, path, user, role, `{"ext":{"wlmsim":{"service_time":"`+service+`"}}}`, "workloadGroupId", g)
		}
		ctx := l.t.Context()

		// One that is answered, and one that is refused meanwhile.
		var clients sync.WaitGroup
		clients.Go(func() {
			status, _ := search(ctx, user, role, "5s")
			require.Equal(l.t, http.StatusOK, status)
		})
		time.Sleep(time.Second)
		status, _ := search(ctx, user, role, "0ms")
		require.Equal(l.t, http.StatusTooManyRequests, status, "throttling by username works for that user")
		status, body := search(ctx, "bob", "", "0ms")
		require.Equal(l.t, http.StatusOK, status, body)
		told = append(told, body)
		clients.Wait()

		// One that starts another one, which is refused by the permit of the
		// first; its bucket is that user's.
		status, body = c.ask(ctx, "m1", http.MethodPost, path, user, role, lookup, "workloadGroupId", g)
		require.Equal(l.t, http.StatusTooManyRequests, status, body)
		l.group("m1", "wide", cluster.ByUsername, 2)
		status, body = c.ask(ctx, "m1", http.MethodPost, path, user, role, lookup, "workloadGroupId", l.nodes["m1"].State().GroupNamed("wide").ID)
		require.Equal(l.t, http.StatusOK, status, body)

		// One that outlives its client.
		leaving, leave := context.WithCancel(ctx)
		clients.Go(func() { _, _ = search(leaving, user, role, "1h") })
		time.Sleep(time.Second)
		leave()
		clients.Wait()
		time.Sleep(time.Second)

		// One that fails on a data node, while bob is refused in his own bucket.
		clients.Go(func() {
			status, _ := search(ctx, user, role, "5s")
			require.Equal(l.t, http.StatusOK, status, "a part of it")
		})
		clients.Go(func() { _, _ = search(ctx, "bob", "", "5s") })
		time.Sleep(time.Second)
		status, body = search(ctx, "bob", "", "0ms")
		require.Equal(l.t, http.StatusTooManyRequests, status)
		told = append(told, body)
		l.net.Host("d2").Crash()
		l.stop("d2")
		clients.Wait()

		for i := range 20 { // enough for a snapshot
			l.mustPropose("m1", &cluster.UpdateGroup{Name: "watched", UpdatedAt: int64(i)})
		}
		for _, page := range []string{"/_wlm/stats", "/_wlmsim/state", "/_wlm/workload_group"} {
			status, body := c.ask(ctx, "d1", http.MethodGet, page, "", "", "")
			require.Equal(l.t, http.StatusOK, status, page)
			told = append(told, body)
		}
	})

	for i, s := range searches {
		found, count := s.Found()
		require.Zero(t, count, "%s was sent from one node to another: %v", words[i], found)
	}
	logged := log.String()
	require.Contains(t, logged, "the node is ready")
	files, snapshots := 0, 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		stored, err := os.ReadFile(path)
		files++
		if strings.Contains(path, "snapshot") && d.Name() == "state.bin" {
			snapshots++
		}
		for _, word := range words {
			require.NotContains(t, string(stored), word, path)
		}
		return err
	}))
	require.Positive(t, files)
	require.Positive(t, snapshots)
	for _, word := range words {
		require.NotContains(t, logged, word, "the log")
		for _, body := range told {
			require.NotContains(t, body, word, "what others were told")
		}
	}
}
