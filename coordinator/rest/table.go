package rest

import "net/http"

type methods = map[string]func(*call) error

// table lists the routes. The order of a route's methods has no meaning.
func (h *Handler) table() []*route {
	searching := methods{http.MethodGet: (*call).runSearch, http.MethodPost: (*call).runSearch}
	counting := methods{http.MethodGet: (*call).runCount, http.MethodPost: (*call).runCount}
	stats := methods{http.MethodGet: (*call).groupStats}
	searchParams := []string{"q", "from", "size", "timeout", "allow_partial_search_results", "track_total_hits", "rest_total_hits_as_int", "typed_keys"}
	return []*route{
		on("/", methods{http.MethodGet: (*call).info, http.MethodHead: (*call).info}),
		on("/_search", searching, searchParams...),
		on("/{index}/_search", searching, searchParams...),
		on("/_count", counting, "q"),
		on("/{index}/_count", counting, "q"),
		on("/{index}", methods{
			http.MethodGet: (*call).getIndex, http.MethodHead: (*call).headIndex,
			http.MethodPut: (*call).createIndex, http.MethodDelete: (*call).deleteIndex,
		}),
		on("/_wlm/workload_group", methods{http.MethodGet: (*call).listGroups, http.MethodPut: (*call).createGroup, http.MethodPost: (*call).createGroup}, "local"),
		on("/_wlm/workload_group/{name}", methods{
			http.MethodGet: (*call).getGroup, http.MethodPut: (*call).updateGroup,
			http.MethodPost: (*call).updateGroup, http.MethodDelete: (*call).deleteGroup,
		}, "local"),
		on("/_wlm/stats", stats),
		on("/_wlm/stats/{group}", stats),
		on("/_wlm/{node}/stats", stats),
		on("/_wlm/{node}/stats/{group}", stats),
		on("/_rules/workload_group", methods{http.MethodGet: (*call).listRules, http.MethodPut: (*call).createRule},
			"search_after", "workload_group", attributeIndex, attributeUsername, attributeRole),
		on("/_rules/workload_group/{id}", methods{http.MethodGet: (*call).getRule, http.MethodPut: (*call).updateRule, http.MethodDelete: (*call).deleteRule}),
		on("/_cluster/health", methods{http.MethodGet: (*call).health}, "wait_for_status", "wait_for_nodes", "timeout", "local"),
		on("/_cluster/settings", methods{http.MethodGet: (*call).getSettings, http.MethodPut: (*call).putSettings}, "flat_settings", "include_defaults"),
		on("/_nodes", methods{http.MethodGet: (*call).nodes}),
		on("/_nodes/http", methods{http.MethodGet: (*call).nodes}),
		on("/_cat/nodes", methods{http.MethodGet: (*call).catNodes}, catParams...),
		on("/_cat/shards", methods{http.MethodGet: (*call).catShards}, catParams...),
		on("/_wlmsim/state", methods{http.MethodGet: (*call).state}),
		on("/_wlmsim/metrics", methods{http.MethodGet: (*call).showMetrics}),
		on("/_wlmsim/holds", methods{http.MethodGet: (*call).listHolds}),
		on("/_wlmsim/holds/{step}", methods{http.MethodGet: (*call).getHold, http.MethodPut: (*call).hold, http.MethodDelete: (*call).release}),
	}
}
