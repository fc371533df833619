package wlm

import (
	"context"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// PrincipalHeader is the name of the header that carries the principal under
// principal_carrier: header, as the pull request names it.
const PrincipalHeader = "workloadGroupPrincipal"

// Principal is who a search runs for, byte for byte as the authenticator
// handed it over. An empty user, and an empty role, is as good as none.
type Principal struct {
	User  string
	Roles []string // in the order given; the first one that is not empty is charged
	// Canary is a text that names nobody and enters no bucket. It travels
	// wherever the carrier takes the principal, so that a search of the wire
	// for it shows a leak.
	Canary string
}

type principalKey struct{}

// WithPrincipal returns a context that carries p, which must not be changed
// afterwards.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, &p)
}

// PrincipalFrom returns the principal that ctx carries, and whether there is
// one.
func PrincipalFrom(ctx context.Context) (Principal, bool) {
	if p := carried(ctx); p != nil {
		return *p, true
	}
	return Principal{}, false
}

func carried(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// joiner turns a principal into one text, and finds in it the value by which a
// search is throttled: "" if there is none.
type joiner interface {
	join(p *Principal) string
	value(p *Principal, by cluster.Attribute) string
}

func newJoiner(s PrincipalJoin) joiner {
	if s == JoinComma {
		return comma{}
	}
	return escaped{}
}

// tokens returns what the security plugin's extractor says of a principal:
// username|NAME and role|ROLE, in the order given, none for an empty name.
func tokens(p *Principal) []string {
	var list []string
	if p.User != "" {
		list = append(list, string(cluster.ByUsername)+"|"+p.User)
	}
	for _, role := range p.Roles {
		if role != "" {
			list = append(list, string(cluster.ByRole)+"|"+role)
		}
	}
	return list
}

// comma is the pull request's way: a name with a comma falls apart, and a name
// loses what Java's trim takes away at its ends.
type comma struct{}

func (comma) join(p *Principal) string { return strings.Join(tokens(p), ",") }

func (c comma) value(p *Principal, by cluster.Attribute) string {
	for token := range strings.SplitSeq(c.join(p), ",") {
		token = strings.TrimFunc(token, func(r rune) bool { return r <= ' ' })
		if value, ok := strings.CutPrefix(token, string(by)+"|"); ok && value != "" {
			return value
		}
	}
	return ""
}

// escaped puts a backslash before every comma and backslash of a token, so
// that the commas between tokens are the only bare ones.
type escaped struct{}

func (escaped) join(p *Principal) string {
	list := tokens(p)
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
	for i, token := range list {
		list[i] = escape.Replace(token)
	}
	return strings.Join(list, ",")
}

// value looks at the principal itself. To join, split and take the escapes
// back gives the same, since every byte survives, and would cost each search
// two allocations.
func (escaped) value(p *Principal, by cluster.Attribute) string {
	if by == cluster.ByUsername {
		return p.User
	}
	for _, role := range p.Roles {
		if role != "" {
			return role
		}
	}
	return ""
}

// carrier decides what of a principal goes into messages between nodes.
type carrier interface {
	headers(p *Principal, j joiner) []wire.Header
}

func newCarrier(s PrincipalCarrier) carrier {
	if s == CarrierHeader {
		return headerCarrier{}
	}
	return contextCarrier{}
}

type contextCarrier struct{}

func (contextCarrier) headers(*Principal, joiner) []wire.Header { return nil }

type headerCarrier struct{}

func (headerCarrier) headers(p *Principal, j joiner) []wire.Header {
	var headers []wire.Header
	for _, value := range []string{j.join(p), p.Canary} {
		if value != "" {
			headers = append(headers, wire.Header{Name: PrincipalHeader, Value: value})
		}
	}
	return headers
}

// CarrierHeaders returns the headers that every message between nodes must
// carry on behalf of the search of ctx: none under principal_carrier: context.
func (t *Throttle) CarrierHeaders(ctx context.Context) []wire.Header {
	p := carried(ctx)
	if p == nil {
		return nil
	}
	return t.carrier.headers(p, t.join)
}
