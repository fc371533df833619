package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

// surface is a lab as a client meets it over HTTP, with a group g.
type surface struct {
	*lab
	*client
	group   string // its id
	profile string
}

// inSurface runs a test in a lab of a profile with an index logs of 6 shards
// and a group of one bucket.
func inSurface(t *testing.T, names, profile string, limit int64, tune func(*node.Config), test func(*surface)) {
	t.Helper()
	inLab(t, names, func(c *node.Config) {
		switches, err := wlm.Profile(profile)
		require.NoError(t, err)
		c.Switches = switches
		if tune != nil {
			tune(c)
		}
	}, func(l *lab) {
		s := &surface{lab: l, client: l.client(), profile: profile}
		defer s.transport.CloseIdleConnections()
		l.index(6)
		s.group = s.newGroup("g", cluster.ByGroup, limit)
		l.awaitSame(l.names...)
		test(s)
		time.Sleep(time.Second) // for nodes to hear of clients that left
		l.requireNoPermit()
		for name, n := range l.nodes {
			require.Zero(t, n.Coordinator().Running(), "node %s", name)
		}
	})
}

func (s *surface) form() cluster.DimensionKey {
	if s.profile == wlm.ProfileUpstream {
		return cluster.KeyBy
	}
	return cluster.KeyAttribute
}

// throttling is a limit in the profile's form.
func (s *surface) throttling(attribute cluster.Attribute, limit int64) *cluster.Throttling {
	t := &cluster.Throttling{Attribute: attribute, NodeLimit: &limit}
	if s.profile == wlm.ProfileUpstream {
		t.Attribute = ""
		if attribute != cluster.ByGroup {
			t.By = attribute
		}
	}
	return t
}

func (s *surface) newGroup(name string, attribute cluster.Attribute, limit int64) string {
	s.t.Helper()
	made := newGroup(s.nodes["m1"].NewID(), name, attribute, limit)
	made.Group.Throttling, made.Form = s.throttling(attribute, limit), s.form()
	return s.mustPropose("m1", made).Group.ID
}

// reply is an answer over HTTP.
type reply struct {
	status int
	body   string
}

// decode reads the body.
func (r reply) decode(t testing.TB, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.body), into), r.body)
}

// failure is the type and the reason of the error.
func (r reply) failure(t testing.TB) (kind, reason string) {
	t.Helper()
	var body struct {
		Error struct{ Type, Reason string }
	}
	r.decode(t, &body)
	return body.Error.Type, body.Error.Reason
}

// do sends a request to a node for alice in the group g.
func (s *surface) do(name, method, path, body string, headers ...string) reply {
	return s.as(s.lab.t.Context(), "alice", name, method, path, body, headers...)
}

func (s *surface) as(ctx context.Context, user, name, method, path, body string, headers ...string) reply {
	if len(headers) == 0 {
		headers = []string{"workloadGroupId", s.group}
	}
	status, text := s.ask(ctx, name, method, path, user, "", body, headers...)
	return reply{status, text}
}

// start is do on a goroutine of its own; the request has come as far as it gets
// when start returns.
func (s *surface) start(name, method, path, body string, headers ...string) (leave context.CancelFunc, answer <-chan reply) {
	ctx, cancel := context.WithCancel(s.lab.t.Context())
	done := make(chan reply, 1)
	go func() { done <- s.as(ctx, "alice", name, method, path, body, headers...) }()
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	return cancel, done
}

// costs is the body of a search whose shards take so long.
func costs(service string) string {
	return fmt.Sprintf(`{"ext":{"wlmsim":{"service_time":%q}}}`, service)
}

func (s *surface) outcomes(name, group string) coordinator.GroupOutcomes {
	for _, o := range s.nodes[name].Coordinator().Outcomes() {
		if o.Group == group {
			return o
		}
	}
	return coordinator.GroupOutcomes{Group: group}
}

const lookup = `{"query":{"terms":{"user":{"index":"logs","path":"id","query":{"match_all":{}}}}}}`

// peak is the most permits that a bucket ever held.
type peak struct {
	mu   sync.Mutex
	most int
}

func (p *peak) Reach(e probe.Event) {
	if e.Step != probe.Acquired {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, e.Held)
}

// Case C10: a search whose query needs another one of its own group.
func TestASearchThatStartsASearch(t *testing.T) {
	for _, profile := range []string{wlm.ProfileSubmitted, wlm.ProfileReviewed, wlm.ProfileUpstream} {
		t.Run(profile, func(t *testing.T) {
			seen := &peak{}
			inSurface(t, "m1", profile, 1, func(c *node.Config) { c.Hooks = append(c.Hooks, seen) }, func(s *surface) {
				r := s.do("m1", http.MethodPost, "/logs/_search", lookup)
				synctest.Wait()
				s.requireNoPermit()
				if profile == wlm.ProfileUpstream {
					require.Equal(t, http.StatusOK, r.status, r.body)
					require.Zero(t, s.throttledCount("m1", s.group))
					require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Completed: 2}, s.outcomes("m1", s.group))
				} else {
					require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
					kind, _ := r.failure(t)
					require.Equal(t, "rejected_execution_exception", kind)
					require.Equal(t, uint64(1), s.throttledCount("m1", s.group), "it is counted once")
					require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Throttled: 1, Failed: 1}, s.outcomes("m1", s.group))
				}
				require.Equal(t, 1, seen.most)
				require.Equal(t, http.StatusOK, s.do("m1", http.MethodPost, "/logs/_search", "").status, "the permit is back")
			})
		})
	}
}

