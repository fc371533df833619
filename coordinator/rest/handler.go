package rest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

// What a server of this API waits for and reads, see [NewServer].
const (
	// MaxHeaderBytes lets a header be read that is far longer than any name
	// may be, so that its sender gets a 400 that says so.
	MaxHeaderBytes = 4 << 20
	// ReadHeaderTimeout bounds how long a client may take over its headers.
	ReadHeaderTimeout = 30 * time.Second
	// ReadTimeout bounds how long a client may take over a whole request. No
	// permit is held meanwhile; once the body is read net/http drops the bound.
	ReadTimeout = time.Minute
	// AnswerTimeout bounds how long a client may take to read its answer. The
	// permit went back before the first byte was written.
	AnswerTimeout = time.Minute
	// IdleTimeout bounds how long a connection is kept without a request.
	IdleTimeout = 5 * time.Minute
)

// NewServer returns a server of h with the bounds above. It sets no
// WriteTimeout, since net/http counts that from the request's start and a search
// may run for as long as it likes; the handler bounds the answer itself.
func NewServer(h *Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		MaxHeaderBytes:    MaxHeaderBytes,
		ReadHeaderTimeout: ReadHeaderTimeout,
		ReadTimeout:       ReadTimeout,
		IdleTimeout:       IdleTimeout,
		ErrorLog:          slog.NewLogLogger(h.config.Log.Handler(), slog.LevelDebug),
	}
}

// Handler is the HTTP API of one node. It is safe for concurrent use and
// starts no goroutine but those of a multi-search, which it waits for.
type Handler struct {
	config  Config
	guard   guard
	root    branch
	routes  []*route
	metrics http.Handler

	caughtUp atomic.Bool // the node was Ready once
	scratch  sync.Pool   // of *scratch: memory for the next call
}

// New returns the API over a node, or everything that is wrong with the
// configuration.
func New(config Config) (*Handler, error) {
	config.fillDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	h := &Handler{
		config: config,
		guard:  guard{blind: config.NoPrincipals, users: config.Users, canary: config.Canary, verified: map[string][32]byte{}},
	}
	h.routes = h.table()
	for _, r := range h.routes {
		h.root.add(r)
	}
	h.metrics = h.newMetrics()
	return h, nil
}

// Routes lists the paths of the API, in the order of the documentation.
func (h *Handler) Routes() []Route {
	list := make([]Route, len(h.routes))
	for i, r := range h.routes {
		list[i] = r.Route
	}
	return list
}

// scratch is memory that one call leaves to the next.
type scratch struct {
	answer  []byte
	decoder jsontext.Decoder // of a search's body
}

// maxKept is the largest answer or body whose memory is kept, in bytes.
const maxKept = 1 << 16

// call is one request on its way through the handler.
type call struct {
	*Handler
	w       http.ResponseWriter
	r       *http.Request
	scratch *scratch
	vars    vars
	query   url.Values
	filter  *pathFilter // nil: none
	sender  wlm.Principal

	large  bool // the body is too large for its memory to be kept
	status int
	text   bool // the answer is plain text, not JSON
	failed bool // the answer is an error, which filter_path leaves whole
	out    encoder

	groupsKey string // what an answer calls its list of groups

	// What the step rest.answered says of a search.
	search bool
	id     string
	group  string
}

func (c *call) header(name, value string) { c.w.Header()[name] = []string{value} }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, _ := h.scratch.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	c := &call{Handler: h, w: w, r: r, scratch: s, status: http.StatusOK, groupsKey: "workload_groups", out: encoder{b: s.answer[:0]}}
	route, err := c.serve()
	if err != nil {
		c.fail(err)
	}
	c.write()
	if route != nil {
		route.counts.add(c.status)
	}
	if c.search && h.config.Probe.On() {
		h.config.Probe.At(probe.Event{Step: probe.Answered, Search: c.id, Group: c.group, Detail: strconv.Itoa(c.status)})
	}
	if cap(c.out.b) <= maxKept && !c.large {
		s.answer = c.out.b
		h.scratch.Put(s)
	}
}

// serve finds out what is asked, by whom, and has it done.
func (c *call) serve() (*route, error) {
	if id := c.r.Header["X-Opaque-Id"]; len(id) > 0 {
		c.header("X-Opaque-Id", id[0])
		if c.id = id[0]; len(c.id) > MaxName {
			c.w.Header().Del("X-Opaque-Id")
			return nil, cluster.Errorf(cluster.IllegalArgument, "header X-Opaque-Id: an id of %d bytes is longer than %d", len(c.id), MaxName)
		}
	}
	route, err := c.root.find(c.r.URL, &c.vars)
	if err != nil {
		return nil, err
	}
	if c.sender, err = c.guard.principal(c.r); err != nil {
		return route, err
	}
	if route == nil {
		return nil, noHandler(c.r.Method, c.r.URL.RequestURI())
	}
	handler := route.handlers[c.r.Method]
	if handler == nil {
		return route, route.wrongMethod(c.r.Method, c.r.URL.RequestURI())
	}
	if err := c.parseQuery(route); err != nil {
		return route, err
	}
	return route, handler(c)
}

