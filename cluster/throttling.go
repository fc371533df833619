package cluster

// MaxNodeLimit is the greatest node_limit, Java's greatest int.
const MaxNodeLimit = 2147483647

// Attribute says whose requests share a bucket.
type Attribute string

// The dimensions of a throttled group: one bucket for the group, or one for
// each user or role.
const (
	ByGroup    Attribute = "group"
	ByUsername Attribute = "username"
	ByRole     Attribute = "role"
)

// Throttling is a group's limit on requests in flight on each node. A nil
// *Throttling means that the group is not throttled. Whose requests share a
// bucket stands in one of two fields; [DimensionKey] says in which. Stored
// values may be invalid, or of the other form; see [Group.Faults].
type Throttling struct {
	Attribute Attribute `json:"attribute,omitempty"`  // KeyAttribute's; "" if it was never given
	By        Attribute `json:"by,omitempty"`         // KeyBy's; "" if it was never given: the whole group
	NodeLimit *int64    `json:"node_limit,omitempty"` // nil if it was never given
}

// Limit returns the node_limit, and whether it was given and is one by which
// anything can be throttled.
func (t *Throttling) Limit() (limit int64, throttles bool) {
	if t == nil || t.NodeLimit == nil {
		return 0, false
	}
	return *t.NodeLimit, *t.NodeLimit >= 1
}

func (t *Throttling) clone() *Throttling {
	if t == nil {
		return nil
	}
	return &Throttling{Attribute: t.Attribute, By: t.By, NodeLimit: cloneOf(t.NodeLimit)}
}

// ThrottlingPatch is the throttling part of an update. The zero value changes
// nothing; Clear removes the throttling (`{}` or null for the whole object);
// else each field that is given overwrites, and null removes it.
type ThrottlingPatch struct {
	Clear     bool                `json:"clear,omitempty"`
	Attribute Optional[Attribute] `json:"attribute,omitzero"`
	By        Optional[Attribute] `json:"by,omitzero"`
	NodeLimit Optional[int64]     `json:"node_limit,omitzero"`
}

// Merge returns t as p changes it; neither is touched. Nothing left means nil.
func (p ThrottlingPatch) Merge(t *Throttling) *Throttling {
	if p.Clear {
		return nil
	}
	merged := t.clone()
	if merged == nil {
		merged = &Throttling{}
	}
	p.Attribute.overwrite(&merged.Attribute)
	p.By.overwrite(&merged.By)
	if p.NodeLimit.Given {
		merged.NodeLimit = cloneOf(p.NodeLimit.Value)
	}
	if *merged == (Throttling{}) {
		return nil
	}
	return merged
}

// overwrite puts what was given into v, null as the zero value.
func (o Optional[T]) overwrite(v *T) {
	if !o.Given {
		return
	}
	var zero T
	*v = zero
	if o.Value != nil {
		*v = *o.Value
	}
}
