package rest_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

var update = flag.Bool("update", false, "write what the API answers into testdata/golden")

// A golden file is a list of exchanges with one node, in order:
//
//	# why this is here
//	!directive for the fake cluster, as in (*exchange).direct
//	METHOD /path
//	Header: value
//	body
//	----
//	status, state version
//	Header: value
//	body
//
// with an empty line after each.
type exchange struct {
	comments, directives, headers []string
	method, target, body          string
	want                          string
}

var headerLine = regexp.MustCompile(`^[A-Za-z-]+: `)

// shown are the headers of an answer that a golden file has.
var shown = []string{"Allow", "WWW-Authenticate", "X-Opaque-Id", "X-Wlmsim-Permit"}

func TestGoldenExchanges(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			w := newWorld(t, func(c *rest.Config) {
				c.QueryGroupAlias = filepath.Base(file) == "query_group.txt"
				c.Pool = func() rest.Pool {
					return rest.Pool{Workers: 64, Queue: 1000, Active: 64, Queued: 7, Rejected: 1, Completed: 123}
				}
			})
			var out strings.Builder
			for _, x := range parseExchanges(t, string(text)) {
				got := x.play(w)
				if !*update {
					require.Equal(t, x.want, got, "%s %s\n%s", x.method, x.target, x.body)
				}
				x.print(&out, got)
			}
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
				return
			}
			require.Equal(t, string(text), out.String(), "the file is not as it would be written")
		})
	}
}

func parseExchanges(t *testing.T, text string) (list []*exchange) {
	for i, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		x := &exchange{}
		input, want, found := strings.Cut(block+"\n", "----\n")
		require.True(t, found, "block %d has no line ----:\n%s", i+1, block)
		x.want = want
		var body []string
		for _, line := range strings.Split(strings.TrimSuffix(input, "\n"), "\n") {
			switch {
			case x.method == "" && strings.HasPrefix(line, "#"):
				x.comments = append(x.comments, line)
			case x.method == "" && strings.HasPrefix(line, "!"):
				x.directives = append(x.directives, line)
			case x.method == "":
				x.method, x.target, found = strings.Cut(line, " ")
				require.True(t, found, "block %d: %q", i+1, line)
			case len(body) == 0 && headerLine.MatchString(line):
				x.headers = append(x.headers, line)
			default:
				body = append(body, line)
			}
		}
		x.body = strings.Join(body, "\n")
		list = append(list, x)
	}
	return list
}

func (x *exchange) play(w *world) string {
	for _, d := range x.directives {
		x.direct(w, d)
	}
	var headers []string
	for _, h := range x.headers {
		name, value, _ := strings.Cut(h, ": ")
		headers = append(headers, name, value)
	}
	return x.render(w, w.do(x.method, x.target, x.body, headers...))
}

// direct changes the fakes.
func (x *exchange) direct(w *world, directive string) {
	f := w.cluster
	switch word, rest, _ := strings.Cut(strings.TrimPrefix(directive, "!"), " "); word {
	case "ready":
		f.ready = rest == "true"
	case "leader":
		f.leader = rest
	case "d1":
		f.d1Dead = rest == "dead"
	case "acknowledged":
		f.unsynced = rest == "false"
	case "search":
		w.searcher.answer = rest
	case "contexts":
		w.contexts.found, _ = strconv.Atoi(rest)
	case "propose":
		f.broken = map[string]error{
			"fine":    nil,
			"lost":    cluster.Errorf(cluster.OutcomeUnknown, "the leader m2 was lost"),
			"refused": cluster.Errorf(cluster.NotDiscovered, "no leader was found within 30s"),
			"odd":     fmt.Errorf("something else"),
		}[rest]
	default:
		w.t.Fatalf("unknown directive %q", directive)
	}
}

func (x *exchange) render(w *world, r *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d, version %d\n", r.Code, w.cluster.State().Version())
	for _, name := range shown {
		if v := r.Header().Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	if body := bodyOf(r); body != "" {
		b.WriteString(body + "\n")
	}
	return b.String()
}

func (x *exchange) print(out *strings.Builder, got string) {
	if out.Len() > 0 {
		out.WriteByte('\n')
	}
	for _, list := range [][]string{x.comments, x.directives, {x.method + " " + x.target}, x.headers} {
		for _, line := range list {
			out.WriteString(line + "\n")
		}
	}
	if x.body != "" {
		out.WriteString(x.body + "\n")
	}
	out.WriteString("----\n" + got)
}
