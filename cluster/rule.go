package cluster

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Bounds on a rule, as in OpenSearch.
const (
	MaxRuleDescription = 256 // UTF-16 code units
	MaxAttributeValues = 10  // values of one attribute
	MaxAttributeLength = 100 // UTF-16 code units of one value
	attributeIndex     = "index_pattern"
	attributeUsername  = "principal.username"
	attributeRole      = "principal.role"
)

// Rule tags searches with a workload group. Rules stand in the State in place
// of OpenSearch's rule index. A *Rule taken from a State must not be changed.
type Rule struct {
	ID            string   `json:"id"`
	Description   string   `json:"description"`
	WorkloadGroup string   `json:"workload_group"` // the group's id
	IndexPatterns []string `json:"index_pattern,omitzero"`
	Usernames     []string `json:"principal.username,omitzero"`
	Roles         []string `json:"principal.role,omitzero"`
	UpdatedAt     int64    `json:"updated_at"` // epoch milliseconds
}

// Check returns what is wrong with a rule that a client wants to write, with
// OpenSearch's messages, or nil. Several are numbered from the second on, as
// OpenSearch's list of validation errors goes on: "a;2: b".
func (r *Rule) Check() error {
	faults := r.faults()
	if len(faults) == 0 {
		return nil
	}
	reason := faults[0]
	for i, fault := range faults[1:] {
		reason += fmt.Sprintf(";%d: %s", i+2, fault)
	}
	return Errorf(Validation, "%s", reason)
}

// faults lists everything that is wrong with a rule.
func (r *Rule) faults() []string {
	var faults []string
	switch n := len(utf16.Encode([]rune(r.Description))); {
	case n == 0:
		faults = append(faults, "Rule description can't be null or empty")
	case n > MaxRuleDescription:
		faults = append(faults, fmt.Sprintf("Rule description cannot exceed %d characters.", MaxRuleDescription))
	}
	if r.WorkloadGroup == "" {
		faults = append(faults, "Rule featureValue can't be null or empty")
	}
	if r.IndexPatterns == nil && r.Usernames == nil && r.Roles == nil {
		faults = append(faults, "Rule should have at least 1 attribute requirement")
	}
	for _, a := range r.attributes() {
		faults = append(faults, a.faults()...)
	}
	return faults
}

type attribute struct {
	name   string
	values []string
}

func (r *Rule) attributes() []attribute {
	return []attribute{{attributeIndex, r.IndexPatterns}, {attributeUsername, r.Usernames}, {attributeRole, r.Roles}}
}

func (a attribute) faults() []string {
	switch n := len(a.values); {
	case a.values != nil && n == 0:
		return []string{fmt.Sprintf("Attribute values for %s cannot be empty.", a.name)}
	case n > MaxAttributeValues:
		return []string{fmt.Sprintf("Each attribute can only have a maximum of %d values. The input attribute %s has length %d, which exceeds this limit.", MaxAttributeValues, a.name, n)}
	}
	var faults []string
	for _, v := range a.values {
		if strings.TrimSpace(v) == "" || len(utf16.Encode([]rune(v))) > MaxAttributeLength {
			faults = append(faults, fmt.Sprintf("Attribute value [%s] is invalid (empty or exceeds %d characters)", v, MaxAttributeLength))
		}
	}
	return faults
}

// sameRequirements says whether two rules ask for the same attributes, in any
// order of their values. It allocates nothing: a create asks every rule.
func (r *Rule) sameRequirements(other *Rule) bool {
	return sameSet(r.IndexPatterns, other.IndexPatterns) && sameSet(r.Usernames, other.Usernames) && sameSet(r.Roles, other.Roles)
}

func sameSet(a, b []string) bool { return within(a, b) && within(b, a) }

func within(a, b []string) bool {
	for _, v := range a {
		if !slices.Contains(b, v) {
			return false
		}
	}
	return true
}

func (r *Rule) clone() *Rule {
	c := *r
	c.IndexPatterns, c.Usernames, c.Roles = slices.Clone(r.IndexPatterns), slices.Clone(r.Usernames), slices.Clone(r.Roles)
	return &c
}
