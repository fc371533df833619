package coordinator

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster/task"
)

// Names of the actions that tasks are listed under, as OpenSearch's. A count is
// a search there.
const (
	ActionSearch      = "indices:data/read/search"
	ActionMultiSearch = "indices:data/read/msearch"
	ActionScroll      = "indices:data/read/scroll"
	ActionClearScroll = "indices:data/read/scroll/clear"
	ActionOpenPoint   = "indices:data/read/point_in_time/create"
	ActionFreePoints  = "indices:data/read/point_in_time/delete"
	ActionListPoints  = "indices:data/read/point_in_time/readall"
)

// begin lists the search as a task, whose parent is the task that ctx belongs
// to. Until it is admitted a search waits for nothing that could be cancelled,
// and one that is refused costs no entry.
func (s *search) begin(ctx context.Context) context.Context {
	spec := task.Spec{Action: ActionSearch, Parent: task.From(ctx), OpaqueID: s.request.OpaqueID, Describe: s.describe}
	if s.request.ScrollID != "" {
		spec.Action = ActionScroll
	}
	ctx, s.task = s.c.config.Tasks.Begin(ctx, spec)
	return ctx
}

// maxDescription bounds what a description repeats of a query, in bytes.
const maxDescription = 1024

func (s *search) describe(int) string {
	if s.request.ScrollID != "" {
		return "scrollId[" + shorten(s.request.ScrollID) + "]"
	}
	return "indices[" + s.request.Index + "], search_type[QUERY_THEN_FETCH], source[{\"query\":" + shorten(string(s.request.Query)) + "}]"
}

func shorten(text string) string {
	if len(text) > maxDescription {
		return text[:maxDescription] + "..."
	}
	return text
}
