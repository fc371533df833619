package rest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/coordinator"
)

// MaxSubSearches bounds the searches of one multi-search. OpenSearch has no
// bound but the length of the body.
const MaxSubSearches = 10000

// subSearch is one search of a multi-search, and what came of it.
type subSearch struct {
	*searchBody
	response *coordinator.Response
	err      error
}

// runMultiSearch answers _msearch: lines of headers and bodies in turn. The
// searches are charged one by one, and one that is refused is an item of its
// own in an answer with status 200. The multi-search itself takes nothing.
func (c *call) runMultiSearch() error {
	plainTotal, most, err := c.multiParams()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	options, err := c.indexOptions()
	if err != nil {
		return err
	}
	searches, err := c.readSubSearches(data, options)
	if err != nil {
		return err
	}
	if err := c.ready(); err != nil {
		return err
	}
	ctx, listed := c.config.Tasks.Begin(c.searchContext(), task.Spec{
		Action: coordinator.ActionMultiSearch, Parent: task.From(c.r.Context()), OpaqueID: c.id, Describe: func(int) string { return "requests[" + itoa(len(searches)) + "]" },
	})
	defer listed.End()
	began := time.Now()
	coordinator.RunEach(len(searches), most, func(i int) { searches[i].run(ctx, c.config.Searcher) })
	if ctx.Err() != nil { // what is left of the searches is nobody's any more
		return context.Cause(ctx)
	}
	c.writeSubSearches(searches, time.Since(began), plainTotal)
	return nil
}

// run runs one search. It is called by goroutines of their own.
func (s *subSearch) run(ctx context.Context, searcher Searcher) {
	s.err = cluster.Errorf(cluster.IllegalState, "the search ended unexpectedly; the node's log says why") // unless it returns
	s.response, s.err = searcher.Search(ctx, s.request)
}

// multiParams reads the parameters of a multi-search: how totals are written,
// and how many searches may run at once.
func (c *call) multiParams() (plainTotal bool, most int, err error) {
	if plainTotal, err = c.flag("rest_total_hits_as_int", false); err != nil {
		return false, 0, err
	}
	if _, err = c.flag("typed_keys", false); err != nil { // see searchBody.otherParams
		return false, 0, err
	}
	n, given, err := c.number("max_concurrent_searches")
	switch {
	case err != nil:
		return false, 0, err
	case !given:
		return plainTotal, coordinator.ConcurrentSearches(c.config.Cluster.State()), nil
	case n > math.MaxInt32:
		return false, 0, c.noInt("max_concurrent_searches")
	case n < 1:
		return false, 0, cluster.Errorf(cluster.IllegalArgument, "maxConcurrentSearchRequests must be positive")
	}
	return plainTotal, int(min(n, MaxSubSearches)), nil
}

// readSubSearches reads a body of lines. A fault of any of them is one of the
// whole. What the lines do not say of how names of indices are read, the
// parameters of the request do.
func (c *call) readSubSearches(data []byte, options cluster.IndexOptions) ([]*subSearch, error) {
	if len(data) == 0 {
		return nil, cluster.Errorf(cluster.Parsing, "request body is required")
	}
	if data[len(data)-1] != '\n' {
		return nil, cluster.Errorf(cluster.IllegalArgument, "The msearch request must be terminated by a newline [\n]")
	}
	var searches []*subSearch
	for number := 1; len(data) > 0; number += 2 {
		header, rest, _ := bytes.Cut(data, []byte("\n"))
		if len(bytes.TrimSpace(header)) == 0 && len(bytes.TrimSpace(rest)) == 0 {
			break // lines without text at the end
		}
		body, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return nil, cluster.Errorf(cluster.IllegalArgument, "line %d of the msearch request is a header without a body", number)
		}
		if len(searches) == MaxSubSearches {
			return nil, cluster.Errorf(cluster.IllegalArgument, "a multi search has at most %d searches, this one has more", MaxSubSearches)
		}
		s, err := c.readSubSearch(header, body, options)
		if err != nil {
			return nil, atLine(number, err)
		}
		searches, data = append(searches, s), after
	}
	if len(searches) == 0 {
		return nil, invalid("no requests added")
	}
	return searches, nil
}

