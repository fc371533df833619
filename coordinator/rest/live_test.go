package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// heldPeers are data nodes that answer once they are let go.
type heldPeers struct {
	asked, left atomic.Int64
	letGo       chan struct{}
}

func (p *heldPeers) Search(ctx context.Context, _ string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	p.asked.Add(1)
	defer p.left.Add(1)
	select {
	case <-p.letGo:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answer := &wire.SearchAnswer{}
	for _, s := range r.Shards {
		answer.Shards = append(answer.Shards, wire.ShardAnswer{Shard: s, Total: 1, Searched: 1})
	}
	return answer, nil
}

// liveWorld is a handler over the real coordinator and throttle, with one
// group, one shard and data nodes that hold their answers.
type liveWorld struct {
	*world
	throttle    *wlm.Throttle
	coordinator *coordinator.Coordinator
	peers       *heldPeers
	group       string
}

func newLiveWorld(t *testing.T, throttling string, hooks ...probe.Hook) *liveWorld {
	l := &liveWorld{peers: &heldPeers{letGo: make(chan struct{})}}
	switches, err := wlm.Profile("reviewed")
	require.NoError(t, err)
	l.throttle, err = wlm.New(wlm.Config{Switches: switches})
	require.NoError(t, err)
	var c *coordinator.Coordinator
	l.world = newWorld(t, func(config *rest.Config) {
		c = coordinator.New(coordinator.Config{Node: "m1", States: config.Cluster, Peers: l.peers, Throttle: l.throttle})
		config.Searcher, config.Permits, config.Outcomes = c, l.throttle.Permits, c.Outcomes
		config.Probe = probe.New("m1", hooks...)
	})
	t.Cleanup(c.Close)
	l.coordinator = c
	l.cluster.apply(t, &cluster.CreateIndex{Name: "logs", Shards: 1})
	r := l.createGroup("g", throttling)
	require.Equal(t, http.StatusOK, r.Code, r.Body)
	l.group = l.cluster.State().GroupNamed("g").ID
	require.NoError(t, l.throttle.ApplySettings(cluster.Empty(), l.cluster.State()))
	require.NoError(t, l.throttle.ClusterChanged(cluster.Empty(), l.cluster.State()))
	return l
}

// search starts a search of the group and returns where its answer comes.
func (l *liveWorld) search(headers ...string) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	r := httptest.NewRequest(http.MethodGet, "/_search", nil)
	r.Header.Set(rest.HeaderGroup, l.group)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	go func() {
		recorder := httptest.NewRecorder()
		l.handler.ServeHTTP(recorder, r)
		answer <- recorder
	}()
	synctest.Wait()
	return answer
}

// C16, C17: each name has its own bucket, the same bytes always share one.
func TestC16_C17_EachNameHasItsOwnBucket(t *testing.T) {
	for attribute, header := range map[string]string{"username": rest.HeaderUser, "role": rest.HeaderRole} {
		t.Run(attribute, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := append(append([]string{"a:b", "CN=x,OU=y,DC=z", "x", "y"}, separators...), lookalikes...)
				l := newLiveWorld(t, `{"attribute":"`+attribute+`","node_limit":1}`)
				var first []<-chan *httptest.ResponseRecorder
				for _, name := range names {
					first = append(first, l.search(header, percent(name)))
				}
				require.Equal(t, []wlm.GroupPermits{{Group: l.group, Buckets: len(names), Held: len(names)}}, l.throttle.Permits())
				for _, name := range names {
					second := <-l.search(header, percent(name))
					require.Equal(t, http.StatusTooManyRequests, second.Code, "%q", name)
					require.Empty(t, second.Header().Get(rest.HeaderPermit))
				}
				l.do(http.MethodGet, "/_wlm/stats", "")
				l.do(http.MethodGet, "/_wlmsim/state", "")
				close(l.peers.letGo)
				for i, name := range names {
					r := <-first[i]
					require.Equal(t, http.StatusOK, r.Code, "%q", name)
					require.Equal(t, "true", r.Header().Get(rest.HeaderPermit))
				}
				require.Empty(t, l.throttle.Permits())
			})
		})
	}
}

