package wlm

import "github.com/wlmsim/wlmsim/cluster"

// GroupHeaderName is the name of the header that carries a search's group: from
// clients that choose it, to every message that the search causes, and so to
// the searches that it starts.
const GroupHeaderName = "workloadGroupId"

// Tag returns the group of a search whose header names outer and to which the
// rules give tagged, either of which may be "". Under group_header: put_once it
// is an error that a search has both, even if they are equal, since the filter
// that tags must not put the header again.
func (t *Throttle) Tag(outer, tagged string) (groupID string, err error) {
	switch {
	case outer == "":
		return tagged, nil
	case tagged == "":
		return outer, nil
	}
	return t.tags.both(outer)
}

// tagging says which group a search has whose header the rules would put again.
type tagging interface {
	both(outer string) (string, error)
}

func newTagging(s GroupHeader) tagging {
	if s == HeaderKeepsOuter {
		return keepsOuter{}
	}
	return putOnce{}
}

type putOnce struct{}

func (putOnce) both(string) (string, error) {
	return "", cluster.Errorf(cluster.IllegalArgument, "value for key [%s] already present", GroupHeaderName)
}

type keepsOuter struct{}

func (keepsOuter) both(outer string) (string, error) { return outer, nil }
