package compat_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// published is the OpenAPI document of OpenSearch as opensearch-go ships it,
// with its paths by their shape: variables without their names.
type published struct {
	*openapi3.T
	paths map[string]string
}

func readPublished(t *testing.T) *published {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/opensearch-project/opensearch-go/v4").Output()
	require.NoError(t, err)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile(filepath.Join(strings.TrimSpace(string(out)), "opensearch-openapi.yaml"))
	require.NoError(t, err)
	p := &published{T: doc, paths: map[string]string{}}
	for path := range doc.Paths.Map() {
		p.paths[shape(path)] = path
	}
	return p
}

// shape is a path without the names of its variables.
func shape(path string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}

// operation returns what the document says of a route's method, or nil.
func (p *published) operation(pattern, method string) *routers.Route {
	path, known := p.paths[shape(pattern)]
	if !known {
		return nil
	}
	item := p.Paths.Value(path)
	operation := item.GetOperation(method)
	if operation == nil {
		return nil
	}
	return &routers.Route{Spec: p.T, Path: path, PathItem: item, Method: method, Operation: operation}
}

// served lists the API's routes, with the alias.
func served(t *testing.T) []rest.Route {
	t.Helper()
	h, err := rest.New(rest.Config{
		Cluster: struct{ rest.Cluster }{}, Searcher: struct{ rest.Searcher }{}, Contexts: struct{ rest.Contexts }{}, QueryGroupAlias: true,
		Permits: func() []wlm.GroupPermits { return nil }, Outcomes: func() []coordinator.GroupOutcomes { return nil },
	})
	require.NoError(t, err)
	return h.Routes()
}

// exchange is a request of the table, to the first node. Its path is its
// route's pattern with the variables filled in. KEPT in it stands for what an
// answer before it had where keep, an expression with one group, matched.
type exchange struct {
	pattern, method, target, body string
	status                        int
	keep                          string
}

func (x *exchange) String() string { return x.method + " " + x.target }

// vars returns the variables of the path by the names that the document gives
// them.
func (x *exchange) vars(documented string) map[string]string {
	path, _, _ := strings.Cut(x.target, "?")
	values := strings.Split(strings.Trim(path, "/"), "/")
	vars := map[string]string{}
	for i, s := range strings.Split(strings.Trim(documented, "/"), "/") {
		if name, variable := strings.CutPrefix(s, "{"); variable {
			vars[strings.TrimSuffix(name, "}")] = values[i]
		}
	}
	return vars
}

// unreadable are routes whose requests the validator cannot hold to the
// document, each with the reason. Their answers are held to it all the same.
var unreadable = map[string]string{
	"/_nodes/{node}/{metric}": "a metric is one of 13 schemas in the document, and any word fits each",
	"/_msearch":               "a line is one of two schemas in the document, and any object fits both",
	"/{index}/_msearch":       "as above",
}

// odd are refusals whose bodies are OpenSearch's own and not what the document
// says of errors, each with the reason.
var odd = map[string]string{
	"DELETE /_search/scroll": "a clear that frees nothing is 404 with its ordinary answer",
	"POST /_search/scroll":   "the document wants primary in each of the failed shards, which OpenSearch writes only elsewhere",
}

// Every route that is served and that the document knows takes the document's
// requests and gives its answers.
func TestRequestsAndAnswersFitThePublishedDocument(t *testing.T) {
	doc := readPublished(t)
	c := up(t, "--query-group-alias", "--nodes", "2")
	c.searchSlowly(t)
	asked := map[string]bool{}
	kept := ""
	for i, x := range exchanges {
		t.Run(fmt.Sprint(i, " ", &x), func(t *testing.T) {
			asked[x.method+" "+x.pattern] = true
			x.target, x.body = strings.ReplaceAll(x.target, "KEPT", kept), strings.ReplaceAll(x.body, "KEPT", kept)
			body := doc.check(t, c.urls[0], &x)
			if x.keep != "" {
				found := regexp.MustCompile(x.keep).FindSubmatch(body)
				require.NotNil(t, found, "%s", body)
				kept = string(found[1])
			}
		})
	}
	for _, route := range served(t) {
		for _, method := range route.Methods {
			if doc.operation(route.Pattern, method) != nil {
				require.True(t, asked[method+" "+route.Pattern], "no exchange of the table is with %s %s", method, route.Pattern)
			}
		}
	}
}

