package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// The example of the pull request: each user may have ten searches in flight
// on each node.
const (
	nodeLimit     = 10
	aliceSearches = 25
	bobSearches   = 5
	// serviceTime keeps the admitted searches in flight until all have been
	// sent.
	serviceTime = "2s"
	// patience bounds the whole demo.
	patience = time.Minute
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo PATH_OF_WLMSIM")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := demo(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, wlmsim string) error {
	nodes, stop, err := startCluster(ctx, wlmsim)
	if err != nil {
		return err
	}
	c := &client{base: nodes[0]}
	err = c.show(ctx)
	return errors.Join(err, stop())
}

// startCluster runs `wlmsim up` and returns the nodes' URLs once all are ready.
func startCluster(ctx context.Context, wlmsim string) (urls []string, stop func() error, err error) {
	up := exec.CommandContext(ctx, wlmsim, "up", "--nodes", "3", "--http", "127.0.0.1:0", "--format", "json")
	up.Stderr = os.Stderr
	output, err := up.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := up.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() error { return errors.Join(up.Process.Signal(os.Interrupt), up.Wait()) }
	var cluster struct {
		Leader string `json:"leader"`
		Nodes  []struct {
			Name string `json:"name"`
			URL  string `json:"url"`
		} `json:"nodes"`
	}
	if err := json.NewDecoder(output).Decode(&cluster); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("wlmsim up: %w", err), stop())
	}
	for _, n := range cluster.Nodes {
		fmt.Fprintf(os.Stderr, "node %s at %s\n", n.Name, n.URL)
		urls = append(urls, n.URL)
	}
	return urls, stop, nil
}

// client talks to one node.
type client struct{ base string }

// call sends a request and decodes the answer into v, which may be nil.
func (c *client) call(ctx context.Context, method, path, user, body string, v any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewBufferString(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if user != "" {
		request.SetBasicAuth(user, "any")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil {
			return response.StatusCode, fmt.Errorf("%s %s: %w in %s", method, path, err, text)
		}
	}
	return response.StatusCode, nil
}

// must is call for what has to succeed.
func (c *client) must(ctx context.Context, method, path, body string, v any) error {
	status, err := c.call(ctx, method, path, "", body, v)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d", method, path, status)
	}
	return err
}

// show prepares the group, fires the searches, and judges what came back.
func (c *client) show(ctx context.Context) error {
	group, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	alice, bob := &tally{user: "alice", sent: aliceSearches}, &tally{user: "bob", sent: bobSearches}
	fmt.Fprintf(os.Stderr, "firing %d searches as alice and %d as bob, limit %d for each user\n", aliceSearches, bobSearches, nodeLimit)
	c.fire(ctx, alice, bob)
	throttled, stats, err := c.stats(ctx, group)
	if err != nil {
		return err
	}
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"user", "sent", "200", "429"})
	for _, u := range []*tally{alice, bob} {
		t.AppendRow(table.Row{u.user, u.sent, u.statuses[200], u.statuses[429]})
	}
	t.Render()
	fmt.Printf("\n_wlm/stats of the node:\n%s\n", stats)
	return errors.Join(alice.judge(nodeLimit), bob.judge(bobSearches), wantThrottled(throttled))
}

func wantThrottled(got int) error {
	if want := aliceSearches - nodeLimit; got != want {
		return fmt.Errorf("total_throttled is %d, want %d", got, want)
	}
	return nil
}

// prepare creates an index, the group and a rule for both users, waits until
// the node tags by the rule, and returns the group's id.
func (c *client) prepare(ctx context.Context) (string, error) {
	if err := c.must(ctx, http.MethodPut, "/events", `{"settings":{"number_of_shards":6,"number_of_replicas":0}}`, nil); err != nil {
		return "", err
	}
	var group struct {
		ID string `json:"_id"`
	}
	body := fmt.Sprintf(`{"name":"analytics","resiliency_mode":"enforced","resource_limits":{"cpu":0.3,"memory":0.4},"throttling":{"attribute":"username","node_limit":%d}}`, nodeLimit)
	if err := c.must(ctx, http.MethodPut, "/_wlm/workload_group", body, &group); err != nil {
		return "", err
	}
	rule := fmt.Sprintf(`{"description":"the demo's users","workload_group":%q,"principal.username":["alice","bob"]}`, group.ID)
	if err := c.must(ctx, http.MethodPut, "/_rules/workload_group", rule, nil); err != nil {
		return "", err
	}
	var after struct {
		Version uint64 `json:"version"`
	}
	if err := c.must(ctx, http.MethodGet, "/_wlmsim/state", "", &after); err != nil {
		return "", err
	}
	return group.ID, c.awaitRules(ctx, after.Version)
}

// awaitRules waits until the node tags by the rules of a version.
func (c *client) awaitRules(ctx context.Context, version uint64) error {
	for {
		var now struct {
			RulesVersion uint64 `json:"rules_version"`
		}
		if err := c.must(ctx, http.MethodGet, "/_wlmsim/state", "", &now); err != nil {
			return err
		}
		if now.RulesVersion >= version {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tally counts one user's answers.
type tally struct {
	user string
	sent int

	mu       sync.Mutex
	statuses map[int]int
	errs     []error
}

func (t *tally) add(status int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.statuses == nil {
		t.statuses = map[int]int{}
	}
	t.statuses[status]++
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// judge says what is wrong if not exactly admitted searches were admitted and
// all others refused.
func (t *tally) judge(admitted int) error {
	if t.statuses[200] == admitted && t.statuses[429] == t.sent-admitted {
		return nil
	}
	return errors.Join(fmt.Errorf("%s: of %d searches %d must be admitted and %d refused, but the statuses are %v", t.user, t.sent, admitted, t.sent-admitted, t.statuses), errors.Join(t.errs...))
}

// fire sends all searches of all users at once and waits for the answers.
func (c *client) fire(ctx context.Context, users ...*tally) {
	body := fmt.Sprintf(`{"query":{"match_all":{}},"ext":{"wlmsim":{"service_time":%q}}}`, serviceTime)
	var running sync.WaitGroup
	for _, u := range users {
		for range u.sent {
			running.Go(func() { u.add(c.call(ctx, http.MethodPost, "/events/_search", u.user, body, nil)) })
		}
	}
	running.Wait()
}

// stats returns the group's total_throttled on the node, and the node's stats
// as text.
func (c *client) stats(ctx context.Context, group string) (int, string, error) {
	var state struct {
		Node string `json:"node"`
	}
	if err := c.must(ctx, http.MethodGet, "/_wlmsim/state", "", &state); err != nil {
		return 0, "", err
	}
	var stats map[string]json.RawMessage
	if err := c.must(ctx, http.MethodGet, "/_wlm/"+state.Node+"/stats", "", &stats); err != nil {
		return 0, "", err
	}
	for id, text := range stats {
		var node struct {
			Groups map[string]struct {
				Throttled int `json:"total_throttled"`
			} `json:"workload_groups"`
		}
		if id == "_nodes" || id == "cluster_name" {
			continue
		}
		if err := json.Unmarshal(text, &node); err != nil {
			return 0, "", err
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", "  "); err != nil {
			return 0, "", err
		}
		return node.Groups[group].Throttled, pretty.String(), nil
	}
	return 0, "", fmt.Errorf("no node answered for its stats")
}
