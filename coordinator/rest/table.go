package rest

import "net/http"

type methods = map[string]func(*call) error

// table lists the routes. The order of a route's methods has no meaning.
func (h *Handler) table() []*route {
	searching := methods{http.MethodGet: (*call).runSearch, http.MethodPost: (*call).runSearch}
	counting := methods{http.MethodGet: (*call).runCount, http.MethodPost: (*call).runCount}
	stats, listing := methods{http.MethodGet: (*call).groupStats}, methods{http.MethodGet: (*call).listStats}
	nodes, nodeStats := methods{http.MethodGet: (*call).nodes}, methods{http.MethodGet: (*call).nodeStats}
	indices, shards, managers := methods{http.MethodGet: (*call).catIndices}, methods{http.MethodGet: (*call).catShards}, methods{http.MethodGet: (*call).catManager}
	listParams := append([]string{"v"}, pageParams...)
	clusterState := methods{http.MethodGet: (*call).clusterState}
	indexParams := []string{"ignore_unavailable", "allow_no_indices", "expand_wildcards"}
	countParams := append([]string{"q", "preference", "routing"}, indexParams...)
	stateParams := append([]string{"local", "flat_settings", "cluster_manager_timeout", "master_timeout"}, indexParams...)
	pointParams := append([]string{"keep_alive", "allow_partial_pit_creation", "preference", "routing"}, indexParams...)
	searchParams := append([]string{"q", "from", "size", "timeout", "allow_partial_search_results", "track_total_hits", "rest_total_hits_as_int", "typed_keys",
		"scroll", "preference", "routing", "search_type", "cancel_after_time_interval", "max_concurrent_shard_requests", "batched_reduce_size"}, indexParams...)
	multi := methods{http.MethodGet: (*call).runMultiSearch, http.MethodPost: (*call).runMultiSearch}
	multiParams := append([]string{"max_concurrent_searches", "rest_total_hits_as_int", "typed_keys"}, indexParams...)
	scrolling := methods{http.MethodGet: (*call).nextPage, http.MethodPost: (*call).nextPage, http.MethodDelete: (*call).clearScroll}
	scrollParams := []string{"scroll", "scroll_id", "rest_total_hits_as_int"}
	taskParams := []string{"actions", "nodes", "parent_task_id", "group_by", "timeout"}
	routes := []*route{
		on("/", methods{http.MethodGet: (*call).info, http.MethodHead: (*call).info}),
		on("/_search", searching, searchParams...),
		on("/{index}/_search", searching, searchParams...),
		on("/_count", counting, countParams...),
		on("/{index}/_count", counting, countParams...),
		on("/_msearch", multi, multiParams...),
		on("/{index}/_msearch", multi, multiParams...),
		on("/_search/scroll", scrolling, scrollParams...),
		on("/_search/scroll/{scroll_id}", scrolling, scrollParams...),
		on("/{index}/_search/point_in_time", methods{http.MethodPost: (*call).openPoint}, pointParams...),
		on("/_search/point_in_time", methods{http.MethodDelete: (*call).freePoints}),
		on("/_search/point_in_time/_all", methods{http.MethodGet: (*call).listPoints, http.MethodDelete: (*call).freeEveryPoint}),
		on("/_tasks", methods{http.MethodGet: (*call).listTasks}, append([]string{"detailed"}, taskParams...)...),
		on("/_tasks/_cancel", methods{http.MethodPost: (*call).cancelTasks}, append([]string{"wait_for_completion"}, taskParams...)...),
		on("/_tasks/{task}", methods{http.MethodGet: (*call).getTask}, "wait_for_completion", "timeout"),
		on("/_tasks/{task}/_cancel", methods{http.MethodPost: (*call).cancelTask}, "wait_for_completion", "timeout"),
		on("/{index}", methods{
			http.MethodGet: (*call).getIndex, http.MethodHead: (*call).headIndex,
			http.MethodPut: (*call).createIndex, http.MethodDelete: (*call).deleteIndex,
		}),
		on("/_wlm/workload_group", methods{http.MethodGet: (*call).listGroups, http.MethodPut: (*call).createGroup, http.MethodPost: (*call).createGroup}, "local"),
		on("/_wlm/workload_group/{name}", methods{
			http.MethodGet: (*call).getGroup, http.MethodPut: (*call).updateGroup,
			http.MethodPost: (*call).updateGroup, http.MethodDelete: (*call).deleteGroup,
		}, "local"),
		on("/_wlm/stats", stats, pageParams...),
		on("/_wlm/stats/{group}", stats, pageParams...),
		on("/_wlm/{node}/stats", stats, pageParams...),
		on("/_wlm/{node}/stats/{group}", stats, pageParams...),
		on("/_list/wlm_stats", listing, listParams...),
		on("/_list/wlm_stats/stats/{group}", listing, listParams...),
		on("/_list/wlm_stats/{node}/stats", listing, listParams...),
		on("/_list/wlm_stats/{node}/stats/{group}", listing, listParams...),
		on("/_rules/workload_group", methods{http.MethodGet: (*call).listRules, http.MethodPut: (*call).createRule},
			"search_after", "workload_group", attributeIndex, attributeUsername, attributeRole),
		on("/_rules/workload_group/{id}", methods{http.MethodGet: (*call).getRule, http.MethodPut: (*call).updateRule, http.MethodDelete: (*call).deleteRule}),
		on("/_cluster/health", methods{http.MethodGet: (*call).health}, "wait_for_status", "wait_for_nodes", "timeout", "local"),
		on("/_cluster/state", clusterState, stateParams...),
		on("/_cluster/state/{metric}", clusterState, stateParams...),
		on("/_cluster/state/{metric}/{index}", clusterState, stateParams...),
		on("/_cluster/settings", methods{http.MethodGet: (*call).getSettings, http.MethodPut: (*call).putSettings}, "flat_settings", "include_defaults", "timeout", "cluster_manager_timeout", "master_timeout", "local"),
		on("/_nodes", nodes, "flat_settings", "timeout"),
		on("/_nodes/{node}", nodes, "flat_settings", "timeout"),
		on("/_nodes/{node}/{metric}", nodes, "flat_settings", "timeout"),
		on("/_nodes/stats", nodeStats, "timeout"),
		on("/_nodes/stats/{metric}", nodeStats, "timeout"),
		on("/_nodes/{node}/stats", nodeStats, "timeout"),
		on("/_nodes/{node}/stats/{metric}", nodeStats, "timeout"),
		on("/_cat/nodes", methods{http.MethodGet: (*call).catNodes}, append([]string{"full_id"}, catParams...)...),
		on("/_cat/indices", indices, catParams...),
		on("/_cat/indices/{index}", indices, catParams...),
		on("/_cat/shards", shards, catParams...),
		on("/_cat/shards/{index}", shards, catParams...),
		on("/_cat/health", methods{http.MethodGet: (*call).catHealth}, append([]string{"ts"}, catParams...)...),
		on("/_cat/cluster_manager", managers, catParams...),
		on("/_cat/master", managers, catParams...),
		on("/_wlmsim/state", methods{http.MethodGet: (*call).state}),
		on("/_wlmsim/metrics", methods{http.MethodGet: (*call).showMetrics}),
		on("/_wlmsim/holds", methods{http.MethodGet: (*call).listHolds}),
		on("/_wlmsim/holds/{step}", methods{http.MethodGet: (*call).getHold, http.MethodPut: (*call).hold, http.MethodDelete: (*call).release}),
	}
	if h.config.QueryGroupAlias {
		routes = append(routes, oldRoutes()...)
	}
	return routes
}