// Case C10, the variant: by the time of the lookup its bucket is another one,
// which is full.
func TestANestedSearchWhoseBucketIsFull(t *testing.T) {
	for profile, want := range map[string]int{wlm.ProfileReviewed: http.StatusTooManyRequests, wlm.ProfileUpstream: http.StatusOK} {
		t.Run(profile, func(t *testing.T) {
			inSurface(t, "m1", profile, 1, nil, func(s *surface) {
				s.holdStep("m1", probe.Acquired, probe.Filter{Search: "outer"})
				_, outer := s.start("m1", http.MethodPost, "/logs/_search", lookup, "workloadGroupId", s.group, "X-Opaque-Id", "outer")
				require.Len(t, s.nodes["m1"].Holds().Parked(probe.Acquired), 1)
				username := cluster.ByUsername
				patch := cluster.ThrottlingPatch{Attribute: cluster.Optional[cluster.Attribute]{Given: true, Value: &username}}
				if profile == wlm.ProfileUpstream {
					patch = cluster.ThrottlingPatch{By: patch.Attribute}
				}
				s.mustPropose("m1", &cluster.UpdateGroup{Name: "g", Form: s.form(), Throttling: patch})
				leave, other := s.start("m1", http.MethodPost, "/logs/_search", costs("1h"))
				require.Equal(t, 2, s.held("m1", s.group), "the outer search in the group's bucket, another one in alice's")

				s.nodes["m1"].Holds().Release(probe.Acquired)
				r := <-outer
				require.Equal(t, want, r.status, r.body)
				synctest.Wait()
				require.Equal(t, 1, s.held("m1", s.group), "the outer permit is back, once")
				require.Equal(t, uint64(map[int]int{http.StatusOK: 0, http.StatusTooManyRequests: 1}[want]), s.throttledCount("m1", s.group))
				leave()
				<-other
			})
		})
	}
}

// Other ends of a nested search: its index is missing, it outlives the client,
// and a header that would be put twice.
func TestANestedSearchThatFailsFailsTheOuterOne(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileReviewed, 5, nil, func(s *surface) {
		r := s.do("m1", http.MethodPost, "/logs/_search", strings.Replace(lookup, `"index":"logs"`, `"index":"gone"`, 1))
		require.Equal(t, http.StatusNotFound, r.status)
		kind, reason := r.failure(t)
		require.Equal(t, "index_not_found_exception: no such index [gone]", kind+": "+reason)
		require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Failed: 2}, s.outcomes("m1", s.group))

		s.holdStep("m1", probe.DataNodeAnswer, probe.Filter{})
		leave, answer := s.start("m1", http.MethodPost, "/logs/_search", lookup)
		require.Equal(t, 2, s.held("m1", s.group))
		leave()
		<-answer
		time.Sleep(time.Second)
		s.nodes["m1"].Holds().Release(probe.DataNodeAnswer)
		time.Sleep(time.Second)
		require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Failed: 2, Cancelled: 2}, s.outcomes("m1", s.group))

		s.mustPropose("m1", &cluster.CreateRule{Rule: cluster.Rule{ID: s.nodes["m1"].NewID(), Description: "all", WorkloadGroup: s.group, IndexPatterns: []string{"logs*"}}})
		s.nodes["m1"].Coordinator().RefreshRules()
		r = s.do("m1", http.MethodPost, "/logs/_search", lookup, "X-Opaque-Id", "tagged by the rule")
		require.Equal(t, http.StatusBadRequest, r.status, "OpenSearch issue 22927")
		_, reason = r.failure(t)
		require.Equal(t, "value for key [workloadGroupId] already present", reason)
	})
}

// Case C11: one multi-search against its own limit.
func TestAMultiSearchAgainstItsOwnLimit(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileReviewed, 2, nil, func(s *surface) {
		body := strings.Repeat("{}\n"+costs("50ms")+"\n", 5)
		multi := func(query string) (statuses []int) {
			r := s.do("m1", http.MethodPost, "/logs/_msearch"+query, body)
			require.Equal(s.lab.t, http.StatusOK, r.status, r.body)
			var answer struct {
				Took      int
				Responses []struct {
					Status int
					Error  *struct{ Type string }
					Hits   *struct{ Total struct{ Value int } }
				}
			}
			r.decode(s.lab.t, &answer)
			for _, item := range answer.Responses {
				statuses = append(statuses, item.Status)
				require.Equal(s.lab.t, item.Status == 200, item.Hits != nil)
				require.Equal(s.lab.t, item.Status == 429, item.Error != nil && item.Error.Type == "rejected_execution_exception")
			}
			return statuses
		}
		count := func(statuses []int, status int) (n int) {
			for _, one := range statuses {
				if one == status {
					n++
				}
			}
			return n
		}
		well := []int{200, 200, 200, 200, 200}
		for range counts(20, 1000) {
			require.Equal(t, well, multi("?max_concurrent_searches=2"))
		}
		begun := time.Now()
		require.Equal(t, well, multi("?max_concurrent_searches=1"))
		require.GreaterOrEqual(t, time.Since(begun), 250*time.Millisecond, "one after the other")
		require.Zero(t, s.throttledCount("m1", s.group))

		all := multi("") // ten at once for the one data node
		require.Len(t, all, 5)
		require.Equal(t, 2, count(all, 200), "%v", all)
		require.Equal(t, 3, count(all, 429), "%v", all)
		require.Equal(t, uint64(3), s.throttledCount("m1", s.group))

		// Refused at once, so that of two at a time one place is lost early.
		cancelOne, one := s.hold("m1", "etl", s.group)
		refused := count(multi("?max_concurrent_searches=2"), 429)
		require.Positive(t, refused)
		require.Equal(t, uint64(3+refused), s.throttledCount("m1", s.group))
		cancelTwo, two := s.hold("m1", "etl", s.group)
		require.Equal(t, []int{429, 429, 429, 429, 429}, multi("?max_concurrent_searches=2"))
		require.Equal(t, uint64(8+refused), s.throttledCount("m1", s.group))
		cancelOne()
		cancelTwo()
		<-one
		<-two
		o := s.outcomes("m1", s.group)
		require.Equal(t, uint64(8+refused), o.Throttled)
		require.Zero(t, o.Failed)
		require.Equal(t, uint64(2), o.Cancelled)
	})
}

