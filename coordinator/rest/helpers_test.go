package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCluster is a cluster of two nodes whose commands go through the real
// codec and the real transition.
type fakeCluster struct {
	mu       sync.Mutex
	state    *cluster.State
	proposed int // commands that reached Propose
	ids      int
	clock    int64 // epoch milliseconds, one more at every look

	ready    bool
	leader   string
	d1Dead   bool
	broken   error // what Propose returns, if not nil
	unsynced bool  // acknowledged is false
	queries  []rest.TaskQuery
	would    *uint64
}

func newFakeCluster(t testing.TB) *fakeCluster {
	f := &fakeCluster{state: cluster.Empty(), ready: true, leader: "m1", clock: 1735689600000}
	for _, n := range []cluster.Node{
		{Name: "m1", ID: "m1-id-0000000000000000", Roles: []cluster.Role{cluster.Manager, cluster.Data}},
		{Name: "d1", ID: "d1-id-0000000000000000", Roles: []cluster.Role{cluster.Data}},
	} {
		f.apply(t, &cluster.PutNode{Node: n})
	}
	mode := string(cluster.Enabled)
	f.apply(t, &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &mode}}})
	return f
}

func (f *fakeCluster) apply(t testing.TB, c cluster.Command) {
	next, err := cluster.Apply(f.state, c)
	require.NoError(t, err)
	f.state = next
}

func (f *fakeCluster) State() *cluster.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fakeCluster) Proposed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.proposed
}

func (f *fakeCluster) Propose(_ context.Context, c cluster.Command) (*rest.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proposed++
	if f.broken != nil {
		return nil, f.broken
	}
	data, err := cluster.EncodeCommand(c)
	if err != nil {
		return nil, err
	}
	if c, err = cluster.DecodeCommand(data); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	next, err := cluster.Apply(f.state, c)
	if err != nil {
		return nil, err
	}
	f.state = next
	return f.result(c), nil
}

func (f *fakeCluster) result(c cluster.Command) *rest.Result {
	r := &rest.Result{Version: f.state.Version(), Acknowledged: !f.unsynced}
	switch c := c.(type) {
	case *cluster.CreateGroup:
		r.Group = f.state.GroupNamed(c.Group.Name)
	case *cluster.UpdateGroup:
		r.Group = f.state.GroupNamed(c.Name)
	case *cluster.CreateRule:
		r.Rule = f.state.Rule(c.Rule.ID)
	case *cluster.UpdateRule:
		r.Rule = f.state.Rule(c.ID)
	case *cluster.CreateIndex:
		r.Index = f.state.Index(c.Name)
	}
	return r
}

func (f *fakeCluster) Groups(context.Context) ([]*cluster.Group, error) {
	if f.leader == "" {
		return nil, cluster.Errorf(cluster.NotDiscovered, "no leader was found within 30s")
	}
	return f.State().Groups(), nil
}

func (f *fakeCluster) Status() rest.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.state.Version()
	return rest.Status{
		Node: "m1", ID: "m1-id-0000000000000000", Version: v, RulesVersion: v - 1, Leader: f.leader, Ready: f.ready,
		Members: []rest.Member{
			{Name: "d1", ID: "d1-id-0000000000000000", Address: "127.0.0.1:9401", HTTP: "127.0.0.1:9201", Raft: "127.0.0.1:9301", Roles: []cluster.Role{cluster.Data}, AppliedVersion: v - 1, Alive: !f.d1Dead},
			{Name: "m1", ID: "m1-id-0000000000000000", Address: "127.0.0.1:9400", HTTP: "127.0.0.1:9200", Raft: "127.0.0.1:9300", Roles: []cluster.Role{cluster.Manager, cluster.Data}, AppliedVersion: v, Alive: true},
		},
	}
}

func (f *fakeCluster) Refresh(context.Context) {}

func (f *fakeCluster) NodeStats(_ context.Context, nodes, groups []string) (answers []rest.NodeStats, failures []rest.NodeFailure) {
	for i, m := range f.Status().Members {
		if len(nodes) > 0 && !slices.Contains(nodes, m.Name) {
			continue
		}
		n := rest.NodeStats{Node: m.Name, ID: m.ID}
		var missing error
		for _, id := range groups {
			if id != cluster.DefaultGroupID && f.State().Group(id) == nil {
				missing = cluster.Errorf(cluster.ResourceNotFound, "WorkloadGroup with id %s does not exist", id)
			}
		}
		if missing != nil {
			failures = append(failures, rest.NodeFailure{Node: m.Name, ID: m.ID, Err: missing.(*cluster.Error)})
			continue
		}
		all := []wlm.GroupStats{{ID: cluster.DefaultGroupID, Completions: uint64(3 + i), Failures: 9}}
		for _, g := range f.State().Groups() {
			all = append(all, wlm.GroupStats{ID: g.ID, Completions: 1, Rejections: 2, Cancellations: 3, Throttled: 15, WouldThrottle: f.would})
		}
		for _, g := range all {
			if len(groups) == 0 || slices.Contains(groups, g.ID) {
				n.Groups = append(n.Groups, g)
			}
		}
		answers = append(answers, n)
	}
	return answers, failures
}

