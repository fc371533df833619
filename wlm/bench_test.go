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

func benchState(b *testing.B, attribute cluster.Attribute, limit int64) *cluster.State {
	b.Helper()
	s := cluster.Empty()
	enabled := string(cluster.Enabled)
	for _, c := range []cluster.Command{
		&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled}}},
		&cluster.CreateGroup{Group: cluster.Group{ID: "b3gTYeQ0R1qXvJ8yKZ0cDA", Name: "analytics", ResiliencyMode: cluster.Enforced,
			ResourceLimits: map[string]float64{"cpu": 0.3, "memory": 0.4}, Throttling: &cluster.Throttling{Attribute: attribute, NodeLimit: &limit}}},
	} {
		var err error
		if s, err = cluster.Apply(s, c); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func benchThrottle(b *testing.B, s *cluster.State) *wlm.Throttle {
	b.Helper()
	t, err := wlm.New(wlm.Config{})
	if err != nil {
		b.Fatal(err)
	}
	_ = t.ApplySettings(nil, s)
	_ = t.ClusterChanged(nil, s)
	return t
}

func BenchmarkSemaphore(b *testing.B) {
	for _, keys := range []int{1, 1024} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			sems := make([]*semaphore.Weighted, keys)
			for i := range sems {
				sems[i] = semaphore.NewWeighted(1 << 30)
			}
			b.ReportAllocs()
			var n atomic.Uint32
			b.RunParallel(func(pb *testing.PB) {
				i := n.Add(1) * 7919
				for pb.Next() {
					i++
					s := sems[i&uint32(keys-1)]
					if s.TryAcquire(1) {
						s.Release(1)
					}
				}
			})
		})
	}
}

func BenchmarkBulkhead(b *testing.B) {
	for _, keys := range []int{1, 1024} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			sems := make([]bulkhead.Bulkhead[any], keys)
			for i := range sems {
				sems[i] = bulkhead.New[any](64)
			}
			b.ReportAllocs()
			var n atomic.Uint32
			b.RunParallel(func(pb *testing.PB) {
				i := n.Add(1) * 7919
				for pb.Next() {
					i++
					s := sems[i&uint32(keys-1)]
					if s.TryAcquirePermit() {
						s.ReleasePermit()
					}
				}
			})
		})
	}
}

func BenchmarkKeyed(b *testing.B) {
	for _, keys := range []int{1, 1024} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			th := benchThrottle(b, cluster.Empty())
			users := make([]string, keys)
			for i := range users {
				users[i] = fmt.Sprintf("user-%04d", i)
			}
			b.ReportAllocs()
			var n atomic.Uint32
			b.RunParallel(func(pb *testing.PB) {
				p := new(wlm.Permit)
				i := n.Add(1) * 7919
				for pb.Next() {
					i++
					if th.Acquire("b3gTYeQ0R1qXvJ8yKZ0cDA", cluster.ByUsername, users[i&uint32(keys-1)], 1<<30, p) {
						p.Release()
					}
				}
			})
		})
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, keys := range []int{1, 1024} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			s := benchState(b, cluster.ByUsername, 1<<30)
			th := benchThrottle(b, s)
			ctxs := make([]context.Context, keys)
			for i := range ctxs {
				ctxs[i] = wlm.WithPrincipal(context.Background(), wlm.Principal{User: fmt.Sprintf("user-%04d", i)})
			}
			b.ReportAllocs()
			var n atomic.Uint32
			b.RunParallel(func(pb *testing.PB) {
				p := new(wlm.Permit)
				i := n.Add(1) * 7919
				for pb.Next() {
					i++
					if err := th.Admit(ctxs[i&uint32(keys-1)], s, "b3gTYeQ0R1qXvJ8yKZ0cDA", "s", p); err != nil {
						b.Error(err)
					}
					p.Release()
				}
			})
		})
	}
}

func BenchmarkReject(b *testing.B) {
	s := benchState(b, cluster.ByUsername, 1)
	th := benchThrottle(b, s)
	ctx := wlm.WithPrincipal(context.Background(), wlm.Principal{User: "alice"})
	var held wlm.Permit
	_ = th.Admit(ctx, s, "b3gTYeQ0R1qXvJ8yKZ0cDA", "s", &held)
	b.ReportAllocs()
	var p wlm.Permit
	for b.Loop() {
		if th.Admit(ctx, s, "b3gTYeQ0R1qXvJ8yKZ0cDA", "s", &p) == nil {
			b.Fatal("admitted")
		}
	}
}
