package rest

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// The headers that name a principal, percent-encoded. The role header may be
// repeated.
const (
	HeaderUser = "X-Wlmsim-User"
	HeaderRole = "X-Wlmsim-Role"
	// HeaderUserInfo has user and roles in one text, as OpenSearch's security
	// plugin writes them; see [wlm.ExtractPrincipal]. It takes the place of the
	// user's name in the other two ways, and its roles come first.
	HeaderUserInfo = "X-Wlmsim-User-Info"
)

// Bounds on a principal.
const (
	MaxName  = 1024 // bytes of a user's or a role's name after decoding
	MaxRoles = 1024 // roles of one request, with those of the users' table
)

// User is one entry of [Config.Users].
type User struct {
	PasswordHash []byte   // bcrypt
	Roles        []string // in addition to those of the request's headers
}

// guard finds out who sent a request. Who it takes them for is compared byte
// for byte from here on: no folding, no trimming, no normal form.
type guard struct {
	blind  bool            // nobody is named
	users  map[string]User // nil: any name with any password
	canary func() string

	mu       sync.Mutex
	verified map[string][sha256.Size]byte // name to digest of the password that bcrypt last accepted
}

// principal returns who sent the request: the name from [HeaderUserInfo], or
// else from [HeaderUser], or else from basic auth; the roles from
// [HeaderUserInfo], the users' table and [HeaderRole]. With a
// table the password of basic auth must be that of the name, whichever way the
// name came. The zero principal is nobody.
func (g *guard) principal(r *http.Request) (wlm.Principal, error) {
	if g.blind {
		return wlm.Principal{}, nil
	}
	names, roles, infos := r.Header[HeaderUser], r.Header[HeaderRole], r.Header[HeaderUserInfo]
	if g.users == nil && names == nil && roles == nil && infos == nil && r.Header["Authorization"] == nil {
		return wlm.Principal{}, nil
	}
	p, password, err := named(r, names)
	if err != nil {
		return wlm.Principal{}, err
	}
	if infos != nil {
		if p, err = extracted(infos); err != nil {
			return wlm.Principal{}, err
		}
	}
	if g.users != nil {
		if !g.knows(p.User, password) {
			return wlm.Principal{}, challenge{}
		}
		p.Roles = append(p.Roles, g.users[p.User].Roles...)
	}
	if len(roles)+len(p.Roles) > MaxRoles {
		return wlm.Principal{}, cluster.Errorf(cluster.IllegalArgument, "header %s: %d roles are more than %d", HeaderRole, len(roles)+len(p.Roles), MaxRoles)
	}
	for _, text := range roles {
		role, err := decodeName(HeaderRole, text)
		if err != nil {
			return wlm.Principal{}, err
		}
		p.Roles = append(p.Roles, role)
	}
	if g.canary != nil {
		p.Canary = g.canary()
	}
	return p, nil
}

// named reads the user's name and the password.
func named(r *http.Request, names []string) (p wlm.Principal, password string, err error) {
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "basic") {
		var ok bool
		if p.User, password, ok = r.BasicAuth(); !ok {
			return p, "", cluster.Errorf(cluster.IllegalArgument, "header Authorization is not valid basic authentication: base64 of user:password is wanted")
		}
		if err := checkLength("Authorization", p.User); err != nil {
			return p, "", err
		}
	}
	if len(names) > 1 {
		return p, "", cluster.Errorf(cluster.IllegalArgument, "header %s stands %d times: a request has one user", HeaderUser, len(names))
	}
	if len(names) == 1 {
		if p.User, err = decodeName(HeaderUser, names[0]); err != nil {
			return p, "", err
		}
	}
	return p, password, nil
}

// extracted reads the one text that has both user and roles.
func extracted(infos []string) (wlm.Principal, error) {
	if len(infos) > 1 {
		return wlm.Principal{}, cluster.Errorf(cluster.IllegalArgument, "header %s stands %d times: a request has one user", HeaderUserInfo, len(infos))
	}
	text, err := url.PathUnescape(infos[0])
	if err != nil {
		return wlm.Principal{}, cluster.Errorf(cluster.IllegalArgument, "header %s is not percent-encoded: %v", HeaderUserInfo, err)
	}
	p, err := wlm.ExtractPrincipal(text)
	if err != nil {
		return wlm.Principal{}, cluster.Errorf(cluster.IllegalArgument, "header %s: %v", HeaderUserInfo, err)
	}
	for _, name := range append([]string{p.User}, p.Roles...) {
		if err := checkLength(HeaderUserInfo, name); err != nil {
			return wlm.Principal{}, err
		}
	}
	return p, nil
}

func decodeName(header, text string) (string, error) {
	if len(text) > 3*MaxName { // no need to decode: three bytes a byte is the longest way to write one
		return "", checkLength(header, text)
	}
	name, err := url.PathUnescape(text)
	if err != nil {
		return "", cluster.Errorf(cluster.IllegalArgument, "header %s is not percent-encoded: %v", header, err)
	}
	return name, checkLength(header, name)
}

func checkLength(header, name string) error {
	if len(name) > MaxName {
		return cluster.Errorf(cluster.IllegalArgument, "header %s: a name of %d bytes is longer than %d", header, len(name), MaxName)
	}
	return nil
}

// knows checks a password against the table. bcrypt is slow by design, so the
// password that it accepted last is remembered by its digest, one a user.
func (g *guard) knows(name, password string) bool {
	user, known := g.users[name]
	if !known {
		return false
	}
	digest := sha256.Sum256([]byte(password))
	g.mu.Lock()
	last, seen := g.verified[name]
	g.mu.Unlock()
	if seen && last == digest {
		return true
	}
	if bcrypt.CompareHashAndPassword(user.PasswordHash, []byte(password)) != nil {
		return false
	}
	g.mu.Lock()
	g.verified[name] = digest
	g.mu.Unlock()
	return true
}