// The parts keep their places though the first one takes longest.
func TestAMultiSearchKeepsItsOrder(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileReviewed, 10, nil, func(s *surface) {
		r := s.do("m1", http.MethodPost, "/_msearch", "{}\n"+`{"size":3,"ext":{"wlmsim":{"service_time":"1s"}}}`+"\n{}\n"+`{"size":1}`+"\n{\"index\":\"gone\"}\n{}\n")
		var answer struct {
			Took      int
			Responses []struct {
				Status, Took int
				Hits         struct{ Hits []struct{} }
			}
		}
		r.decode(t, &answer)
		require.Len(t, answer.Responses, 3)
		require.Len(t, answer.Responses[0].Hits.Hits, 3)
		require.Len(t, answer.Responses[1].Hits.Hits, 1)
		require.Equal(t, []int{200, 200, 404}, []int{answer.Responses[0].Status, answer.Responses[1].Status, answer.Responses[2].Status})
		require.GreaterOrEqual(t, answer.Took, 1000)
		require.GreaterOrEqual(t, answer.Responses[0].Took, 1000)
		require.Less(t, answer.Responses[1].Took, 1000)
	})
}

// Case C14: a group that a rule points to is not deleted, and the refusal names
// the rule.
func TestAGroupThatRulesPointToIsNotDeleted(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileReviewed, 1, nil, func(s *surface) {
		rule := s.nodes["m1"].NewID()
		s.mustPropose("m1", &cluster.CreateRule{Rule: cluster.Rule{ID: rule, Description: "u1 goes to g", WorkloadGroup: s.group, Usernames: []string{"u1"}}})
		s.nodes["m1"].Coordinator().RefreshRules()
		ctx, none := s.lab.t.Context(), []string{"X-Opaque-Id", "x"}
		leaving, leave := context.WithCancel(ctx)
		held := make(chan reply, 1)
		go func() { held <- s.as(leaving, "u1", "m1", http.MethodPost, "/logs/_search", costs("1h"), none...) }()
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 1, s.held("m1", s.group))

		r := s.do("m1", http.MethodDelete, "/_wlm/workload_group/g", "")
		require.GreaterOrEqual(t, r.status, 400, r.body)
		require.Contains(t, r.body, rule, "the refusal names the rules")
		r = s.do("m1", http.MethodGet, "/_rules/workload_group", "")
		require.Equal(t, http.StatusOK, r.status)
		require.Contains(t, r.body, rule)
		require.Equal(t, http.StatusTooManyRequests, s.as(ctx, "u1", "m1", http.MethodPost, "/logs/_search", "", none...).status, "the group is still there")
		leave()
		<-held
		time.Sleep(time.Second)
		require.Zero(t, s.held("m1", s.group))

		require.Equal(t, http.StatusOK, s.do("m1", http.MethodDelete, "/_rules/workload_group/"+rule, "").status)
		require.Equal(t, http.StatusOK, s.do("m1", http.MethodDelete, "/_wlm/workload_group/g", "").status)
		require.Equal(t, http.StatusOK, s.as(ctx, "u1", "m1", http.MethodPost, "/logs/_search", "", none...).status, "the view of the rules is older: untagged")
		again := s.newGroup("g", cluster.ByGroup, 1)
		require.NotEqual(t, s.group, again)
		stats, err := s.nodes["m1"].Throttle().Stats([]string{again})
		require.NoError(t, err)
		require.Equal(t, wlm.GroupStats{ID: again}, stats[0], "its counters start at 0")
	})
}

