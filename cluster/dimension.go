package cluster

import (
	"strconv"
	"strings"
)

// DimensionKey is the form in which a group's throttling says whose requests
// share a bucket: the name of its key, and with it every rule and message about
// throttling. The zero value means KeyAttribute.
//
// Source: generations G0 to G2 of OpenSearch's WorkloadGroupThrottleSettings
// for KeyAttribute, G3 for KeyBy.
type DimensionKey string

const (
	// KeyAttribute: `attribute` is group, username or role, and goes with a
	// limit as the limit goes with it.
	KeyAttribute DimensionKey = "attribute"
	// KeyBy: `by` is username or role; without it the whole group shares a
	// bucket.
	KeyBy DimensionKey = "by"
)

// form is one way to write throttling. Every error is for the client.
type form interface {
	// field returns where a throttling, and where a patch, has the dimension.
	field(t *Throttling) *Attribute
	given(p *ThrottlingPatch) *Optional[Attribute]
	// stranger returns the key of the other form that t has, "" if none.
	stranger(t *Throttling) string
	// whole is what the field holds where the group shares one bucket.
	whole() Attribute
	checkDimension(a Attribute) error
	// checkPair looks at a dimension and a limit that are sound alone.
	checkPair(a Attribute, limited bool) error
	// unnamed refuses a dimension where nobody is ever named.
	unnamed(a Attribute) error
	parseLimit(text, shown string, number bool) (int64, error)
	negative(text string) error
	tooGreat(text string) error
}

func (k DimensionKey) form() form {
	if k == KeyBy {
		return byForm{}
	}
	return attributeForm{}
}

// known refuses a form that only a newer program knows.
func (k DimensionKey) known() error {
	if k != "" && k != KeyAttribute && k != KeyBy {
		return Errorf(IllegalArgument, "throttling has no form [%s]: one of [%s, %s]", k, KeyAttribute, KeyBy)
	}
	return nil
}

// Check returns why a group must not be throttled by t, with OpenSearch's
// message, or nil. A nil t is valid: no throttling.
func (k DimensionKey) Check(t *Throttling) error {
	if err := k.known(); err != nil || t == nil {
		return err
	}
	f := k.form()
	if key := f.stranger(t); key != "" {
		return UnknownThrottleSetting(key)
	}
	dimension := *f.field(t)
	if dimension != "" {
		if err := f.checkDimension(dimension); err != nil {
			return err
		}
	}
	if t.NodeLimit != nil {
		if err := k.CheckLimit(*t.NodeLimit); err != nil {
			return err
		}
	}
	return f.checkPair(dimension, t.NodeLimit != nil)
}

// CheckDimension returns why the key must not have a value, or nil. Unlike an
// absent key, an empty value is refused.
func (k DimensionKey) CheckDimension(a Attribute) error { return k.form().checkDimension(a) }

// CheckLimit returns why node_limit must not have a value, or nil.
func (k DimensionKey) CheckLimit(limit int64) error {
	switch text := strconv.FormatInt(limit, 10); {
	case limit < 0:
		return k.form().negative(text)
	case limit > MaxNodeLimit:
		return k.form().tooGreat(text)
	case limit == 0:
		return Errorf(IllegalArgument, "Effective throttle ceiling is 0 (node_limit=0); this would reject all requests. Set node_limit to a positive value, or set throttling as null to disable throttling")
	}
	return nil
}

// ParseLimit reads a node_limit by its text in the request: of a number, or of
// what else stands there, without its quotes; a refusal repeats what is shown of
// it. It takes 0, which only the merged throttling may not have.
//
// KeyAttribute takes a plain integer of digits alone. KeyBy takes whatever Java
// makes an int of, as OpenSearch's parser of settings does: quotes, a plus and
// zeros in front, too.
func (k DimensionKey) ParseLimit(text, shown string, number bool) (int64, error) {
	return k.form().parseLimit(text, shown, number)
}

// UnknownThrottleSetting is the refusal of a key that throttling does not have.
func UnknownThrottleSetting(key string) error {
	return Errorf(IllegalArgument, "Unknown throttle setting: %s", key)
}