// Tasks has one search of d1 that runs for a client, and its shard.
func (f *fakeCluster) Tasks(_ context.Context, nodes []string, q rest.TaskQuery) (answers []rest.NodeTasks, failures []rest.NodeFailure) {
	f.queries = append(f.queries, q)
	for _, m := range f.Status().Members {
		if len(nodes) > 0 && !slices.Contains(nodes, m.Name) {
			continue
		}
		if !m.Alive {
			failures = append(failures, rest.NodeFailure{Node: m.Name, ID: m.ID, Err: cluster.Errorf(cluster.IllegalState, "node [%s] did not answer", m.Name)})
			continue
		}
		n := rest.NodeTasks{Node: m.Name, ID: m.ID}
		search := task.ID{Node: "m1-id-0000000000000000", Number: 3}
		all := []task.Info{{
			ID: search, Action: coordinator.ActionSearch, Description: "indices[logs]",
			OpaqueID: "mine", Started: 1735689600000, Running: 1500 * time.Millisecond, Cancelled: q.Cancel,
		}}
		if m.Name == "d1" {
			all = []task.Info{{
				ID: task.ID{Node: m.ID, Number: 4}, Parent: search, Action: "indices:data/read/search[phase/query]", Description: "shardId[[logs][0]]",
				OpaqueID: "mine", Started: 1735689600001, Running: 1499 * time.Millisecond, Cancelled: q.Cancel,
			}}
		}
		for _, i := range all {
			if q.Number == 0 || q.Number == i.ID.Number {
				n.Tasks = append(n.Tasks, i)
			}
		}
		answers = append(answers, n)
	}
	return answers, failures
}

func (f *fakeCluster) NewID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	return fmt.Sprintf("id-%019d", f.ids)
}

func (f *fakeCluster) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock++
	return time.UnixMilli(f.clock)
}

// fakeSearcher answers every search the same way and keeps what it was asked.
type fakeSearcher struct {
	cluster *fakeCluster
	answer  string // "", "rejected", "failed", "partial", "closing"

	mu         sync.Mutex
	requests   []coordinator.Request
	principals []wlm.Principal
	nobodies   int // searches without a principal in the context
}

func (s *fakeSearcher) Search(ctx context.Context, r coordinator.Request) (*coordinator.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if p, ok := wlm.PrincipalFrom(ctx); ok {
		s.principals = append(s.principals, p)
	} else {
		s.nobodies++
	}
	if _, err := s.cluster.State().MatchIndices(r.Index); err != nil {
		return nil, err
	}
	failure := []coordinator.ShardFailure{
		{Index: "logs", Shard: 0, Node: "d1", Error: &cluster.Error{Kind: wire.NodeNotConnected, Reason: "[d1] refused"}},
		{Index: "logs", Shard: 2, Node: "d1", Error: &cluster.Error{Kind: wire.NodeNotConnected, Reason: "[d1] refused"}},
	}
	response := &coordinator.Response{
		Took: 12345 * time.Microsecond, Group: "id-x", Permit: true,
		Shards: coordinator.ShardSummary{Total: 3, Successful: 3},
		Total:  10000, Relation: "gte", MaxScore: 1.5, Count: 12345,
		Hits: []coordinator.Hit{{Index: "logs", ID: "a\"\xff", Score: 1.5}, {Index: "logs", ID: "b", Score: 1}},
	}
	response.PointID = r.PointID
	if r.Scroll > 0 || r.ScrollID != "" {
		response.ScrollID = "scroll-1"
	}
	if r.BatchedReduce > 0 {
		response.ReducePhases = 3
	}
	switch s.answer {
	case "rejected":
		return nil, &wlm.Rejection{Group: "id-x", Limit: 10, Counted: true}
	case "failed":
		return nil, &coordinator.SearchError{Phase: "query", Reason: coordinator.AllShardsFailed, Status: 503, Failures: failure}
	case "closing":
		return nil, fmt.Errorf("search was cancelled: %w", context.Canceled)
	case "partial":
		response.Shards = coordinator.ShardSummary{Total: 3, Successful: 1, Failed: 2, Failures: failure}
		response.Permit, response.TimedOut = false, true
	}
	return response, nil
}