// Case C15: every entry point without a tag and without a principal.
func TestRequestsThatSkipTagging(t *testing.T) {
	log := &lockedBuffer{}
	inLab(t, "m1 d1", func(c *node.Config) {
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}, func(l *lab) {
		l.index(2)
		l.awaitSame("m1", "d1")
		c := l.client()
		defer c.transport.CloseIdleConnections()
		ask := func(method, path, body string) string {
			status, text := c.ask(l.t.Context(), "m1", method, path, "", "", body)
			require.Equal(t, http.StatusOK, status, "%s %s: %s", method, path, text)
			return text
		}
		rounds := counts(20, 1000)
		for range rounds {
			ask(http.MethodPost, "/logs/_search", "")
			ask(http.MethodPost, "/logs/_count", "")
			var first struct {
				ID string `json:"_scroll_id"`
			}
			reply{body: ask(http.MethodPost, "/logs/_search?scroll=1m", "")}.decode(t, &first)
			ask(http.MethodPost, "/_search/scroll", `{"scroll_id":"`+first.ID+`"}`)
			ask(http.MethodDelete, "/_search/scroll", `{"scroll_id":"`+first.ID+`"}`)
			ask(http.MethodPost, "/logs/_msearch", "{}\n{}\n")
			ask(http.MethodPost, "/logs/_search", lookup)
		}
		completed := uint64(7 * rounds) // a scroll and its page, a search and the one in it
		for _, o := range l.nodes["m1"].Coordinator().Outcomes() {
			require.Equal(t, coordinator.GroupOutcomes{Group: cluster.DefaultGroupID, Completed: completed}, o)
		}
		var stats map[string]json.RawMessage
		reply{body: ask(http.MethodGet, "/_wlm/stats", "")}.decode(t, &stats)
		require.Contains(t, string(stats["_nodes"]), `"total":2,"successful":2`)
		require.Contains(t, stats, node.NewID(seedOf("d1")))
		require.Contains(t, string(stats[node.NewID(seedOf("m1"))]), cluster.DefaultGroupID)
	})
	require.LessOrEqual(t, strings.Count(log.String(), "level=WARN"), 1, "at most one warning: %s", log.String())
}

// WlmNodeThrottlingIT: what a second search in flight meets, and what is left.
func TestASecondSearchInFlightIsRefused(t *testing.T) {
	for _, profile := range []string{wlm.ProfileReviewed, wlm.ProfileUpstream} {
		t.Run(profile, func(t *testing.T) {
			inSurface(t, "m1 d1", profile, 1, nil, func(s *surface) {
				leave, first := s.start("m1", http.MethodPost, "/logs/_search", costs("10s"))
				defer leave()
				before := s.nodes["m1"].Coordinator().Running()
				r := s.do("m1", http.MethodPost, "/logs/_search", "")
				require.Equal(t, http.StatusTooManyRequests, r.status)
				require.Equal(t, uint64(1), s.throttledCount("m1", s.group))
				require.Equal(t, before, s.nodes["m1"].Coordinator().Running(), "the refused one is no search in flight")
				require.Equal(t, http.StatusOK, (<-first).status)
				require.Equal(t, http.StatusOK, s.do("m1", http.MethodPost, "/logs/_search", "").status)
				require.Zero(t, s.nodes["m1"].Coordinator().Running())
			})
		})
	}
}

// WlmNodeThrottlingIT: each user has a bucket.
func TestUsersHaveBucketsOverHTTP(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileUpstream, 1, nil, func(s *surface) {
		users := s.newGroup("users", cluster.ByUsername, 1)
		header := []string{"workloadGroupId", users}
		leave, first := s.start("m1", http.MethodPost, "/logs/_search", costs("10s"), header...)
		defer leave()
		r := s.do("m1", http.MethodPost, "/logs/_search", "", header...)
		require.Equal(t, http.StatusTooManyRequests, r.status)
		_, reason := r.failure(t)
		require.Contains(t, reason, "for username [alice]")
		require.Equal(t, http.StatusOK, s.as(s.lab.t.Context(), "bob", "m1", http.MethodPost, "/logs/_search", "", header...).status)
		require.Equal(t, http.StatusOK, (<-first).status)
	})
}

// page is what a client reads of a page.
type page struct {
	ID     string `json:"_scroll_id"`
	Point  string `json:"pit_id"`
	Shards struct {
		Total, Successful, Failed int
		Failures                  []struct{ Reason struct{ Type, Reason string } }
	} `json:"_shards"`
	Hits struct {
		Total struct{ Value int }
		Hits  []struct {
			ID string `json:"_id"`
		}
	}
	Phases int `json:"num_reduce_phases"`
}

