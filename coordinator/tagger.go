package coordinator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// rules is a compiled view of one state's rules. It is immutable.
type rules struct {
	version  uint64 // of the state it was taken from
	all      []*cluster.Rule
	byUser   map[string][]*rule
	byRole   map[string][]*rule // rules without usernames
	byPrefix map[string][]*rule // rules without principals
	lengths  []int              // of the prefixes in byPrefix, falling
}

// rule is a rule with its patterns' prefixes.
type rule struct {
	*cluster.Rule
	prefixes []string
}

// refresh returns the view of a state. v, which may be nil, is not changed.
func (v *rules) refresh(state *cluster.State) *rules {
	if v == nil || !slices.Equal(v.all, state.Rules()) {
		return compile(state)
	}
	same := *v
	same.version = state.Version()
	return &same
}

func compile(state *cluster.State) *rules {
	v := &rules{version: state.Version(), all: state.Rules()}
	if len(v.all) == 0 {
		return v
	}
	v.byUser, v.byRole, v.byPrefix = map[string][]*rule{}, map[string][]*rule{}, map[string][]*rule{}
	for _, r := range v.all {
		v.add(&rule{Rule: r, prefixes: prefixesOf(r.IndexPatterns)})
	}
	for prefix := range v.byPrefix {
		v.lengths = append(v.lengths, len(prefix))
	}
	slices.Sort(v.lengths)
	v.lengths = slices.Compact(v.lengths)
	slices.Reverse(v.lengths)
	return v
}

// add enters a rule under the one attribute by which it is looked up.
func (v *rules) add(r *rule) {
	keys, values := v.byPrefix, r.prefixes
	switch {
	case len(r.Usernames) > 0:
		keys, values = v.byUser, r.Usernames
	case len(r.Roles) > 0:
		keys, values = v.byRole, r.Roles
	}
	for i, value := range values {
		if !slices.Contains(values[:i], value) {
			keys[value] = append(keys[value], r)
		}
	}
}

// prefixesOf drops the '*' of patterns, as OpenSearch does.
func prefixesOf(patterns []string) []string {
	prefixes := make([]string, len(patterns))
	for i, p := range patterns {
		prefixes[i] = strings.ReplaceAll(p, "*", "")
	}
	return prefixes
}

// tag returns the id of the group that the rules give a request, or "".
func (v *rules) tag(principal wlm.Principal, index string) string {
	if len(v.all) == 0 {
		return ""
	}
	var expressions []string
	if index != "" {
		expressions = strings.Split(index, ",")
	}
	var found contenders
	for _, r := range v.byUser[principal.User] {
		found.consider(r, principal, expressions)
	}
	for _, role := range principal.Roles {
		for _, r := range v.byRole[role] {
			found.consider(r, principal, expressions)
		}
	}
	if len(expressions) > 0 {
		for _, n := range v.lengths {
			if n <= len(expressions[0]) {
				for _, r := range v.byPrefix[expressions[0][:n]] {
					found.consider(r, principal, expressions)
				}
			}
		}
	}
	return found.winner()
}

// contender is a group that some rule gives the request.
type contender struct {
	group  string
	prefix int // length of the longest prefix plus one; 0: no index_pattern matched
	user   bool
	role   bool
}

// contenders are distinct groups.
type contenders []contender

// consider enters the group of a rule if the rule applies.
func (c *contenders) consider(r *rule, principal wlm.Principal, expressions []string) {
	user, role, prefix := len(r.Usernames) > 0, len(r.Roles) > 0, 0
	if user && (principal.User == "" || !slices.Contains(r.Usernames, principal.User)) {
		return
	}
	if role && !slices.ContainsFunc(principal.Roles, func(token string) bool { return slices.Contains(r.Roles, token) }) {
		return
	}
	if len(r.prefixes) > 0 {
		if prefix = commonPrefix(r.prefixes, expressions); prefix == 0 {
			return
		}
	}
	i := slices.IndexFunc(*c, func(other contender) bool { return other.group == r.WorkloadGroup })
	if i < 0 {
		*c = append(*c, contender{group: r.WorkloadGroup})
		i = len(*c) - 1
	}
	g := &(*c)[i]
	g.user, g.role, g.prefix = g.user || user, g.role || role, max(g.prefix, prefix)
}

// commonPrefix returns one more than the length of the prefix by which every
// expression matches, the shortest of the longest ones; 0 if one matches none.
func commonPrefix(prefixes, expressions []string) int {
	least := 0
	for _, expression := range expressions {
		longest := 0
		for _, prefix := range prefixes {
			if strings.HasPrefix(expression, prefix) {
				longest = max(longest, len(prefix)+1)
			}
		}
		if longest == 0 {
			return 0
		}
		if least == 0 || longest < least {
			least = longest
		}
	}
	return least
}

// compare orders contenders by the policy in doc.go. A group that all
// attributes agree on, the intersection of their sets, comes out on top without
// being asked for: it lacks no attribute that another contender has.
func (a contender) compare(b contender) int {
	return cmp.Or(compareBool(a.user, b.user), compareBool(a.role, b.role), cmp.Compare(a.prefix, b.prefix))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// winner returns the one group that is above all others, or "".
func (c contenders) winner() string {
	if len(c) == 0 {
		return ""
	}
	best := slices.MaxFunc(c, contender.compare)
	for _, other := range c {
		if other.group != best.group && other.compare(best) == 0 {
			return ""
		}
	}
	return best.group
}
