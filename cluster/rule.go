package cluster

import (
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
// OpenSearch's message, or nil.
func (r *Rule) Check() error {
	switch n := len(utf16.Encode([]rune(r.Description))); {
	case n == 0:
		return Errorf(Validation, "Rule description can't be null or empty")
	case n > MaxRuleDescription:
		return Errorf(Validation, "Rule description cannot exceed %d characters.", MaxRuleDescription)
	case r.WorkloadGroup == "":
		return Errorf(Validation, "Rule featureValue can't be null or empty")
	case r.IndexPatterns == nil && r.Usernames == nil && r.Roles == nil:
		return Errorf(Validation, "Rule should have at least 1 attribute requirement")
	}
	for _, a := range r.attributes() {
		if err := checkValues(a.name, a.values); err != nil {
			return err
		}
	}
	return nil
}

type attribute struct {
	name   string
	values []string
}

func (r *Rule) attributes() []attribute {
	return []attribute{{attributeIndex, r.IndexPatterns}, {attributeUsername, r.Usernames}, {attributeRole, r.Roles}}
}

func checkValues(name string, values []string) error {
	if values != nil && len(values) == 0 {
		return Errorf(Validation, "Attribute values for %s cannot be empty.", name)
	}
	if len(values) > MaxAttributeValues {
		return Errorf(Validation, "Each attribute can only have a maximum of %d values. The input attribute %s has length %d, which exceeds this limit.", MaxAttributeValues, name, len(values))
	}
	for _, v := range values {
		if strings.TrimSpace(v) == "" || len(utf16.Encode([]rune(v))) > MaxAttributeLength {
			return Errorf(Validation, "Attribute value [%s] is invalid (empty or exceeds %d characters)", v, MaxAttributeLength)
		}
	}
	return nil
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
