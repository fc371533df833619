package coordinator_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// benchWorld has 6 shards on 4 data nodes, which are called and not sent to.
func benchWorld(b *testing.B, limit int64) *world {
	w := build(b, options{dataNodes: 4, shards: 6, quiet: true})
	w.group("g", cluster.ByUsername, limit)
	return w
}

// BenchmarkSearch is whole searches, one after the other.
func BenchmarkSearch(b *testing.B) {
	w := benchWorld(b, 1)
	defer w.close()
	ctx, r := as(b.Context(), "alice"), in("", "g")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.c.Search(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearchInBubble is whole searches of 16 clients in virtual time. Its
// timer runs outside the bubble, on the wall clock.
func BenchmarkSearchInBubble(b *testing.B) {
	const clients = 16
	for _, service := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(service.String(), func(b *testing.B) {
			b.ReportAllocs()
			var t testing.T
			synctest.Test(&t, func(*testing.T) {
				w := benchWorld(b, clients)
				defer w.close()
				ctx, r := as(context.Background(), "alice"), in("", "g")
				r.ServiceTime = service
				failed := make(chan error)
				for i := range clients {
					go func() {
						var err error
						for n := i; n < b.N && err == nil; n += clients {
							_, err = w.c.Search(ctx, r)
						}
						failed <- err
					}()
				}
				for range clients {
					if err := <-failed; err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "searches/s")
		})
	}
}

// BenchmarkThrottledSearch is searches that are refused.
func BenchmarkThrottledSearch(b *testing.B) {
	w := benchWorld(b, 1)
	defer w.close()
	ctx, cancel := context.WithCancel(as(b.Context(), "alice"))
	long := in("long", "g")
	long.ServiceTime = time.Hour
	held := w.start(ctx, long)
	for w.asked.Load() == 0 { // the permit is taken before a data node is asked
		runtime.Gosched()
	}
	r := in("", "g")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.c.Search(ctx, r); err == nil {
			b.Fatal("a search was admitted")
		}
	}
	cancel()
	<-held
}