// parseQuery refuses parameters that the route does not have, or that come
// twice.
func (c *call) parseQuery(route *route) error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return cluster.Errorf(cluster.IllegalArgument, "query string is not percent-encoded: %v", err)
	}
	var unknown []string
	for name, values := range query {
		if !route.takes(name) {
			unknown = append(unknown, name)
		} else if len(values) > 1 {
			return cluster.Errorf(cluster.IllegalArgument, "request [%s] contains parameter [%s] %d times", shorten(c.r.URL.Path), name, len(values))
		}
	}
	if len(unknown) > 0 {
		return unrecognized(c.r.URL.Path, "parameter", unknown, route.known())
	}
	c.query = query
	if err := c.parseCommon(); err != nil {
		c.query = nil
		return err
	}
	return nil
}

// parseCommon reads the parameters that every route takes. A table comes as
// text unless JSON is asked for; all else is JSON.
func (c *call) parseCommon() (err error) {
	for _, name := range commonFlags {
		if _, err := c.flag(name, false); err != nil {
			return err
		}
	}
	if text := c.query.Get("filter_path"); text != "" {
		if c.filter, err = parsePathFilter(text); err != nil {
			return err
		}
	}
	if format := c.query.Get("format"); format != "" && format != "json" && format != "text" {
		return cluster.Errorf(cluster.IllegalArgument, "format [%s] is unknown: one of [text, json]", shorten(format))
	}
	return nil
}

// flag reads a boolean parameter; one without a value is true.
func (c *call) flag(name string, absent bool) (bool, error) {
	if c.query == nil || !c.query.Has(name) {
		return absent, nil
	}
	switch v := c.query.Get(name); v {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, cluster.Errorf(cluster.IllegalArgument, "Failed to parse value [%s] of parameter [%s] as only [true] or [false] are allowed.", shorten(v), name)
	}
}

// number reads a parameter that is a plain integer.
func (c *call) number(name string) (n int64, given bool, err error) {
	if c.query == nil || !c.query.Has(name) {
		return 0, false, nil
	}
	n, ok := plainInteger(c.query.Get(name))
	if !ok {
		return 0, true, c.noInt(name)
	}
	return n, true, nil
}

func (c *call) noInt(name string) error {
	return cluster.Errorf(cluster.IllegalArgument, "Failed to parse int parameter [%s] with value [%s]", name, shorten(c.query.Get(name)))
}

// duration reads a parameter that is one of OpenSearch's time values.
func (c *call) duration(name string, absent time.Duration) (time.Duration, error) {
	if c.query == nil || !c.query.Has(name) {
		return absent, nil
	}
	return parseTime(name, c.query.Get(name))
}

func parseTime(name, value string) (time.Duration, error) {
	d, err := cluster.ParseTime(value)
	if err != nil {
		return 0, cluster.Errorf(cluster.IllegalArgument, "failed to parse [%s] as a time value: %v", name, err)
	}
	return d, nil
}

// list reads a comma list; nil for none.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// body reads the request's body, which may be empty.
func (c *call) body() ([]byte, error) {
	if c.r.Body == nil || c.r.Body == http.NoBody || c.r.ContentLength == 0 {
		return nil, nil
	}
	size := c.r.ContentLength
	if size < 0 || size > MaxBody {
		size = 512
	}
	data, err := readAll(io.LimitReader(c.r.Body, MaxBody+1), int(size))
	if err != nil {
		return nil, cluster.Errorf(cluster.Parsing, "request body cannot be read: %v", err)
	}
	if len(data) > MaxBody {
		c.header("Connection", "close")
		return nil, tooLong(data)
	}
	c.large = len(data) > maxKept
	return data, nil
}

// readAll is io.ReadAll into a buffer of the size that was announced.
func readAll(r io.Reader, size int) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

const (
	typeJSON = "application/json; charset=UTF-8"
	typeText = "text/plain; charset=UTF-8"
)

// write sends the answer.
func (c *call) write() {
	body := c.out.b
	if !c.text {
		if c.filter != nil && !c.failed && len(body) > 0 {
			body = c.filter.apply(body)
		}
		if laidOut, err := c.flag("pretty", false); err == nil && laidOut {
			body = pretty(body)
		}
	}
	contentType := typeJSON
	if c.text {
		contentType = typeText
	}
	c.header("Content-Type", contentType)
	c.header("Content-Length", strconv.Itoa(len(body)))
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(AnswerTimeout)) // a writer without deadlines has no client to wait for
	c.w.WriteHeader(c.status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // the client is gone, and nobody is left to tell
	}
	if c.search && c.config.Probe.On() {
		_ = control.Flush() // rest.answered stands after the answer has left
	}
}

// ready refuses what a node must not answer before it has caught up. A node
// that has will not be asked again.
func (c *call) ready() error {
	if !c.caughtUp.Load() && c.config.Cluster.Status().Ready {
		c.caughtUp.Store(true)
	}
	if !c.caughtUp.Load() {
		return cluster.Errorf(cluster.ClusterBlock, "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];")
	}
	return nil
}

// propose has a command checked here and carried out by the leader.
func (c *call) propose(command cluster.Command) (*Result, error) {
	if err := command.Validate(); err != nil {
		return nil, err
	}
	result, err := c.config.Cluster.Propose(c.r.Context(), command)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cluster.KindName(command), err)
	}
	return result, nil
}

// acknowledge writes the answer of a command that has no entry to show.
func (c *call) acknowledge(command cluster.Command) error {
	result, err := c.propose(command)
	if err != nil {
		return err
	}
	c.out.object(func() { c.out.name("acknowledged").boolean(result.Acknowledged) })
	return nil
}