func (p *page) ids() (ids []string) {
	for _, h := range p.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func (s *surface) page(t testing.TB, r reply) *page {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	p := &page{}
	r.decode(t, p)
	return p
}

// WlmNodeThrottlingIT: whether the next page of a scroll is charged is the
// profile's; a refused page can be asked for again, and comes.
func TestThePagesOfAScroll(t *testing.T) {
	for profile, charged := range map[string]bool{wlm.ProfileSubmitted: false, wlm.ProfileReviewed: false, wlm.ProfileUpstream: true} {
		t.Run(profile, func(t *testing.T) {
			inSurface(t, "m1 d1 d2", profile, 1, nil, func(s *surface) {
				whole := s.page(t, s.do("d1", http.MethodPost, "/logs/_search", `{"size":50}`)).ids()
				first := s.page(t, s.do("m1", http.MethodPost, "/logs/_search?scroll=1m", `{"size":10}`))
				got := first.ids()
				require.Equal(t, whole[:10], got)
				next := `{"scroll_id":"` + first.ID + `","scroll":"1m"}`

				leave, other := s.start("m1", http.MethodPost, "/logs/_search", costs("1h"))
				r := s.do("m1", http.MethodPost, "/_search/scroll", next)
				if charged {
					require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
					require.Equal(t, uint64(1), s.throttledCount("m1", s.group))
				} else {
					got = append(got, s.page(t, r).ids()...)
				}
				leave()
				<-other
				time.Sleep(time.Second)
				for turn := 0; len(got) < len(whole); turn++ { // any node goes on with it
					p := s.page(t, s.do([]string{"d1", "d2", "m1"}[turn%3], http.MethodGet, "/_search/scroll/"+first.ID+"?scroll=1m", ""))
					require.Equal(t, first.Hits.Total, p.Hits.Total)
					got = append(got, p.ids()...)
				}
				require.Equal(t, whole, got, "the pages are the search, each hit once")

				r = s.do("m1", http.MethodPost, "/_search/scroll", `{"scroll_id":"nonsense"}`)
				require.Equal(t, http.StatusBadRequest, r.status)
				_, reason := r.failure(t)
				require.Equal(t, "Cannot parse scroll id", reason)
				synctest.Wait()
				s.requireNoPermit()

				r = s.do("d2", http.MethodDelete, "/_search/scroll", `{"scroll_id":["`+first.ID+`"]}`)
				require.Equal(t, http.StatusOK, r.status)
				require.Equal(t, `{"succeeded":true,"num_freed":6}`, r.body)
				require.Equal(t, http.StatusNotFound, s.do("d2", http.MethodDelete, "/_search/scroll/"+first.ID, "").status)
				s.requireMissing(t, s.do("m1", http.MethodPost, "/_search/scroll", next))
			})
		})
	}
}

// requireMissing requires the answer to a context that is gone.
func (s *surface) requireMissing(t testing.TB, r reply) {
	t.Helper()
	require.Equal(t, http.StatusNotFound, r.status, r.body)
	kind, reason := r.failure(t)
	require.Equal(t, "search_phase_execution_exception: all shards failed", kind+": "+reason)
	require.Contains(t, r.body, `"type":"search_context_missing_exception","reason":"No search context found for id [`)
}

// A page is tagged by the indices that its scroll id names.
func TestAPageIsTaggedByItsIndices(t *testing.T) {
	inSurface(t, "m1", wlm.ProfileUpstream, 1, nil, func(s *surface) {
		s.mustPropose("m1", &cluster.CreateRule{Rule: cluster.Rule{ID: s.nodes["m1"].NewID(), Description: "logs", WorkloadGroup: s.group, IndexPatterns: []string{"lo*"}}})
		s.nodes["m1"].Coordinator().RefreshRules()
		none := []string{"X-Opaque-Id", "x"}
		for path, completed := range map[string]uint64{"/logs/_search?scroll=1m": 2, "/l*/_search?scroll=1m": 2} {
			first := s.page(t, s.do("m1", http.MethodPost, path, "", none...))
			s.page(t, s.do("m1", http.MethodPost, "/_search/scroll", `{"scroll_id":"`+first.ID+`"}`, none...))
			if path[:3] == "/l*" { // the expression as it was sent
				require.Equal(t, completed, s.outcomes("m1", cluster.DefaultGroupID).Completed)
			} else {
				require.Equal(t, completed, s.outcomes("m1", s.group).Completed)
			}
		}
		point := s.page(t, s.do("m1", http.MethodPost, "/l*/_search/point_in_time?keep_alive=1m", "", none...)).Point
		before := s.outcomes("m1", s.group).Completed
		s.page(t, s.do("m1", http.MethodPost, "/_search", `{"pit":{"id":"`+point+`"}}`, none...))
		require.Equal(t, before+1, s.outcomes("m1", s.group).Completed, "a point in time is of the indices that it holds")
	})
}

// Contexts are bounded in time and number, and the bounds are the cluster's
// settings.
func TestContextsAreBounded(t *testing.T) {
	inSurface(t, "m1 d1", wlm.ProfileReviewed, 100, nil, func(s *surface) {
		const open = "/logs/_search?scroll=1m"
		first := s.page(t, s.do("m1", http.MethodPost, open, ""))
		next := `{"scroll_id":"` + first.ID + `","scroll":"2m"}`
		time.Sleep(59 * time.Second)
		s.page(t, s.do("m1", http.MethodPost, "/_search/scroll", next))
		time.Sleep(119 * time.Second)
		s.page(t, s.do("m1", http.MethodPost, "/_search/scroll", `{"scroll_id":"`+first.ID+`"}`))
		time.Sleep(2 * time.Minute)
		s.requireMissing(t, s.do("m1", http.MethodPost, "/_search/scroll", next))

		r := s.do("m1", http.MethodPost, "/logs/_search?scroll=36h", "")
		require.Equal(t, http.StatusBadRequest, r.status, r.body)
		require.Contains(t, r.body, "Keep alive for request (1.5d) is too large. It must be less than (1d). This limit can be set by changing the [search.max_keep_alive] cluster level setting.")
		r = s.do("m1", http.MethodPost, "/logs/_search/point_in_time?keep_alive=25h", "")
		require.Equal(t, http.StatusBadRequest, r.status, r.body)
		require.Contains(t, r.body, "[point_in_time.max_keep_alive]")

		eight := "8"
		s.mustPropose("m1", &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{
			cluster.SettingMaxScrolls: &eight, cluster.SettingMaxPoints: &eight}}})
		s.awaitSame("m1", "d1")
		last := s.page(t, s.do("m1", http.MethodPost, open, "")).ID // six shards on d1, of eight that it may keep
		r = s.do("m1", http.MethodPost, open+"&allow_partial_search_results=false", "")
		require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
		const full = "Trying to create too many %s contexts. Must be less than or equal to: [8]. This limit can be set by changing the [%s] setting."
		require.Contains(t, r.body, fmt.Sprintf(full, "scroll", "search.max_open_scroll_context"))
		partial := s.page(t, s.do("m1", http.MethodPost, open, ""))
		require.Equal(t, 2, partial.Shards.Successful, "those of the refused search are free again")
		require.Equal(t, 4, partial.Shards.Failed)
		require.Equal(t, `{"succeeded":true,"num_freed":8}`, s.do("m1", http.MethodDelete, "/_search/scroll/_all", "").body)
		s.requireMissing(t, s.do("m1", http.MethodPost, "/_search/scroll", `{"scroll_id":"`+last+`"}`))
		s.page(t, s.do("m1", http.MethodPost, open, ""))
		time.Sleep(time.Minute)
		require.Equal(t, 6, s.page(t, s.do("m1", http.MethodPost, open, "")).Shards.Successful, "the others' time is over")

		s.page(t, s.do("m1", http.MethodPost, "/logs/_search/point_in_time?keep_alive=1m", ""))
		r = s.do("m1", http.MethodPost, "/logs/_search/point_in_time?keep_alive=1m&allow_partial_pit_creation=false", "")
		require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
		require.Contains(t, r.body, fmt.Sprintf(full, "Point In Time", "search.max_open_pit_context"))

		first = s.page(t, s.do("m1", http.MethodPost, "/logs/_search?scroll=1h", ""))
		s.crash("d1")
		s.startAgain("d1")
		s.requireMissing(t, s.do("m1", http.MethodPost, "/_search/scroll", `{"scroll_id":"`+first.ID+`"}`))
	})
}

