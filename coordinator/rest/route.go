package rest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is one path of the API, for documentation and for tests that visit
// them all.
type Route struct {
	Pattern string   // segments in braces are variable
	Methods []string // sorted
	Params  []string // query parameters beyond those that every route takes, sorted
}

// route is a Route with its handlers. A handler fills the call's answer or
// returns why there is none.
type route struct {
	Route
	handlers map[string]func(*call) error
	counts   routeCounts
}

// commonParams are taken by every route, commonFlags are true or false.
// error_trace has no effect, since no error here has a stack trace.
var (
	commonFlags  = []string{"error_trace", "human", "pretty"}
	commonParams = append([]string{"filter_path", "format"}, commonFlags...)
)

// branch is one segment of the tree of routes.
type branch struct {
	literal  map[string]*branch
	variable *branch
	name     string // of the variable that leads here
	route    *route
}

// add puts a route into the tree.
func (b *branch) add(r *route) {
	for segment := range segments(r.Pattern) {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			if b.variable == nil {
				b.variable = &branch{name: strings.TrimSuffix(name, "}")}
			}
			b = b.variable
			continue
		}
		if b.literal == nil {
			b.literal = map[string]*branch{}
		}
		if b.literal[segment] == nil {
			b.literal[segment] = &branch{}
		}
		b = b.literal[segment]
	}
	b.route = r
}

// vars are the variable segments of a path; a route has at most two.
type vars struct {
	names, values [2]string
	n             int
}

func (v *vars) get(name string) string {
	for i := range v.n {
		if v.names[i] == name {
			return v.values[i]
		}
	}
	return ""
}

// find returns the route of a path, or nil. A literal segment goes before a
// variable one. The first variable segment is an index, whose name never
// begins with an underscore; such a path is none of ours.
func (b *branch) find(u *url.URL, v *vars) (*route, error) {
	path, escaped := u.Path, false
	if u.RawPath != "" {
		path, escaped = u.RawPath, true
	}
	first := true
	for segment := range segments(path) {
		if next := b.literal[segment]; next != nil {
			b, first = next, false
			continue
		}
		b = b.variable
		if b == nil || (first && strings.HasPrefix(segment, "_") && segment != "_all") {
			return nil, nil
		}
		if escaped {
			plain, err := url.PathUnescape(segment)
			if err != nil {
				return nil, badPath(path, err)
			}
			segment = plain
		}
		v.names[v.n], v.values[v.n] = b.name, segment
		v.n++
		first = false
	}
	return b.route, nil
}

func badPath(path string, err error) error {
	return &plainError{status: http.StatusBadRequest, reason: "path [" + shorten(path) + "] is not percent-encoded: " + err.Error()}
}

// segments splits a path at its slashes, without empty ends, so that a slash
// at the end changes nothing.
func segments(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		path = strings.Trim(path, "/")
		for path != "" {
			segment, rest, _ := strings.Cut(path, "/")
			if !yield(segment) {
				return
			}
			path = rest
		}
	}
}

// on makes a route. methods are pairs of a name and a handler.
func on(pattern string, handlers map[string]func(*call) error, params ...string) *route {
	r := &route{Route: Route{Pattern: pattern}, handlers: handlers}
	for method := range handlers {
		r.Methods = append(r.Methods, method)
	}
	slices.Sort(r.Methods)
	r.Params = slices.SortedFunc(slices.Values(params), cmp.Compare[string])
	return r
}

func (r *route) takes(param string) bool {
	return slices.Contains(r.Params, param) || slices.Contains(commonParams, param)
}

// known lists what a misspelt parameter of the route may have been meant for,
// the variable parts of its path among them, as upstream.
func (r *route) known() []string {
	names := slices.Concat(r.Params, commonParams)
	for segment := range segments(r.Pattern) {
		if strings.HasPrefix(segment, "{") {
			names = append(names, strings.Trim(segment, "{}"))
		}
	}
	return names
}

// wrongMethod is the answer for a method that the route does not have.
func (r *route) wrongMethod(method, uri string) error {
	allowed := strings.Join(r.Methods, ", ")
	return &plainError{
		status: http.StatusMethodNotAllowed,
		reason: "Incorrect HTTP method for uri [" + shorten(uri) + "] and method [" + shorten(method) + "], allowed: [" + allowed + "]",
		allow:  allowed,
	}
}

func noHandler(method, uri string) error {
	return &plainError{
		status: http.StatusNotFound,
		reason: "no handler found for uri [" + shorten(uri) + "] and method [" + shorten(method) + "]",
	}
}