// searchSlowly starts a search that is a task of the first node from now on,
// until it is cancelled or the test ends.
func (c liveCluster) searchSlowly(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.urls[0]+"/logs/_search", strings.NewReader(`{"ext":{"wlmsim":{"service_time":"10m"}}}`))
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	for listed := false; !listed; {
		response, err := http.Get(c.urls[0] + "/_tasks")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		listed = bytes.Contains(body, []byte("indices:data/read/search"))
	}
}

// check sends a request that is valid by the document, holds the answer to it
// and returns its body.
func (p *published) check(t *testing.T, url string, x *exchange) []byte {
	route := p.operation(x.pattern, x.method)
	require.NotNil(t, route, "the document does not know %s %s", x.method, x.pattern)
	request, err := http.NewRequest(x.method, url+x.target, strings.NewReader(x.body))
	require.NoError(t, err)
	if x.body != "" {
		request.Header.Set("Content-Type", "application/json")
		if strings.Contains(x.pattern, "_msearch") {
			request.Header.Set("Content-Type", "application/x-ndjson")
		}
	}
	request.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("bob:any")))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: x.vars(route.Path), Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true, SkipSettingDefaults: true},
	}
	ctx := context.Background()
	err = openapi3filter.ValidateRequest(ctx, input)
	if reason, known := unreadable[x.pattern]; known {
		require.Error(t, err, "it can be read by now: %s", reason)
	} else {
		require.NoError(t, err)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, x.status, response.StatusCode, "%s", body)
	if response.StatusCode >= 400 {
		p.checkError(t, x, body)
		return body
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: response.StatusCode, Header: response.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	require.NoError(t, openapi3filter.ValidateResponse(ctx, output), "%s", body)
	return body
}

// checkError holds the body of an error to the document's one form for them.
// HEAD has none.
func (p *published) checkError(t *testing.T, x *exchange, body []byte) {
	if x.method == http.MethodHead {
		require.Empty(t, body)
		return
	}
	var value any
	require.NoError(t, json.Unmarshal(body, &value))
	err := p.ValidateSchemaJSON(p.Components.Schemas["_common___ErrorResponseBase"].Value, value)
	if reason, known := odd[x.String()]; known {
		require.Error(t, err, "it fits by now: %s", reason)
		return
	}
	require.NoError(t, err, "%s", body)
}

// The document knows nothing of these routes, so that no exchange is held to
// it: they are newer, or the project's own.
func TestRoutesThatTheDocumentDoesNotKnow(t *testing.T) {
	doc := readPublished(t)
	var unknown []string
	for _, route := range served(t) {
		for _, method := range route.Methods {
			if doc.operation(route.Pattern, method) == nil {
				unknown = append(unknown, method+" "+route.Pattern)
			}
		}
	}
	slices.Sort(unknown)
	require.Equal(t, undocumented, unknown)
}

// The check has teeth: an answer with a field of the wrong type, or without a
// field, and a request with a parameter of the wrong type, are refused.
func TestTheDocumentRefusesWhatDoesNotFit(t *testing.T) {
	doc := readPublished(t)
	route := doc.operation("/_wlm/query_group/{name}", http.MethodPut)
	require.NotNil(t, route)
	answer := func(body string) error {
		request, err := http.NewRequest(http.MethodPut, "http://x/_wlm/query_group/g", nil)
		require.NoError(t, err)
		return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: route},
			Status:                 http.StatusOK, Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}},
			Body: io.NopCloser(strings.NewReader(body)),
		})
	}
	good := map[string]any{"_id": "x", "name": "g", "resiliency_mode": "soft", "resource_limits": map[string]any{"cpu": 0.3}, "updated_at": 1}
	require.NoError(t, answer(text(t, good)))
	for name, value := range map[string]any{"_id": 1, "resiliency_mode": "strict", "resource_limits": map[string]any{"cpu": "0.3"}, "updated_at": nil} {
		bad := maps.Clone(good)
		if bad[name] = value; value == nil {
			delete(bad, name)
		}
		require.Error(t, answer(text(t, bad)), name)
	}
	health := doc.operation("/_cluster/health", http.MethodGet)
	request, err := http.NewRequest(http.MethodGet, "http://x/_cluster/health?local=perhaps", nil)
	require.NoError(t, err)
	require.Error(t, openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{Request: request, Route: health}))
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