// startAgain starts a node again and waits until the others reach it.
func (s *surface) startAgain(name string) {
	s.lab.start(name)
	s.awaitReady(name)
	for range int(patience / time.Second) {
		if s.do("m1", http.MethodPost, "/logs/_search", "").status == http.StatusOK {
			return
		}
		time.Sleep(time.Second)
	}
	require.Fail(s.lab.t, "the node is not reached")
}

// Points in time take no permit to open and to end; searches in them do.
func TestPointsInTime(t *testing.T) {
	inSurface(t, "m1 d1 d2", wlm.ProfileUpstream, 1, nil, func(s *surface) {
		whole := s.page(t, s.do("d1", http.MethodPost, "/logs/_search", `{"size":30}`)).ids()
		leave, other := s.start("m1", http.MethodPost, "/logs/_search", costs("1h"))
		var opened struct {
			ID      string `json:"pit_id"`
			Created int64  `json:"creation_time"`
		}
		began := time.Now().UnixMilli()
		r := s.do("m1", http.MethodPost, "/logs/_search/point_in_time?keep_alive=1m", "")
		require.Equal(t, http.StatusOK, r.status, r.body)
		r.decode(t, &opened)
		require.InDelta(t, began, opened.Created, 1000)
		in := func(more string) string { return `{"pit":{"id":"` + opened.ID + `"` + more + `},"size":15,"from":5}` }
		require.Equal(t, http.StatusTooManyRequests, s.do("m1", http.MethodPost, "/_search", in("")).status, "a search in it is charged")
		require.Zero(t, s.outcomes("d2", s.group).Completed)
		leave()
		<-other
		time.Sleep(time.Second)
		for range 2 {
			p := s.page(t, s.do("d2", http.MethodPost, "/_search", in(`,"keep_alive":"2m"`)))
			require.Equal(t, opened.ID, p.Point)
			require.Equal(t, whole[5:20], p.ids(), "it does not move")
		}
		time.Sleep(100 * time.Second)
		s.page(t, s.do("m1", http.MethodPost, "/_search", in("")))

		var list struct {
			Pits []struct {
				ID         string `json:"pit_id"`
				KeepAlive  int64  `json:"keep_alive"`
				Successful bool
			}
		}
		s.do("d1", http.MethodGet, "/_search/point_in_time/_all", "").decode(t, &list)
		require.Len(t, list.Pits, 1)
		require.Equal(t, opened.ID, list.Pits[0].ID)
		require.Equal(t, int64(120000), list.Pits[0].KeepAlive)

		r = s.do("d1", http.MethodDelete, "/_search/point_in_time", `{"pit_id":["`+opened.ID+`"]}`)
		require.Equal(t, `{"pits":[{"successful":true,"pit_id":"`+opened.ID+`"}]}`, r.body)
		s.requireMissing(t, s.do("m1", http.MethodPost, "/_search", in("")))
		s.page(t, s.do("m1", http.MethodPost, "/logs/_search/point_in_time?keep_alive=1m", ""))
		s.do("m1", http.MethodDelete, "/_search/point_in_time/_all", "").decode(t, &list)
		require.Len(t, list.Pits, 1)
		require.True(t, list.Pits[0].Successful)
		require.Equal(t, `{"pits":[]}`, s.do("m1", http.MethodGet, "/_search/point_in_time/_all", "").body)
	})
}

// listed is what a client reads of a list of tasks.
type listed struct {
	Tasks []struct {
		Node, Action, Description string
		ID                        uint64
		Cancelled                 bool
		Parent                    string            `json:"parent_task_id"`
		Headers                   map[string]string `json:"headers"`
	}
	Failures []json.RawMessage `json:"node_failures"`
}

func (s *surface) tasks(name, query string) (l listed) {
	r := s.do(name, http.MethodGet, "/_tasks?detailed&group_by=none"+query, "")
	require.Equal(s.lab.t, http.StatusOK, r.status, r.body)
	r.decode(s.lab.t, &l)
	return l
}

