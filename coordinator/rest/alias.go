package rest

import (
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// What OpenSearch before 3.0 called things, see [Config.QueryGroupAlias].
const (
	// HeaderQueryGroup is the old name of [HeaderGroup].
	HeaderQueryGroup = "queryGroupId"

	canonicalQueryGroup = "Querygroupid" // as net/http stores HeaderQueryGroup
	oldDefaultGroupID   = "DEFAULT_QUERY_GROUP"
)

// oldRoutes are the paths of workload groups under their old name.
func oldRoutes() []*route {
	return []*route{
		on("/_wlm/query_group", methods{"GET": old((*call).listGroups), "PUT": (*call).createGroup, "POST": (*call).createGroup}, "local"),
		on("/_wlm/query_group/{name}", methods{
			"GET": old((*call).getGroup), "PUT": (*call).updateGroup, "POST": (*call).updateGroup, "DELETE": (*call).deleteGroup,
		}, "local"),
	}
}

// old has a handler call the groups in its answer by their old name.
func old(handler func(*call) error) func(*call) error {
	return func(c *call) error {
		c.groupsKey = "query_groups"
		return handler(c)
	}
}

// oldGroupID returns the id that a group had under the old name.
func oldGroupID(id string) string {
	if id == cluster.DefaultGroupID {
		return oldDefaultGroupID
	}
	return id
}

// newGroupIDs returns ids with the default group's as it is now.
func newGroupIDs(ids []string) []string {
	ids = slices.Clone(ids)
	for i, id := range ids {
		if id == oldDefaultGroupID {
			ids[i] = cluster.DefaultGroupID
		}
	}
	return ids
}

// newSetting returns the key that a setting has now.
func newSetting(key string) string {
	for _, prefix := range []string{"wlm.", "node."} {
		if rest, cut := strings.CutPrefix(key, prefix+"query_group."); cut {
			return prefix + "workload_group." + rest
		}
	}
	return key
}
