package wlm_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// benchGroup is an id as nodes make them.
const benchGroup = "b3gTYeQ0R1qXvJ8yKZ0cDA"

// BenchmarkAcquireRelease takes and gives back one permit, beside two peers
// that have no key: of 1,024 they are given theirs by index. Run with -cpu 1,2.
// The budget: keyed at the most 2.5 times semaphore, and no allocation.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, buckets := range []int{1, 1024} {
		for _, peer := range []struct {
			name string
			make func(b *testing.B, buckets int) func(i int, p *wlm.Permit)
		}{{"semaphore", semaphores}, {"bulkhead", bulkheads}, {"keyed", keyed("exact")}, {"keyed_rollback", keyed("rollback")}} {
			b.Run(fmt.Sprintf("of=%s/buckets=%d", peer.name, buckets), func(b *testing.B) {
				once := peer.make(b, buckets)
				var workers atomic.Int64
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					p := new(wlm.Permit)
					for i := int(workers.Add(1)) * 7919; pb.Next(); i++ {
						once(i%buckets, p)
					}
				})
			})
		}
	}
}

func semaphores(_ *testing.B, buckets int) func(int, *wlm.Permit) {
	all := make([]*semaphore.Weighted, buckets)
	for i := range all {
		all[i] = semaphore.NewWeighted(64)
	}
	return func(i int, _ *wlm.Permit) {
		if all[i].TryAcquire(1) {
			all[i].Release(1)
		}
	}
}

func bulkheads(_ *testing.B, buckets int) func(int, *wlm.Permit) {
	all := make([]bulkhead.Bulkhead[any], buckets)
	for i := range all {
		all[i] = bulkhead.New[any](64)
	}
	return func(i int, _ *wlm.Permit) {
		if all[i].TryAcquirePermit() {
			all[i].ReleasePermit()
		}
	}
}

func keyed(acquire string) func(*testing.B, int) func(int, *wlm.Permit) {
	return func(b *testing.B, buckets int) func(int, *wlm.Permit) {
		th := throttle(b, wlm.Config{Switches: with(b, "acquire", acquire)}, cluster.Empty())
		users := make([]string, buckets)
		for i := range users {
			users[i] = fmt.Sprintf("user-%04d", i)
		}
		return func(i int, p *wlm.Permit) {
			if th.Acquire(benchGroup, cluster.ByUsername, users[i], 64, p) {
				p.Release()
			}
		}
	}
}

// benchThrottle returns a throttle and a state with one group.
func benchThrottle(b *testing.B, limit int64) (*wlm.Throttle, *cluster.State) {
	b.Helper()
	g := group("analytics", cluster.ByUsername, limit)
	g.ID, g.ResourceLimits = benchGroup, map[string]float64{"cpu": 0.3, "memory": 0.4}
	s := enabled(b, g)
	return throttle(b, wlm.Config{}, s), s
}

// BenchmarkAdmit is the whole way of an admitted search: decide, take, give
// back.
func BenchmarkAdmit(b *testing.B) {
	th, s := benchThrottle(b, 64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx, p := user("alice"), new(wlm.Permit)
		for pb.Next() {
			if th.Admit(ctx, s, benchGroup, "search", p) == nil {
				p.Release()
			}
		}
	})
}

// BenchmarkReject is the whole way of a refused search: decide, look, count.
func BenchmarkReject(b *testing.B) {
	th, s := benchThrottle(b, 1)
	if err := th.Admit(user("alice"), s, benchGroup, "held", new(wlm.Permit)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx, p := user("alice"), new(wlm.Permit)
		for pb.Next() {
			if th.Admit(ctx, s, benchGroup, "search", p) == nil {
				b.Error("admitted")
			}
		}
	})
}

// BenchmarkAdmitFree is a search that needs no permit.
func BenchmarkAdmitFree(b *testing.B) {
	th, s := benchThrottle(b, 1)
	b.ReportAllocs()
	var p wlm.Permit
	for b.Loop() {
		if th.Admit(context.Background(), s, benchGroup, "search", &p) != nil {
			b.Fatal("refused")
		}
	}
}