// A search that is cancelled by its task ends everywhere, with one outcome.
func TestASearchIsCancelledByItsTask(t *testing.T) {
	inSurface(t, "m1 d1 d2", wlm.ProfileReviewed, 1, nil, func(s *surface) {
		m1 := node.NewID(seedOf("m1"))
		leave, answer := s.start("m1", http.MethodPost, "/logs/_search", costs("1h"), "workloadGroupId", s.group, "X-Opaque-Id", "mine")
		defer leave()
		found := s.tasks("d2", "")
		require.Len(t, found.Tasks, 7, "the search and its six shards, on any node")
		var id string
		for _, x := range found.Tasks {
			require.Equal(t, map[string]string{"X-Opaque-Id": "mine"}, x.Headers)
			if x.Node == m1 {
				id = fmt.Sprintf("%s:%d", x.Node, x.ID)
				require.Equal(t, coordinator.ActionSearch, x.Action)
				require.Contains(t, x.Description, "indices[logs]")
			}
		}
		for _, x := range found.Tasks {
			if x.Node != m1 {
				require.Equal(t, id, x.Parent)
				require.Equal(t, "indices:data/read/search[phase/query]", x.Action)
				require.Contains(t, x.Description, "shardId[[logs][")
			}
		}
		require.Len(t, s.tasks("m1", "&parent_task_id="+id).Tasks, 6)
		require.Len(t, s.tasks("m1", "&nodes=m1").Tasks, 1)
		require.Empty(t, s.tasks("m1", "&actions=*msearch,*scroll").Tasks)

		r := s.do("d1", http.MethodPost, "/_tasks/"+id+"/_cancel?wait_for_completion", "")
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Contains(t, r.body, `"cancelled":true`)
		ended := <-answer
		require.Equal(t, http.StatusInternalServerError, ended.status)
		kind, reason := ended.failure(t)
		require.Equal(t, "task_cancelled_exception: cancelled task with reason: by user request", kind+": "+reason)
		time.Sleep(time.Second)
		require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Cancelled: 1}, s.outcomes("m1", s.group))
		s.requireNoPermit()
		for name, n := range s.nodes {
			require.Zero(t, n.Data().Stats().Active, "node %s works on", name)
		}
		require.Empty(t, s.tasks("m1", "").Tasks)
		require.Equal(t, http.StatusNotFound, s.do("m1", http.MethodGet, "/_tasks/"+id, "").status)
		require.Contains(t, s.do("m1", http.MethodPost, "/_tasks/"+id+"/_cancel", "").body, "task ["+id+"] is not found")
	})
}

// A multi-search is the parent of its searches, and they end with it.
func TestAMultiSearchIsTheParentOfItsSearches(t *testing.T) {
	inSurface(t, "m1 d1", wlm.ProfileReviewed, 9, nil, func(s *surface) {
		leave, answer := s.start("m1", http.MethodPost, "/logs/_msearch?max_concurrent_searches=2", strings.Repeat("{}\n"+costs("1h")+"\n", 3))
		defer leave()
		require.Equal(t, 2, s.held("m1", s.group))
		multi := s.tasks("d1", "&actions="+coordinator.ActionMultiSearch).Tasks
		require.Len(t, multi, 1)
		require.Equal(t, "requests[3]", multi[0].Description)
		id := fmt.Sprintf("%s:%d", multi[0].Node, multi[0].ID)
		require.Len(t, s.tasks("d1", "&parent_task_id="+id).Tasks, 2, "two run, the third waits")

		require.Equal(t, http.StatusOK, s.do("d1", http.MethodPost, "/_tasks/_cancel?actions=*msearch", "").status)
		r := <-answer
		require.Equal(t, http.StatusInternalServerError, r.status, r.body)
		kind, _ := r.failure(t)
		require.Equal(t, "task_cancelled_exception", kind)
		require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Cancelled: 3}, s.outcomes("m1", s.group))
	})
}

// One shard of a search can be cancelled alone; those of its node go with it,
// since they are one request.
func TestAShardsTaskIsCancelledAlone(t *testing.T) {
	inSurface(t, "m1 d1 d2", wlm.ProfileReviewed, 9, nil, func(s *surface) {
		leave, answer := s.start("m1", http.MethodPost, "/logs/_search", costs("10s"))
		defer leave()
		shards := s.tasks("m1", "&nodes=d1").Tasks
		require.Len(t, shards, 3)
		id := fmt.Sprintf("%s:%d", shards[1].Node, shards[1].ID)
		require.Equal(t, http.StatusOK, s.do("m1", http.MethodPost, "/_tasks/"+id+"/_cancel", "").status)
		p := s.page(t, <-answer)
		require.Equal(t, 3, p.Shards.Failed)
		require.Contains(t, p.Shards.Failures[0].Reason.Type, "task_cancelled_exception")
		require.Equal(t, coordinator.GroupOutcomes{Group: s.group, Completed: 1}, s.outcomes("m1", s.group))
	})
}