// C33: the greatest limit works: two searches are admitted.
func TestC33_TheGreatestLimitAdmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"group","node_limit":2147483647}`)
		one, two := l.search(), l.search()
		require.Equal(t, []wlm.GroupPermits{{Group: l.group, Buckets: 1, Held: 2}}, l.throttle.Permits())
		close(l.peers.letGo)
		require.Equal(t, http.StatusOK, (<-one).Code)
		require.Equal(t, http.StatusOK, (<-two).Code)
	})
}

// pipes is a listener of in-memory connections without any buffer: what the
// client does not read, the server cannot write.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve starts the API's server and returns a way to connect to it.
func (l *liveWorld) serve(t *testing.T) (dial func() net.Conn) {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := rest.NewServer(l.handler)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(p) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return func() net.Conn {
		client, server := net.Pipe()
		p.conns <- server
		t.Cleanup(func() { client.Close() })
		return client
	}
}

func (l *liveWorld) searchText(headers string) string {
	return "GET /_search HTTP/1.1\r\nHost: x\r\n" + rest.HeaderGroup + ": " + l.group + "\r\n" + headers + "\r\n"
}

// Promise 6: a client that does not read its answer holds no permit, and its
// connection ends.
func TestAClientThatDoesNotReadHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"group","node_limit":1}`)
		conn := l.serve(t)()
		_, err := io.WriteString(conn, l.searchText(""))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, l.throttle.Permits(), 1)
		close(l.peers.letGo)
		synctest.Wait()
		require.Empty(t, l.throttle.Permits())
		time.Sleep(rest.AnswerTimeout + time.Second)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "the server still waits for its client")
	})
}

// The permit is back, and the answer has left, when rest.answered is reached.
func TestStepAnsweredStandsAfterTheAnswerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holds := &probe.Holds{}
		l := newLiveWorld(t, `{"attribute":"group","node_limit":1}`, holds)
		require.NoError(t, holds.Hold(probe.Answered, probe.Filter{}))
		close(l.peers.letGo)
		conn := l.serve(t)()
		_, err := io.WriteString(conn, l.searchText("X-Opaque-Id: one\r\n"))
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		requireJSON(t, body)
		synctest.Wait()
		require.Len(t, holds.Parked(probe.Answered), 1)
		require.Empty(t, l.throttle.Permits())
		holds.Close()
	})
}

// A connection serves searches of ten minutes with ten minutes between them:
// no bound of the server counts against either.
func TestLongSearchesAndLongPausesOnOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"group","node_limit":1}`)
		conn := l.serve(t)()
		answers := bufio.NewReader(conn)
		for range 3 {
			body := `{"size":1}`
			_, err := io.WriteString(conn, fmt.Sprintf("POST /_search HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s: %s\r\n\r\n%s", len(body), rest.HeaderGroup, l.group, body))
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
			require.Len(t, l.throttle.Permits(), 1, "the search was cut off")
			l.peers.letGo <- struct{}{}
			r, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			_, err = io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, r.StatusCode)
			time.Sleep(rest.IdleTimeout - time.Second)
		}
	})
}

// The client's departure ends the search, and its permit is back.
func TestAClientThatLeavesEndsItsSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"group","node_limit":1}`)
		conn := l.serve(t)()
		_, err := io.WriteString(conn, l.searchText(""))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, l.throttle.Permits(), 1)
		require.NoError(t, conn.Close())
		synctest.Wait()
		require.Empty(t, l.throttle.Permits())
		require.Equal(t, l.peers.asked.Load(), l.peers.left.Load())
	})
}

// A body that does not come ends in a refusal, and held nothing.
func TestABodyThatDoesNotComeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"group","node_limit":1}`)
		conn := l.serve(t)()
		_, err := io.WriteString(conn, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, r.StatusCode)
		require.Empty(t, l.throttle.Permits())
		require.Zero(t, l.peers.asked.Load())
	})
}

// C20: the server reads headers that are long enough for their sender to hear
// what is wrong.
func TestC20_TheServerReadsLongHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveWorld(t, `{"attribute":"username","node_limit":1}`)
		conn := l.serve(t)()
		go func() {
			_, _ = io.WriteString(conn, l.searchText(rest.HeaderUser+": "+strings.Repeat("n", 1<<20)+"\r\n"))
		}()
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, r.StatusCode)
		require.Empty(t, l.throttle.Permits())
	})
}
