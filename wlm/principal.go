package wlm

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

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
	Roles []string // in the order given
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

// joiner turns a principal into one text, and finds in it the values by which a
// search may be throttled. Of several the chooser takes one; "" means none.
type joiner interface {
	join(p *Principal) string
	value(p *Principal, by cluster.Attribute, c chooser) string
}

func newJoiner(s PrincipalJoin) joiner {
	switch s {
	case JoinComma:
		return separated{","}
	case JoinUnitSeparator:
		return separated{"\x1f"}
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

// separated puts a separator between tokens and escapes nothing: a name that
// holds the separator falls apart, and a name loses what Java's trim takes away
// at its end. The pull request's separator is ','.
type separated struct{ by string }

func (s separated) join(p *Principal) string { return strings.Join(tokens(p), s.by) }

// value splits the text again.
func (s separated) value(p *Principal, by cluster.Attribute, c chooser) string {
	best := ""
	for token := range strings.SplitSeq(s.join(p), s.by) {
		token = strings.TrimFunc(token, func(r rune) bool { return r <= ' ' })
		if value, ok := strings.CutPrefix(token, string(by)+"|"); ok {
			best = c.better(best, value)
		}
	}
	return best
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
func (escaped) value(p *Principal, by cluster.Attribute, c chooser) string {
	if by == cluster.ByUsername {
		return p.User
	}
	return charged(p.Roles, c)
}

// chooser says which of two values is charged; an empty one never is if the
// other is not.
type chooser interface {
	better(best, next string) string
}

func newChooser(s RoleChoice) chooser {
	if s == RoleSmallest {
		return smallest{}
	}
	return first{}
}

type first struct{}

func (first) better(best, next string) string {
	if best == "" {
		return next
	}
	return best
}

type smallest struct{}

func (smallest) better(best, next string) string {
	if best == "" || next != "" && compareUTF16(next, best) < 0 {
		return next
	}
	return best
}

// compareUTF16 orders texts by their UTF-16 code units as Java does, which
// differs from the order of bytes where one has a character beyond U+FFFF.
// Bytes that are not UTF-8 count as U+FFFD; texts that are equal by that are
// ordered by their bytes, so that different texts are never equal.
func compareUTF16(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		r, n := utf8.DecodeRuneInString(x)
		q, m := utf8.DecodeRuneInString(y)
		if r != q {
			return cmp.Compare(orderUTF16(r), orderUTF16(q))
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// orderUTF16 moves the characters that UTF-16 writes with surrogates (U+D800 to
// U+DFFF) to where these stand: below U+E000, and in their own order.
func orderUTF16(r rune) rune {
	const surrogates, beyond = 0xe000, 0x10000
	if r >= surrogates && r < beyond {
		return r + utf8.MaxRune
	}
	return r
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
