package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// instant answers at once with ten hits, or with a rejection.
type instant struct{ full bool }

func (s instant) Search(context.Context, coordinator.Request) (*coordinator.Response, error) {
	if s.full {
		return nil, &wlm.Rejection{Group: "id-x", Limit: 10, Counted: true}
	}
	r := &coordinator.Response{Took: 5 * time.Millisecond, Group: "id-x", Permit: true, Shards: coordinator.ShardSummary{Total: 6, Successful: 6}, Total: 10000, Relation: "gte", MaxScore: 9.75, Count: 123456}
	for i := range 10 {
		r.Hits = append(r.Hits, coordinator.Hit{Index: "logs", ID: "logs-3-123456", Score: 9.75 - float64(i)/4})
	}
	return r, nil
}

// blank is a writer that keeps nothing.
type blank struct {
	header http.Header
	status int
}

func (b *blank) SetWriteDeadline(time.Time) error { return nil }

func (b *blank) Header() http.Header         { return b.header }
func (b *blank) WriteHeader(status int)      { b.status = status }
func (b *blank) Write(p []byte) (int, error) { return len(p), nil }

// The handler's own work on a search and on a 429: everything but the socket
// and the search.
func BenchmarkHandler(b *testing.B) {
	for _, c := range []struct {
		name, body string
		full       bool
		status     int
	}{
		{"search/no_body", "", false, 200},
		{"search/body", `{"query":{"match":{"message":"error"}},"size":10}`, false, 200},
		{"throttled/no_body", "", true, 429},
		{"throttled/body", `{"query":{"match":{"message":"error"}},"size":10}`, true, 429},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, func(config *rest.Config) { config.Searcher = instant{c.full} })
			r := httptest.NewRequest(http.MethodPost, "/logs/_search", nil)
			r.Header.Set(rest.HeaderUser, "alice")
			r.Header.Set("X-Opaque-Id", "some-id")
			r.ContentLength = int64(len(c.body))
			answer := &blank{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body := strings.NewReader(c.body)
				r.Body = nopCloser{body}
				w.handler.ServeHTTP(answer, r)
			}
			if answer.status != c.status {
				b.Fatalf("answered with %d", answer.status)
			}
		})
	}
}

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }
