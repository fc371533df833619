package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/wlm"
)

// The headers of a search beside those of its principal.
const (
	// HeaderGroup gives the search to the group of an id, if no rule does.
	HeaderGroup = "workloadGroupId"
	// HeaderPermit is set on the answer of an admitted search: "true" if it
	// held a permit, "false" if it was not throttled. OpenSearch has no such
	// header.
	HeaderPermit = "X-Wlmsim-Permit"

	canonicalGroup = "Workloadgroupid" // as net/http stores HeaderGroup
)

// MaxResultWindow is the greatest from + size of a search.
const MaxResultWindow = 10000

const defaultSize = 10

// matchAll is the canonical text of a search without a query.
var matchAll = []byte(`{"match_all":{}}`)

// noTotal is a trackTotal that leaves the total out.
const noTotal = -1

// searchBody is what a search asks for.
type searchBody struct {
	request    coordinator.Request
	trackTotal int64 // count matches up to this many; noTotal: not at all
	count      bool  // a _count, which takes only query and ext
	sorts      []string
	after      int // values of search_after; 0: it is not given
}

func newSearch(count bool) *searchBody {
	s := &searchBody{trackTotal: coordinator.MaxTrackedHits, count: count}
	s.request.Size = defaultSize
	s.request.Query = matchAll
	s.request.ServiceTime = -1
	if s.request.Count = count; count {
		s.request.Size = 0
	}
	return s
}

// parse reads a search's body; an empty one asks for all documents.
func (s *searchBody) parse(d *jsontext.Decoder, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return readBodyWith(d, data, s.member)
}

func (s *searchBody) member(f *fields, name string) (err error) {
	switch {
	case name == "query":
		if s.request.Query, err = f.query(); err != nil {
			return err
		}
		s.request.Lookups, err = lookupsOf(s.request.Query)
		return err
	case name == "ext":
		return s.readExt(f)
	case s.count:
	case name == "from":
		s.request.From, err = f.window()
		return err
	case name == "size":
		s.request.Size, err = f.window()
		return err
	case name == "timeout":
		s.request.Timeout, err = f.timeout()
		return err
	case name == "track_total_hits":
		return s.readTrackTotal(f)
	case name == "pit":
		return s.readPoint(f)
	case name == "sort":
		s.sorts, err = f.sort()
		return err
	case name == "search_after":
		s.after, err = f.searchAfter()
		return err
	case name == "_source": // documents have no fields, so that there is nothing to leave out
		return f.skip()
	}
	kind := tokenOf(f.kind())
	if err := f.skip(); err != nil {
		return err
	}
	known := "query, from, size, timeout, track_total_hits, pit, sort, _source and ext"
	if s.count {
		known = "query and ext"
	}
	return cluster.Errorf(cluster.Parsing, "Unknown key for a %s in [%s]: the simulated shards know %s", kind, shorten(name), known)
}

// tokenOf is OpenSearch's name for the beginning of a value.
func tokenOf(k jsontext.Kind) string {
	switch k {
	case '[':
		return "START_ARRAY"
	case '"':
		return "VALUE_STRING"
	case '0':
		return "VALUE_NUMBER"
	case 't', 'f':
		return "VALUE_BOOLEAN"
	case 'n':
		return "VALUE_NULL"
	}
	return "START_OBJECT"
}

// query reads a query: an object with one clause. It is not evaluated; equal
// canonical texts get equal answers.
func (f *fields) query() ([]byte, error) {
	if f.kind() != '{' {
		return nil, f.refuse("an object")
	}
	var clause []byte
	err := f.object(f.path, func(f *fields, name string) error {
		if clause != nil {
			return cluster.Errorf(cluster.Parsing, "query malformed, expected [END_OBJECT] after its first clause but found [FIELD_NAME]")
		}
		v, err := f.raw()
		if err != nil {
			return err
		}
		if err := v.Canonicalize(); err != nil {
			return f.broken(err)
		}
		clause = append(appendText([]byte{'{'}, name), ':')
		clause = append(append(clause, v...), '}')
		return nil
	})
	if err == nil && clause == nil {
		err = cluster.Errorf(cluster.IllegalArgument, "query malformed, empty clause found")
	}
	return clause, err
}

func (f *fields) window() (int, error) {
	n, err := f.integer()
	if err != nil {
		return 0, err
	}
	return checkWindow(f.path, n)
}

func checkWindow(name string, n int64) (int, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, cluster.Errorf(cluster.IllegalArgument, "[%s] must be 0 to %d but was %d", name, math.MaxInt32, n)
	}
	return int(n), nil
}

func (f *fields) timeout() (time.Duration, error) {
	text, err := f.text()
	if err != nil {
		return 0, err
	}
	return parseTimeout(f.path, text)
}

// parseTimeout reads a search's timeout. 0 would mean the default to the
// coordinator; a client that gives it leaves the shards no time at all.
func parseTimeout(name, text string) (time.Duration, error) {
	d, err := parseTime(name, text)
	if d == 0 && err == nil {
		d = 1
	}
	return d, err
}

func (s *searchBody) readTrackTotal(f *fields) error {
	if k := f.kind(); k != '0' && k != 't' && k != 'f' {
		return f.refuse("true, false or an integer")
	}
	v, err := f.raw()
	if err != nil {
		return err
	}
	return s.setTrackTotal(string(v))
}

func (s *searchBody) setTrackTotal(text string) error {
	switch text {
	case "true", "":
		s.trackTotal = math.MaxInt64
		return nil
	case "false":
		s.trackTotal = noTotal
		return nil
	}
	n, ok := plainInteger(text)
	if !ok || n < 0 || n > math.MaxInt32 {
		return cluster.Errorf(cluster.IllegalArgument, "[track_total_hits] must be true, false or 0 to %d but was '%s'", math.MaxInt32, shorten(text))
	}
	s.trackTotal = n
	return nil
}

// readExt reads "ext": {"wlmsim": {"service_time": "500ms"}}, what the search
// costs each shard.
func (s *searchBody) readExt(f *fields) error {
	if f.kind() != '{' {
		return f.refuse("an object")
	}
	inner := func(f *fields, name string) (err error) {
		if name != "service_time" {
			return unknownExt(f)
		}
		return s.readServiceTime(f)
	}
	return f.object(f.path, func(f *fields, name string) error {
		if name != "wlmsim" {
			return unknownExt(f)
		}
		if f.kind() != '{' {
			return f.refuse("an object")
		}
		return f.object(f.path, inner)
	})
}

// readServiceTime reads a time, or a distribution that each shard draws from.
func (s *searchBody) readServiceTime(f *fields) error {
	path := f.path
	t, err := f.serviceTime()
	if err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return cluster.Errorf(cluster.IllegalArgument, "%s: %v", path, err)
	}
	if t.Distribution == cluster.Constant {
		s.request.ServiceTime = t.Mean
		return nil
	}
	s.request.ServiceTime, s.request.Service = -1, t
	return nil
}

// readPoint reads "pit": {"id": "...", "keep_alive": "1m"}.
func (s *searchBody) readPoint(f *fields) error {
	if f.kind() != '{' {
		return f.refuse("an object")
	}
	err := f.object(f.path, func(f *fields, name string) (err error) {
		switch name {
		case "id":
			s.request.PointID, err = f.text()
		case "keep_alive":
			s.request.KeepAlive, err = f.keepAlive()
		default:
			if err := f.skip(); err != nil {
				return err
			}
			err = cluster.Errorf(cluster.Parsing, "[pit] unknown field [%s]", shorten(name))
		}
		return err
	})
	if err == nil && s.request.PointID == "" {
		err = cluster.Errorf(cluster.IllegalArgument, "point in time id is not provided")
	}
	return err
}

// sort reads the two orders that documents without fields have: by score, and
// the order of the index, which here is the same.
func (f *fields) sort() (names []string, err error) {
	names = []string{""}
	if f.kind() == '[' {
		names, err = f.texts()
	} else {
		names[0], err = f.text()
	}
	for _, name := range names {
		if err == nil && name != "_score" && name != "_doc" {
			err = cluster.Errorf(cluster.IllegalArgument, "No mapping found for [%s] in order to sort on: documents have no fields, sort by _score or _doc", shorten(name))
		}
	}
	return names, err
}

// searchAfter counts the values to go on after, as OpenSearch reads them.
func (f *fields) searchAfter() (n int, err error) {
	if k := f.kind(); k != '[' {
		if err := f.skip(); err != nil {
			return 0, err
		}
		return 0, cluster.Errorf(cluster.Parsing, "Unknown key for a %s in [search_after]: it is an array, a value for each sort", tokenOf(k))
	}
	var values []jsontext.Value
	v, err := f.raw()
	if err == nil {
		values, err = elements(v)
	}
	for _, v := range values {
		if k := v.Kind(); k == '[' || k == '{' {
			return 0, cluster.Errorf(cluster.Parsing, "Expected [VALUE_STRING] or [VALUE_NUMBER] or [VALUE_BOOLEAN] or [VALUE_NULL] but found [%s] inside search_after.", tokenOf(k))
		}
	}
	if err == nil && len(values) == 0 {
		err = cluster.Errorf(cluster.IllegalArgument, "Values must contains at least one value.")
	}
	return len(values), err
}

// elements returns the elements of an array.
func elements(array jsontext.Value) (list []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(array))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		list = append(list, v.Clone())
	}
	return list, nil
}

// checkAfter refuses search_after, for OpenSearch's reasons where it has one:
// to sort by _score alone is not to sort by a field.
func (s *searchBody) checkAfter() error {
	why := ""
	switch r := &s.request; {
	case s.after == 0:
		return nil
	case r.Scroll > 0:
		why = "`search_after` cannot be used in a scroll context."
	case r.From > 0:
		why = "`from` parameter must be set to 0 when `search_after` is used."
	case len(s.sorts) == 0 || len(s.sorts) == 1 && s.sorts[0] == "_score":
		why = "Sort must contain at least one field."
	case len(s.sorts) != s.after:
		why = fmt.Sprintf("search_after has %d value(s) but sort has %d.", s.after, len(s.sorts))
	default:
		why = "[search_after] is not simulated, since documents have no fields: page by from and size, or by a scroll"
	}
	return cluster.Errorf(cluster.IllegalArgument, "%s", why)
}

func unknownExt(f *fields) error {
	if err := f.skip(); err != nil {
		return err
	}
	return cluster.Errorf(cluster.Parsing, "unknown field [%s]: ext.wlmsim.service_time is the only one", shorten(f.path))
}

// params lets the query string overwrite what the body says, as upstream.
func (s *searchBody) params(c *call) error {
	if c.query == nil {
		return nil
	}
	if c.query.Has("q") {
		e := encoder{}
		e.object(func() {
			e.name("query_string").object(func() { e.name("query").text(c.query.Get("q")) })
		})
		s.request.Query = e.b
	}
	for _, w := range []struct {
		name string
		into *int
	}{{"from", &s.request.From}, {"size", &s.request.Size}} {
		n, given, err := c.number(w.name)
		if err != nil {
			return err
		}
		if given {
			if *w.into, err = checkWindow(w.name, n); err != nil {
				return err
			}
		}
	}
	return s.otherParams(c)
}

func (s *searchBody) otherParams(c *call) (err error) {
	if c.query.Has("timeout") {
		if s.request.Timeout, err = parseTimeout("timeout", c.query.Get("timeout")); err != nil {
			return err
		}
	}
	if c.query.Has("track_total_hits") {
		if err := s.setTrackTotal(c.query.Get("track_total_hits")); err != nil {
			return err
		}
	}
	if c.query.Has("allow_partial_search_results") {
		partial, err := c.flag("allow_partial_search_results", true)
		if err != nil {
			return err
		}
		s.request.AllowPartial = &partial
	}
	if c.query.Has("scroll") {
		if s.request.Scroll, err = parseKeepAlive("scroll", c.query.Get("scroll")); err != nil {
			return err
		}
	}
	if err := s.shardParams(c); err != nil {
		return err
	}
	_, err = c.flag("typed_keys", false) // has no effect: there are no aggregations whose keys could bear a type
	return err
}

// shardParams reads the parameters that say which shards are searched, and how.
func (s *searchBody) shardParams(c *call) (err error) {
	s.request.Preference, s.request.Routing = c.query.Get("preference"), c.query.Get("routing")
	if s.request.Options, err = c.indexOptions(); err != nil {
		return err
	}
	if _, err := coordinator.ParsePreference(s.request.Preference); err != nil {
		return err
	}
	if err := checkSearchType(c.query.Get("search_type")); err != nil {
		return err
	}
	if c.query.Has("cancel_after_time_interval") {
		if s.request.CancelAfter, err = parseTimeout("cancel_after_time_interval", c.query.Get("cancel_after_time_interval")); err != nil {
			return err
		}
	}
	for _, w := range []struct {
		name, fault string
		least       int64
		into        *int
	}{
		{"max_concurrent_shard_requests", "maxConcurrentShardRequests must be >= 1", 1, &s.request.MaxConcurrentShards},
		{"batched_reduce_size", "batchedReduceSize must be >= 2", 2, &s.request.BatchedReduce},
	} {
		n, given, err := c.number(w.name)
		switch {
		case err != nil:
			return err
		case n > math.MaxInt32:
			return c.noInt(w.name)
		case given && n < w.least:
			return cluster.Errorf(cluster.IllegalArgument, "%s", w.fault)
		case given:
			*w.into = int(n)
		}
	}
	return nil
}

// indexOptions reads the parameters that say how names of indices are read.
func (c *call) indexOptions() (o cluster.IndexOptions, err error) {
	if o.IgnoreUnavailable, err = c.flag("ignore_unavailable", false); err != nil {
		return o, err
	}
	allow, err := c.flag("allow_no_indices", true)
	if o.RefuseNone = !allow; err != nil || c.query == nil || !c.query.Has("expand_wildcards") {
		return o, err
	}
	o.Wildcards, err = cluster.ParseWildcards(shorten(c.query.Get("expand_wildcards")))
	return o, err
}

// checkSearchType takes OpenSearch's two types. The first phase of the second
// one would collect frequencies of terms, and there are none.
func checkSearchType(text string) error {
	if text == "" || text == "query_then_fetch" || text == "dfs_query_then_fetch" {
		return nil
	}
	return cluster.Errorf(cluster.IllegalArgument, "No search type for [%s]", shorten(text))
}

// validate settles what goes together, and refuses what does not, as upstream
// does before anything is done.
func (s *searchBody) validate() error {
	var faults []string
	fault := func(bad bool, text string) {
		if bad {
			faults = append(faults, text)
		}
	}
	r := &s.request
	if r.Scroll > 0 {
		fault(s.trackTotal == noTotal, "disabling [track_total_hits] is not allowed in a scroll context")
		fault(r.From > 0, "using [from] is not allowed in a scroll context")
		fault(r.Size == 0, "[size] cannot be [0] in a scroll context")
		s.trackTotal = math.MaxInt64 // a scroll counts all, as upstream
	}
	if r.PointID != "" {
		fault(r.Scroll > 0, "using [point in time] is not allowed in a scroll context")
		fault(r.Index != "", "[indices] cannot be used with point in time")
		fault(r.Routing != "", "[routing] cannot be used with point in time")
		fault(r.Preference != "", "[preference] cannot be used with point in time")
	}
	if len(faults) > 0 {
		return invalid(faults...)
	}
	if err := s.checkAfter(); err != nil {
		return err
	}
	if window := r.From + r.Size; window > MaxResultWindow && r.Scroll == 0 {
		return cluster.Errorf(cluster.IllegalArgument, "Result window is too large, from + size must be less than or equal to: [%d] but was [%d].", MaxResultWindow, window)
	}
	if r.Size > MaxResultWindow {
		return cluster.Errorf(cluster.IllegalArgument, "Batch size is too large, size must be less than or equal to: [%d] but was [%d].", MaxResultWindow, r.Size)
	}
	return nil
}

// complete adds what the request's headers say, and checks the whole.
func (c *call) complete(s *searchBody) error {
	if err := s.validate(); err != nil {
		return err
	}
	if group := c.groupHeader(); len(group) > 0 {
		if s.request.GroupHeader = group[0]; len(group[0]) > MaxName {
			return cluster.Errorf(cluster.IllegalArgument, "header %s: an id of %d bytes is longer than %d", HeaderGroup, len(group[0]), MaxName)
		}
	}
	s.request.ID, s.request.OpaqueID = c.id, c.id
	return nil
}

// searchContext returns the context of a search: with its principal, if any.
func (c *call) searchContext() context.Context {
	if c.sender.User != "" || len(c.sender.Roles) > 0 {
		return wlm.WithPrincipal(c.r.Context(), c.sender)
	}
	return c.r.Context()
}

// searchFor reads the request and has it run; the answer is the caller's to
// write.
func (c *call) searchFor(s *searchBody) (*coordinator.Response, error) {
	c.search = true
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	if err := s.parse(&c.scratch.decoder, data); err != nil {
		return nil, err
	}
	if err := s.params(c); err != nil {
		return nil, err
	}
	s.request.Index = c.vars.get("index")
	return c.runFor(s)
}

// runFor has a search run that was read.
func (c *call) runFor(s *searchBody) (*coordinator.Response, error) {
	c.search = true
	if err := c.complete(s); err != nil {
		return nil, err
	}
	if err := c.ready(); err != nil {
		return nil, err
	}
	response, err := c.config.Searcher.Search(c.searchContext(), s.request)
	if rejection, ok := errors.AsType[*wlm.Rejection](err); ok {
		c.group = rejection.Group
	}
	if err != nil {
		return nil, err
	}
	c.group = response.Group
	c.header(HeaderPermit, strconv.FormatBool(response.Permit))
	return response, nil
}

// groupHeader returns the header that gives the search to a group.
func (c *call) groupHeader() []string {
	if group := c.r.Header[canonicalGroup]; len(group) > 0 || !c.config.QueryGroupAlias {
		return group
	}
	return c.r.Header[canonicalQueryGroup]
}

func (c *call) runSearch() error {
	plainTotal, err := c.flag("rest_total_hits_as_int", false)
	if err != nil {
		return err
	}
	s := newSearch(false)
	response, err := c.searchFor(s)
	if err != nil {
		return err
	}
	c.out.searchAnswer(response, s.trackTotal, plainTotal)
	return nil
}

func (c *call) runCount() error {
	response, err := c.searchFor(newSearch(true))
	if err != nil {
		return err
	}
	c.out.open('{')
	c.out.name("count").integer(response.Count)
	c.out.shards(&response.Shards)
	c.out.close('}')
	return nil
}

// searchAnswer writes the answer of a search in the order of OpenSearch.
func (e *encoder) searchAnswer(r *coordinator.Response, trackTotal int64, plainTotal bool) {
	e.open('{')
	if r.ScrollID != "" {
		e.name("_scroll_id").text(r.ScrollID)
	}
	if r.PointID != "" {
		e.name("pit_id").text(r.PointID)
	}
	e.name("took").integer(r.Took.Milliseconds())
	e.name("timed_out").boolean(r.TimedOut)
	if r.ReducePhases > 1 {
		e.name("num_reduce_phases").integer(int64(r.ReducePhases))
	}
	e.shards(&r.Shards)
	e.name("hits").open('{')
	e.total(r, trackTotal, plainTotal)
	if len(r.Hits) == 0 {
		e.name("max_score").null()
	} else {
		e.name("max_score").double(r.MaxScore)
	}
	e.name("hits").open('[')
	for i := range r.Hits {
		e.open('{')
		e.name("_index").text(r.Hits[i].Index)
		e.name("_id").text(r.Hits[i].ID)
		e.name("_score").double(r.Hits[i].Score)
		e.close('}')
	}
	e.b = append(e.b, "]}}"...)
}

// total writes hits.total: exact up to the number that is tracked.
func (e *encoder) total(r *coordinator.Response, trackTotal int64, plain bool) {
	if trackTotal == noTotal {
		return
	}
	value, relation := max(r.Total, r.Count), "eq"
	if value > trackTotal {
		value, relation = trackTotal, "gte"
	}
	if plain {
		e.name("total").integer(value)
		return
	}
	e.name("total").open('{')
	e.name("value").integer(value)
	e.name("relation").text(relation)
	e.close('}')
}

func (e *encoder) shards(s *coordinator.ShardSummary) {
	e.name("_shards").open('{')
	e.name("total").integer(int64(s.Total))
	e.name("successful").integer(int64(s.Successful))
	e.name("skipped").integer(int64(s.Skipped))
	e.name("failed").integer(int64(s.Failed))
	if len(s.Failures) > 0 {
		e.name("failures").array(func() { e.shardFailures(s.Failures) })
	}
	e.close('}')
}

func (e *encoder) shardFailures(failures []coordinator.ShardFailure) {
	for _, f := range failures {
		e.object(func() {
			e.name("shard").integer(int64(f.Shard))
			e.name("index").text(f.Index)
			e.name("node").text(f.Node)
			e.name("reason").object(func() { e.cause(f.Error) })
		})
	}
}

// failSearch writes a failed search: its causes once for each kind and reason,
// as upstream's grouped, and the status that they agree on.
func (c *call) failSearch(err *coordinator.SearchError) {
	c.status = err.Status
	grouped := groupFailures(err.Failures)
	c.out.object(func() {
		c.out.name("error").object(func() {
			c.out.name("root_cause").array(func() {
				for _, f := range grouped {
					c.out.object(func() { c.out.cause(f.Error) })
				}
			})
			c.out.name("type").text(string(coordinator.SearchFailed))
			c.out.name("reason").text(err.Reason)
			c.out.name("phase").text(err.Phase)
			c.out.name("grouped").boolean(true)
			c.out.name("failed_shards").array(func() { c.out.shardFailures(grouped) })
		})
		c.out.name("status").integer(int64(c.status))
	})
}

// groupFailures keeps the first failure of each index, kind and reason.
func groupFailures(failures []coordinator.ShardFailure) []coordinator.ShardFailure {
	type key struct {
		index string
		cluster.Error
	}
	seen := map[key]bool{}
	var grouped []coordinator.ShardFailure
	for _, f := range failures {
		if k := (key{f.Index, *f.Error}); !seen[k] {
			seen[k] = true
			grouped = append(grouped, f)
		}
	}
	return grouped
}