// CheckUnnamed returns why a command must not be taken by a node to which
// nobody is ever named, as OpenSearch without its security plugin, or nil. Both
// the node that takes a request and the leader ask; what is stored already
// stays.
func (k DimensionKey) CheckUnnamed(c Command) error {
	f := k.form()
	switch c := c.(type) {
	case *CreateGroup:
		if t := c.Group.Throttling; t != nil {
			return f.unnamed(*f.field(t))
		}
	case *UpdateGroup:
		if given := f.given(&c.Throttling).Value; given != nil {
			return f.unnamed(*given)
		}
	}
	return nil
}

// Dimension returns whose requests share a bucket of a group that is throttled
// by t, which must be sound in this form.
func (k DimensionKey) Dimension(t *Throttling) Attribute {
	f := k.form()
	if a := *f.field(t); a != "" {
		return a
	}
	return ByGroup
}

// Write returns t, which has the form of KeyAttribute, in the form of k.
func (k DimensionKey) Write(t *Throttling) *Throttling {
	if t == nil {
		return nil
	}
	written := &Throttling{NodeLimit: cloneOf(t.NodeLimit)}
	*k.form().field(written) = k.value(t.Attribute)
	return written
}

// WritePatch returns p, which has the form of KeyAttribute, in the form of k.
func (k DimensionKey) WritePatch(p ThrottlingPatch) ThrottlingPatch {
	given := p.Attribute
	if given.Value != nil {
		value := k.value(*given.Value)
		given.Value = &value
		if value == "" {
			given.Value = nil
		}
	}
	p.Attribute = Optional[Attribute]{}
	*k.form().given(&p) = given
	return p
}

// Create returns the command that makes a group whose throttling has the form
// of KeyAttribute, in the form of k.
func (k DimensionKey) Create(g Group) *CreateGroup {
	g.Throttling = k.Write(g.Throttling)
	return &CreateGroup{Group: g, Form: k.Short()}
}

// Update returns a command, which has the form of KeyAttribute, in the form of
// k.
func (k DimensionKey) Update(c UpdateGroup) *UpdateGroup {
	c.Throttling, c.Form = k.WritePatch(c.Throttling), k.Short()
	return &c
}

// Short is k as a command has it: KeyAttribute is not written, as programs
// wrote commands that knew no other.
func (k DimensionKey) Short() DimensionKey {
	if k == KeyAttribute {
		return ""
	}
	return k
}

// PatchField returns where a patch has the dimension.
func (k DimensionKey) PatchField(p *ThrottlingPatch) *Optional[Attribute] { return k.form().given(p) }

// value is what the key holds for an attribute.
func (k DimensionKey) value(a Attribute) Attribute {
	if a == ByGroup {
		return k.form().whole()
	}
	return a
}

// checkPatch refuses values that no group may have, whatever it had before.
func (k DimensionKey) checkPatch(p ThrottlingPatch) error {
	if err := k.known(); err != nil {
		return err
	}
	f := k.form()
	if key := f.stranger(&Throttling{Attribute: mark(p.Attribute), By: mark(p.By)}); key != "" {
		return UnknownThrottleSetting(key)
	}
	if given := f.given(&p); given.Value != nil {
		if err := f.checkDimension(*given.Value); err != nil {
			return err
		}
	}
	if p.NodeLimit.Value != nil {
		return k.CheckLimit(*p.NodeLimit.Value)
	}
	return nil
}

// mark is not empty if the field was given, null or not.
func mark(o Optional[Attribute]) Attribute {
	if o.Given {
		return "given"
	}
	return ""
}

type attributeForm struct{}

func (attributeForm) field(t *Throttling) *Attribute                { return &t.Attribute }
func (attributeForm) given(p *ThrottlingPatch) *Optional[Attribute] { return &p.Attribute }
func (attributeForm) whole() Attribute                              { return ByGroup }

func (attributeForm) stranger(t *Throttling) string {
	if t.By != "" {
		return string(KeyBy)
	}
	return ""
}