// Section 1.9: a request goes before its group, unless the group overrides, and
// the group before the cluster.
func TestTheSettingsOfAGroup(t *testing.T) {
	inSurface(t, "m1 d1", wlm.ProfileReviewed, 9, nil, func(s *surface) {
		set := func(pairs ...string) {
			patch := cluster.SettingsPatch{Clear: true}
			s.mustPropose("m1", &cluster.UpdateGroup{Name: "g", Settings: patch})
			patch = cluster.SettingsPatch{Set: map[string]*string{}}
			for i := 0; i < len(pairs); i += 2 {
				patch.Set[pairs[i]] = &pairs[i+1]
			}
			s.mustPropose("m1", &cluster.UpdateGroup{Name: "g", Settings: patch})
			s.awaitSame("m1", "d1")
		}
		configure := func(key, value string) {
			s.mustPropose("m1", &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{key: &value}}})
		}
		took := func(query, service string) (time.Duration, reply) {
			begun := time.Now()
			r := s.do("m1", http.MethodPost, "/logs/_search?size=0"+query, costs(service))
			return time.Since(begun).Truncate(time.Second), r
		}
		ends := func(want time.Duration, query string) {
			s.lab.t.Helper()
			d, r := took(query, "1m")
			require.Equal(s.lab.t, want, d, r.body)
		}
		const yes = "override_request_values"
		configure("search.default_search_timeout", "20s")
		ends(20*time.Second, "")
		set("search.default_search_timeout", "10s")
		ends(10*time.Second, "")
		ends(30*time.Second, "&timeout=30s")
		set("search.default_search_timeout", "10s", yes, "true")
		ends(10*time.Second, "&timeout=30s")
		set()
		configure("search.default_search_timeout", "-1")
		ends(time.Minute, "&max_concurrent_shard_requests=6")

		cancelled := func(want time.Duration, query string) {
			s.lab.t.Helper()
			d, r := took(query, "1m")
			require.Equal(s.lab.t, want, d, r.body)
			require.Contains(s.lab.t, r.body, "cancelled task with reason: Cancellation timeout of ["+cluster.FormatTime(want)+"] is expired")
		}
		before := s.outcomes("m1", s.group).Cancelled
		configure("search.cancel_after_time_interval", "20s")
		cancelled(20*time.Second, "")
		set("search.cancel_after_time_interval", "10s")
		cancelled(10*time.Second, "")
		cancelled(30*time.Second, "&cancel_after_time_interval=30s")
		set("search.cancel_after_time_interval", "10s", yes, "true")
		cancelled(10*time.Second, "&cancel_after_time_interval=30s")
		require.Equal(t, before+4, s.outcomes("m1", s.group).Cancelled)
		set()
		configure("search.cancel_after_time_interval", "-1")

		// Six shards on one node: one after the other, two, three or all at a time, five unless told.
		served := func(want time.Duration, query string) {
			s.lab.t.Helper()
			d, r := took(query, "10s")
			require.Equal(s.lab.t, http.StatusOK, r.status)
			require.Equal(s.lab.t, want, d)
		}
		served(20*time.Second, "") // five, then the sixth
		served(10*time.Second, "&max_concurrent_shard_requests=6")
		served(60*time.Second, "&max_concurrent_shard_requests=1")
		set("search.max_concurrent_shard_requests", "2")
		served(30*time.Second, "")
		served(20*time.Second, "&max_concurrent_shard_requests=3")
		set("search.max_concurrent_shard_requests", "2", yes, "true")
		served(30*time.Second, "&max_concurrent_shard_requests=3")

		phases := func(want int, query string) {
			s.lab.t.Helper()
			_, r := took(query, "0s")
			require.Equal(s.lab.t, want, s.page(s.lab.t, r).Phases)
		}
		set()
		phases(0, "")
		phases(2, "&batched_reduce_size=5")
		set("search.batched_reduce_size", "2")
		phases(5, "")
		set("search.batched_reduce_size", "2", yes, "true")
		phases(5, "&batched_reduce_size=5")
		set("search.max_buckets", "1") // no aggregations, no buckets: no effect
		phases(0, "")
	})
}

// Preference and routing choose shards; what they leave out is not asked for.
func TestPreferenceAndRoutingChooseShards(t *testing.T) {
	inSurface(t, "m1 d1 d2", wlm.ProfileReviewed, 9, nil, func(s *surface) {
		search := func(query string) reply { return s.do("d1", http.MethodPost, "/logs/_search"+query, "") }
		shards := func(query string) [3]int {
			p := s.page(t, search(query))
			return [3]int{p.Shards.Total, p.Shards.Successful, p.Shards.Failed}
		}
		require.Equal(t, [3]int{6, 6, 0}, shards(""))
		require.Equal(t, [3]int{2, 2, 0}, shards("?preference=_shards:0,4"))
		require.Equal(t, [3]int{6, 6, 0}, shards("?preference=my-session"))
		require.Equal(t, [3]int{6, 6, 0}, shards("?preference=_prefer_nodes:d2"))
		require.Equal(t, [3]int{6, 3, 3}, shards("?preference=_only_local"))
		require.Equal(t, [3]int{1, 1, 0}, shards("?preference=_shards:1%7C_only_nodes:d2"))
		require.Equal(t, http.StatusServiceUnavailable, search("?preference=_replica").status)
		r := search("?preference=_only_nodes:d2")
		require.Equal(t, http.StatusBadRequest, r.status)
		require.Contains(t, r.body, "no data nodes with criteria [d2] found for shard: [logs][0]")
		require.Equal(t, [3]int{1, 1, 0}, shards("?routing=alice"))
		require.Equal(t, [3]int{0, 0, 0}, shards("?preference=_shards:9"))
		one := s.do("d1", http.MethodPost, "/logs/_count?routing=alice", "")
		require.Contains(t, one.body, `"_shards":{"total":1,`)
		var counted struct{ Count, Total int }
		sum := 0
		for i := range 6 {
			s.do("d1", http.MethodPost, fmt.Sprintf("/logs/_count?preference=_shards:%d", i), "").decode(t, &counted)
			sum += counted.Count
		}
		s.do("d1", http.MethodPost, "/logs/_count", "").decode(t, &counted)
		require.Equal(t, counted.Count, sum)
	})
}
