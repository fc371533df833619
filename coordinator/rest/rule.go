package rest

import (
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// The attributes of a rule. A body may write the principal's nested, as
// OpenSearch's documentation does, or with dotted names.
const (
	attributeIndex    = "index_pattern"
	attributeUsername = "principal.username"
	attributeRole     = "principal.role"
)

// RulesPage is how many rules one answer of the list has at the most.
const RulesPage = 50

// ruleBody is a rule as a request gives it.
type ruleBody struct {
	rule cluster.Rule
	seen map[string]bool // attributes, whichever way they were written
}

// parseRule reads the body of a create or an update. id and updated_at are
// taken, so that a rule can be sent back as it came, and overwritten.
func parseRule(data []byte) (*cluster.Rule, error) {
	b := &ruleBody{seen: map[string]bool{}}
	if err := readBody(data, b.member); err != nil {
		return nil, err
	}
	return &b.rule, nil
}

func (b *ruleBody) member(f *fields, name string) (err error) {
	switch name {
	case "id", "updated_at":
		if !f.scalar() {
			return f.refuse("a string")
		}
		return f.skip()
	case "description":
		b.rule.Description, err = f.given("Rule description can't be null or empty")
		return err
	case "workload_group":
		b.rule.WorkloadGroup, err = f.given("Rule featureValue can't be null or empty")
		return err
	case "principal":
		if f.kind() != '{' {
			return f.refuse("an object")
		}
		return f.object(f.path, func(f *fields, name string) error { return b.attribute(f, "principal."+name) })
	}
	return b.attribute(f, name)
}

// given reads a string that must not be null or empty: an update takes the
// empty one for absent.
func (f *fields) given(otherwise string) (string, error) {
	text := ""
	if !f.null() {
		var err error
		if text, err = f.text(); err != nil {
			return "", err
		}
	}
	if text == "" {
		return "", cluster.Errorf(cluster.Validation, "%s", otherwise)
	}
	return text, nil
}

func (b *ruleBody) attribute(f *fields, name string) (err error) {
	if b.seen[name] {
		return cluster.Errorf(cluster.Parsing, "duplicate attribute [%s]", shorten(name))
	}
	b.seen[name] = true
	switch name {
	case attributeIndex:
		b.rule.IndexPatterns, err = f.texts()
	case attributeUsername:
		b.rule.Usernames, err = f.texts()
	case attributeRole:
		b.rule.Roles, err = f.texts()
	default:
		if err := f.skip(); err != nil {
			return err
		}
		return cluster.Errorf(cluster.Validation, "%s is not a valid attribute within the workload_group feature.", shorten(name))
	}
	return err
}

func (c *call) createRule() error {
	rule, err := c.ruleBody()
	if err != nil {
		return err
	}
	rule.ID, rule.UpdatedAt = c.config.Cluster.NewID(), c.config.Cluster.Now().UnixMilli()
	return c.answerRule(&cluster.CreateRule{Rule: *rule})
}

func (c *call) updateRule() error {
	rule, err := c.ruleBody()
	if err != nil {
		return err
	}
	return c.answerRule(&cluster.UpdateRule{
		ID: c.vars.get("id"), Description: rule.Description, WorkloadGroup: rule.WorkloadGroup,
		IndexPatterns: rule.IndexPatterns, Usernames: rule.Usernames, Roles: rule.Roles,
		UpdatedAt: c.config.Cluster.Now().UnixMilli(),
	})
}

func (c *call) ruleBody() (*cluster.Rule, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	return parseRule(data)
}

func (c *call) answerRule(command cluster.Command) error {
	result, err := c.propose(command)
	if err != nil {
		return err
	}
	c.out.rule(result.Rule)
	return nil
}

func (c *call) deleteRule() error {
	return c.acknowledge(&cluster.DeleteRule{ID: c.vars.get("id")})
}

func (c *call) getRule() error {
	if err := c.ready(); err != nil {
		return err
	}
	id := c.vars.get("id")
	rule := c.config.Cluster.State().Rule(id)
	if rule == nil {
		return cluster.Errorf(cluster.ResourceNotFound, "Rule with ID %s not found.", shorten(id))
	}
	c.out.rulesPage([]*cluster.Rule{rule}, "")
	return nil
}

// listRules answers with a page of the rules that are published here, by id,
// and the id to go on after if there are more.
func (c *call) listRules() error {
	if err := c.ready(); err != nil {
		return err
	}
	after := c.query.Get("search_after")
	var page []*cluster.Rule
	for _, r := range c.config.Cluster.State().Rules() {
		if r.ID > after && c.wanted(r) {
			page = append(page, r)
		}
	}
	next := ""
	if len(page) > RulesPage {
		page = page[:RulesPage]
		next = page[RulesPage-1].ID
	}
	c.out.rulesPage(page, next)
	return nil
}

// wanted says whether a rule has, for each attribute that the query filters
// by, one of the values asked for.
func (c *call) wanted(r *cluster.Rule) bool {
	for _, filter := range []struct {
		name   string
		values []string
	}{
		{"workload_group", []string{r.WorkloadGroup}}, {attributeIndex, r.IndexPatterns},
		{attributeUsername, r.Usernames}, {attributeRole, r.Roles},
	} {
		asked := list(c.query.Get(filter.name))
		if asked != nil && !slices.ContainsFunc(asked, func(v string) bool { return slices.Contains(filter.values, v) }) {
			return false
		}
	}
	return true
}

func (e *encoder) rulesPage(rules []*cluster.Rule, next string) {
	e.object(func() {
		e.name("rules").array(func() {
			for _, r := range rules {
				e.rule(r)
			}
		})
		if next != "" {
			e.name("search_after").texts([]string{next})
		}
	})
}

func (e *encoder) rule(r *cluster.Rule) {
	e.object(func() {
		e.name("id").text(r.ID)
		e.name("description").text(r.Description)
		if r.IndexPatterns != nil {
			e.name(attributeIndex).texts(r.IndexPatterns)
		}
		if r.Usernames != nil || r.Roles != nil {
			e.name("principal").object(func() { e.principalAttributes(r) })
		}
		e.name("workload_group").text(r.WorkloadGroup)
		e.name("updated_at").text(instant(r.UpdatedAt))
	})
}

func (e *encoder) principalAttributes(r *cluster.Rule) {
	if r.Usernames != nil {
		e.name("username").texts(r.Usernames)
	}
	if r.Roles != nil {
		e.name("role").texts(r.Roles)
	}
}

// instant writes epoch milliseconds as Java's Instant does: no fraction where
// it is zero.
func instant(millis int64) string {
	return strings.Replace(time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z"), ".000Z", "Z", 1)
}
