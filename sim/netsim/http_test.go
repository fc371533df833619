package netsim_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/netsim"
)

// serve runs an HTTP server on a host, and returns what ends and waits for it.
func serve(h *netsim.Host, handler http.HandlerFunc) (stop func()) {
	l := must(h.Listen(9200))
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // the stop below ends it, or a crash of the host
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

func get(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestHTTPTakesOneRoundTripToDialAndOneToAskThenKeepsTheConnection(t *testing.T) {
	inBubble(t, netsim.Config{Link: exactly(10 * time.Millisecond)}, func(n *netsim.Network) {
		stop := serve(n.Host("m1"), func(w http.ResponseWriter, r *http.Request) {
			body := must(io.ReadAll(r.Body))
			fmt.Fprintf(w, "%s %d from %s", r.Method, len(body), strings.Split(r.RemoteAddr, ":")[0])
		})
		defer stop()
		client := &http.Client{Transport: n.Host("client").HTTPTransport()}
		defer client.CloseIdleConnections()

		start := time.Now()
		require.Equal(t, "GET 0 from 10.0.0.2", must(get(client, "http://m1:9200/")))
		require.Equal(t, 40*time.Millisecond, time.Since(start).Round(time.Millisecond))
		start = time.Now()
		require.Equal(t, "GET 0 from 10.0.0.2", must(get(client, "http://10.0.0.1:9200/")))
		require.Equal(t, "GET 0 from 10.0.0.2", must(get(client, "http://m1:9200/")))
		require.Equal(t, 60*time.Millisecond, time.Since(start).Round(time.Millisecond), "the address is another host to net/http, the name is kept alive")
		require.EqualValues(t, 2, n.Stats().Dials)

		response := must(client.Post("http://m1:9200/", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20))))
		require.Equal(t, "POST 1048576 from 10.0.0.2", string(must(io.ReadAll(response.Body))), "larger than the window")
		check(response.Body.Close())
	})
}

func TestHTTPSeesRefusalsTimeoutsAndCuts(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		client := &http.Client{Transport: n.Host("client").HTTPTransport(), Timeout: 5 * time.Second}
		defer client.CloseIdleConnections()
		m1 := n.Host("m1")
		_, err := get(client, "http://m1:9200/")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)

		left := make(chan struct{}, 1)
		stop := serve(m1, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				left <- struct{}{}
				return
			}
			fmt.Fprint(w, "answer")
		})
		require.Equal(t, "answer", must(get(client, "http://m1:9200/")))

		// The server learns that a client has left, from the end of its stream.
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		request := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://m1:9200/slow", nil))
		_, err = client.Do(request)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-left

		// A cut is silence, until the client's own timeout.
		cut := must(n.Partition([]string{"client"}, []string{"m1"}))
		start := time.Now()
		_, err = get(client, "http://m1:9200/")
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		require.Equal(t, 5*time.Second, time.Since(start))
		cut.Heal()
		require.Equal(t, "answer", must(get(client, "http://m1:9200/")))

		// A crash is a reset, and the next dial is refused.
		m1.Crash()
		_, err = get(client, "http://m1:9200/")
		require.Error(t, err)
		_, err = get(client, "http://m1:9200/")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		stop()

		m1.Restart()
		stop = serve(m1, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "again") })
		defer stop()
		require.Equal(t, "again", must(get(client, "http://m1:9200/")))
	})
}

func TestHTTPDeadlinesOfTheServerAreVirtual(t *testing.T) {
	inBubble(t, netsim.Config{}, func(n *netsim.Network) {
		l := must(n.Host("m1").Listen(9200))
		server := &http.Server{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Hour}
		done := make(chan error)
		go func() { done <- server.Serve(l) }()
		conn := must(n.Host("client").Dial(background, "m1:9200"))
		start := time.Now()
		must(conn.Write([]byte("GET / HTTP/1.1\r\n")))
		must(io.ReadAll(conn))
		require.InDelta(t, time.Minute, time.Since(start), float64(time.Second))
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		check(server.Shutdown(ctx))
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
}

func BenchmarkHTTP(b *testing.B) {
	b.ReportAllocs()
	inBubble(b, netsim.Config{}, func(n *netsim.Network) {
		stop := serve(n.Host("m1"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "answer") })
		defer stop()
		client := &http.Client{Transport: n.Host("client").HTTPTransport()}
		defer client.CloseIdleConnections()
		for range b.N {
			must(get(client, "http://m1:9200/"))
		}
	})
}