// fakeContexts keeps nothing, and what it was asked.
type fakeContexts struct {
	cleared [][]string
	opened  []coordinator.PointRequest
	freed   [][]string
	found   int // contexts that there were to clear
}

func (f *fakeContexts) ClearScrolls(_ context.Context, ids []string) (int, error) {
	f.cleared = append(f.cleared, ids)
	return f.found, nil
}

func (f *fakeContexts) OpenPoint(_ context.Context, r coordinator.PointRequest) (*coordinator.Point, error) {
	f.opened = append(f.opened, r)
	return &coordinator.Point{ID: "point-1", Created: time.UnixMilli(1735689600000), Shards: coordinator.ShardSummary{Total: 3, Successful: 3}}, nil
}

func (f *fakeContexts) FreePoints(_ context.Context, ids []string) ([]coordinator.FreedPoint, error) {
	f.freed = append(f.freed, ids)
	if len(ids) == 0 {
		ids = []string{"point-1"}
	}
	var freed []coordinator.FreedPoint
	for _, id := range ids {
		freed = append(freed, coordinator.FreedPoint{ID: id, Successful: id != "lost"})
	}
	return freed, nil
}

func (f *fakeContexts) Points(context.Context) ([]wire.Point, error) {
	return []wire.Point{{Text: "point-1", Created: 1735689600000, KeepAlive: time.Minute}}, nil
}

// world is a handler over the fakes.
type world struct {
	t        testing.TB
	cluster  *fakeCluster
	searcher *fakeSearcher
	contexts *fakeContexts
	handler  *rest.Handler
}

func newWorld(t testing.TB, changes ...func(*rest.Config)) *world {
	f := newFakeCluster(t)
	s := &fakeSearcher{cluster: f}
	contexts := &fakeContexts{}
	config := rest.Config{
		Cluster: f, Searcher: s, Contexts: contexts,
		Permits: func() []wlm.GroupPermits { return []wlm.GroupPermits{{Group: "id-x", Buckets: 2, Held: 11}} },
		Outcomes: func() []coordinator.GroupOutcomes {
			return []coordinator.GroupOutcomes{{Group: "id-x", Completed: 1, Failed: 2, Throttled: 3, Cancelled: 4, Uncounted: 5}}
		},
		AllowHolds: true, Holds: &probe.Holds{},
	}
	for _, change := range changes {
		change(&config)
	}
	h, err := rest.New(config)
	require.NoError(t, err)
	return &world{t: t, cluster: f, searcher: s, contexts: contexts, handler: h}
}

// do sends a request and checks what holds for every answer: a refusal moves
// no version, and JSON is JSON.
func (w *world) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	before := w.cluster.State().Version()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	if recorder.Code >= 400 {
		require.Equal(w.t, before, w.cluster.State().Version(), "%s %s was answered with %d and moved the version", method, target, recorder.Code)
	}
	w.checkShape(method, recorder)
	return recorder
}

func (w *world) checkShape(method string, r *httptest.ResponseRecorder) {
	if method == http.MethodHead {
		require.Empty(w.t, r.Body.Bytes())
		return
	}
	require.Empty(w.t, r.Header().Get("Retry-After"), "OpenSearch sends none")
	if strings.HasPrefix(r.Header().Get("Content-Type"), "application/json") {
		requireJSON(w.t, r.Body.Bytes())
	}
	require.Equal(w.t, fmt.Sprint(r.Body.Len()), r.Header().Get("Content-Length"))
}

func (w *world) createGroup(name, throttling string) *httptest.ResponseRecorder {
	return w.do(http.MethodPut, "/_wlm/workload_group",
		fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},"throttling":%s}`, name, throttling))
}

func (w *world) throttling(name string) string {
	g := w.cluster.State().GroupNamed(name)
	require.NotNil(w.t, g, name)
	switch t := g.Throttling; {
	case t == nil:
		return "none"
	case t.NodeLimit == nil:
		return string(t.Attribute)
	default:
		return fmt.Sprintf("%s %d", t.Attribute, *t.NodeLimit)
	}
}

func reason(t testing.TB, r *httptest.ResponseRecorder) string {
	var body struct {
		Error struct{ Reason string }
	}
	requireDecode(t, r.Body.Bytes(), &body)
	return body.Error.Reason
}

func bodyOf(r *httptest.ResponseRecorder) string {
	return string(bytes.TrimSuffix(r.Body.Bytes(), []byte("\n")))
}

// doConcurrently is do for requests that run at the same time as others, whose effect on
// the version cannot be told apart.
func (w *world) doConcurrently(method, target, body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, httptest.NewRequest(method, target, strings.NewReader(body)))
	return recorder
}
