package wlm

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster"
)

// nesting says whether the search that started another exempts it.
type nesting interface {
	exempts(parent *Permit) bool
}

func newNesting(s Nested) nesting {
	if s == NestedExempt {
		return exemptNested{}
	}
	return chargedNested{}
}

type chargedNested struct{}

func (chargedNested) exempts(*Permit) bool { return false }

type exemptNested struct{}

func (exemptNested) exempts(parent *Permit) bool { return parent != nil && parent.counted }

// paging admits the next page of a scroll.
type paging interface {
	admit(t *Throttle, ctx context.Context, state *cluster.State, groupID, search string, p *Permit) error
}

func newPaging(s Scroll) paging {
	if s == ScrollCharged {
		return chargedPages{}
	}
	return freePages{}
}

type freePages struct{}

func (freePages) admit(_ *Throttle, _ context.Context, _ *cluster.State, _, _ string, p *Permit) error {
	p.counted = false
	return nil
}

type chargedPages struct{}

func (chargedPages) admit(t *Throttle, ctx context.Context, state *cluster.State, groupID, search string, p *Permit) error {
	return t.Admit(ctx, state, groupID, search, p)
}