// atLine adds where in a body of lines a fault is.
func atLine(number int, err error) error {
	if e, ok := errors.AsType[*cluster.Error](err); ok {
		return cluster.Errorf(e.Kind, "search at line %d: %s", number, e.Reason)
	}
	return err
}

func (c *call) readSubSearch(header, body []byte, options cluster.IndexOptions) (*subSearch, error) {
	s := &subSearch{searchBody: newSearch(false)}
	s.request.Index, s.request.Options = c.vars.get("index"), options
	if len(bytes.TrimSpace(header)) > 0 {
		if err := readBodyWith(&c.scratch.decoder, header, s.header); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, cluster.Errorf(cluster.Parsing, "request body is required")
	}
	if err := s.parse(&c.scratch.decoder, body); err != nil {
		return nil, err
	}
	return s, c.complete(s.searchBody)
}

// header reads a member of the line before a search.
func (s *subSearch) header(f *fields, name string) (err error) {
	switch name {
	case "index", "indices":
		s.request.Index, err = f.expression()
	case "preference":
		s.request.Preference, err = f.preference()
	case "routing":
		s.request.Routing, err = f.text()
	case "search_type":
		var text string
		if text, err = f.text(); err == nil {
			err = checkSearchType(text)
		}
	case "allow_partial_search_results":
		s.request.AllowPartial, err = f.boolean()
	case "cancel_after_time_interval":
		s.request.CancelAfter, err = f.timeout()
	case "ignore_unavailable", "ignoreUnavailable":
		err = f.truth(&s.request.Options.IgnoreUnavailable)
	case "allow_no_indices", "allowNoIndices":
		allow := true
		err = f.truth(&allow)
		s.request.Options.RefuseNone = !allow
	case "expand_wildcards", "expandWildcards":
		var words string
		if words, err = f.expression(); err == nil {
			s.request.Options.Wildcards, err = cluster.ParseWildcards(shorten(words))
		}
	default:
		if err := f.skip(); err != nil {
			return err
		}
		return cluster.Errorf(cluster.IllegalArgument, "key [%s] is not supported in the metadata section", shorten(name))
	}
	return err
}

// expression reads names of indices: one text, or an array of them.
func (f *fields) expression() (string, error) {
	if f.kind() != '[' {
		return f.text()
	}
	names, err := f.texts()
	return joined(names), err
}

func (f *fields) preference() (string, error) {
	text, err := f.text()
	if err == nil {
		_, err = coordinator.ParsePreference(text)
	}
	return text, err
}

// truth reads true or false into a place, as it stands or in quotes.
func (f *fields) truth(into *bool) error {
	if f.kind() != '"' {
		v, err := f.boolean()
		if err == nil {
			*into = *v
		}
		return err
	}
	text, err := f.text()
	if err == nil && text != "true" && text != "false" {
		return cluster.Errorf(cluster.IllegalArgument, "Failed to parse value [%s] as only [true] or [false] are allowed.", shorten(text))
	}
	*into = text == "true"
	return err
}

// boolean reads true or false.
func (f *fields) boolean() (*bool, error) {
	if k := f.kind(); k != 't' && k != 'f' {
		return nil, f.refuse("true or false")
	}
	token, err := f.d.ReadToken()
	if err != nil {
		return nil, f.broken(err)
	}
	v := token.Kind() == jsontext.Kind('t')
	return &v, nil
}

func (c *call) writeSubSearches(searches []*subSearch, took time.Duration, plainTotal bool) {
	c.out.object(func() {
		c.out.name("took").integer(took.Milliseconds())
		c.out.name("responses").array(func() {
			for _, s := range searches {
				if s.err != nil {
					c.failItem(s.err)
					continue
				}
				c.out.searchAnswer(s.response, s.trackTotal, plainTotal)
				c.out.b = c.out.b[:len(c.out.b)-1] // its closing brace
				c.out.name("status").integer(200)
				c.out.close('}')
			}
		})
	})
}

// failItem writes the failure of one search among several; the answer's own
// status stays.
func (c *call) failItem(err error) {
	status := c.status
	if search, ok := errors.AsType[*coordinator.SearchError](err); ok {
		c.failSearch(search)
	} else {
		c.refuse(refusal(err))
	}
	c.status = status
}