func (attributeForm) checkDimension(a Attribute) error {
	if a != ByGroup && a != ByUsername && a != ByRole {
		return Errorf(IllegalArgument, "throttling.attribute must be one of [group, username, role] but was '%s'", a)
	}
	return nil
}

func (attributeForm) checkPair(a Attribute, limited bool) error {
	switch {
	case !limited:
		return Errorf(IllegalArgument, "throttling.node_limit is required when throttling.attribute is set; set throttling as null to disable throttling instead")
	case a == "":
		return Errorf(IllegalArgument, "throttling.attribute is required when a throttle limit is set")
	}
	return nil
}

// unnamed: the pull request lets such a group pass and throttles nobody.
func (attributeForm) unnamed(Attribute) error { return nil }

func (f attributeForm) parseLimit(text, shown string, number bool) (int64, error) {
	switch limit, err := strconv.ParseInt(text, 10, 64); {
	case !number:
		return 0, f.notInteger(strconv.Quote(shown))
	case strings.ContainsAny(text, ".eE"):
		return 0, f.notInteger(shown)
	case strings.HasPrefix(text, "-"):
		return 0, f.negative(shown)
	case err != nil || limit > MaxNodeLimit:
		return 0, f.tooGreat(shown)
	default:
		return limit, nil
	}
}

func (attributeForm) notInteger(text string) error {
	return Errorf(IllegalArgument, "throttling.node_limit must be an integer but was '%s'", text)
}

func (attributeForm) negative(text string) error {
	return Errorf(IllegalArgument, "throttling.node_limit must be non-negative but was %s", text)
}

func (attributeForm) tooGreat(text string) error {
	return Errorf(IllegalArgument, "throttling.node_limit must not exceed %d but was %s", MaxNodeLimit, text)
}

// byForm wraps each message as OpenSearch's parser of a setting does.
type byForm struct{}

func (byForm) field(t *Throttling) *Attribute                { return &t.By }
func (byForm) given(p *ThrottlingPatch) *Optional[Attribute] { return &p.By }
func (byForm) whole() Attribute                              { return "" }

func (byForm) stranger(t *Throttling) string {
	if t.Attribute != "" {
		return string(KeyAttribute)
	}
	return ""
}

func (byForm) checkDimension(a Attribute) error {
	if a != ByUsername && a != ByRole {
		return Errorf(IllegalArgument, "Invalid value '%s' for throttling.by: throttling.by must be one of [username, role] when set but was '%s'", a, a)
	}
	return nil
}

// checkPair refuses a bag that has neither as well: OpenSearch stores none.
func (byForm) checkPair(_ Attribute, limited bool) error {
	if !limited {
		return Errorf(IllegalArgument, "throttling.node_limit is required when throttling.by is set; set throttling as null to disable throttling instead")
	}
	return nil
}

func (byForm) unnamed(a Attribute) error {
	if a == "" {
		return nil
	}
	return Errorf(IllegalArgument, "throttling.by [%s] needs a principal attribute provider (the security plugin) to be installed, otherwise the limit can never be enforced. Omit [by] to use whole-group throttling instead.", a)
}

func (f byForm) parseLimit(text, shown string, _ bool) (int64, error) {
	switch limit, err := strconv.ParseInt(text, 10, 32); {
	case err != nil:
		return 0, f.notInteger(shown)
	case limit < 0:
		return 0, f.negative(shown)
	default:
		return limit, nil
	}
}

func (byForm) notInteger(text string) error {
	return Errorf(IllegalArgument, "Invalid value '%s' for throttling.node_limit: Failed to parse value [%s] for setting [node_limit]", text, text)
}

func (byForm) negative(text string) error {
	return Errorf(IllegalArgument, "Invalid value '%s' for throttling.node_limit: throttling.node_limit must be non-negative but was %s", text, text)
}

// tooGreat is what a number beyond an int is to OpenSearch: none.
func (f byForm) tooGreat(text string) error { return f.notInteger(text) }
