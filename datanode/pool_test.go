package datanode_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/datanode"
)

// arrival is one search of the comparison with the naive model.
type arrival struct {
	at, service, cancel time.Duration // cancel 0: never
	tasks               int
}

// result is how one search ended, and when.
type result struct {
	ended   time.Duration
	refused int
	gone    bool // cancelled
}

func (r result) String() string {
	return fmt.Sprintf("at %v with %d refused, cancelled %v", r.ended, r.refused, r.gone)
}

// naive works through the searches one event at a time.
func naive(workers, places int, arrivals []arrival) []result {
	type task struct {
		search int
		ends   time.Duration
	}
	var (
		results = make([]result, len(arrivals))
		open    = make([]int, len(arrivals))
		running []task
		waiting []task
		now     time.Duration
	)
	start := func() {
		for len(running) < workers && len(waiting) > 0 {
			t := waiting[0]
			waiting = waiting[1:]
			if service := arrivals[t.search].service; service > 0 {
				t.ends = now + service
				running = append(running, t)
				continue
			}
			open[t.search]--
			results[t.search].ended = now
		}
	}
	for {
		next := time.Duration(-1)
		consider := func(at time.Duration) {
			if at > now && (next < 0 || at < next) {
				next = at
			}
		}
		for _, t := range running {
			consider(t.ends)
		}
		for i, a := range arrivals {
			consider(a.at)
			if open[i] > 0 {
				consider(a.cancel)
			}
		}
		if next < 0 {
			return results
		}
		now = next
		running = slices.DeleteFunc(running, func(t task) bool {
			if t.ends == now {
				open[t.search]--
				results[t.search].ended = now
			}
			return t.ends == now
		})
		for i, a := range arrivals {
			if a.cancel == now && open[i] > 0 {
				mine := func(t task) bool { return t.search == i }
				running, waiting = slices.DeleteFunc(running, mine), slices.DeleteFunc(waiting, mine)
				open[i] = 0
				results[i] = result{ended: now, gone: true} // without an answer nobody hears of refusals
			}
		}
		start()
		for i, a := range arrivals {
			if a.at != now {
				continue
			}
			results[i].ended = now
			for range a.tasks {
				switch {
				case len(running) == workers && len(waiting) == places:
					results[i].refused++
				default:
					open[i]++
					waiting = append(waiting, task{search: i})
					start()
				}
			}
		}
	}
}

// Promises 1 and 2. Arrivals and cancellations have an instant of their own each,
// so that the model has one answer.
func TestThePoolAgreesWithANaiveModel(t *testing.T) {
	logs := stateWith(t, "logs", 1, cluster.ServiceTime{})
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		places := rapid.IntRange(1, 5).Draw(rt, "queue")
		arrivals := make([]arrival, rapid.IntRange(1, 12).Draw(rt, "searches"))
		for i := range arrivals {
			own := time.Duration(i + 1)
			a := arrival{
				at:      rapid.Custom(milliseconds(20)).Draw(rt, "at") + own,
				service: rapid.Custom(milliseconds(8)).Draw(rt, "service"),
				tasks:   rapid.IntRange(1, 5).Draw(rt, "tasks"),
			}
			if rapid.Bool().Draw(rt, "leaves") {
				a.cancel = a.at + rapid.Custom(milliseconds(12)).Draw(rt, "after") + 500*time.Nanosecond
			}
			arrivals[i] = a
		}
		want := naive(workers, places, arrivals)
		var got []result
		var left datanode.Stats
		synctest.Test(t, func(t *testing.T) { got, left = actual(t, logs, workers, places, arrivals) })
		for i := range want {
			if want[i] != got[i] {
				rt.Fatalf("search %d %+v ended %v, want %v", i, arrivals[i], got[i], want[i])
			}
		}
		tasks := uint64(0)
		for _, a := range arrivals {
			tasks += uint64(a.tasks)
		}
		if left.Active != 0 || left.Queued != 0 || left.Completed+left.Rejected+left.Cancelled != tasks {
			rt.Fatalf("%d tasks came, the pool says %+v", tasks, left)
		}
	})
}

func milliseconds(most int) func(*rapid.T) time.Duration {
	return func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, "ms")) * time.Millisecond
	}
}

func actual(t *testing.T, s *cluster.State, workers, places int, arrivals []arrival) ([]result, datanode.Stats) {
	d := datanode.New(datanode.Config{Node: "d1", Workers: workers, Queue: places, States: func() *cluster.State { return s }})
	defer d.Close()
	began := time.Now()
	results := make([]result, len(arrivals))
	done := make(chan struct{})
	for i, a := range arrivals {
		go func() {
			defer func() { done <- struct{}{} }()
			time.Sleep(a.at)
			ctx := t.Context()
			if a.cancel > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, a.cancel-a.at)
				defer stop()
			}
			answer, err := d.Search(ctx, "m1", request(fmt.Sprint(i), a.service, make([]int, a.tasks)...))
			results[i] = result{ended: time.Since(began), gone: err != nil}
			if err != nil {
				return
			}
			for _, shard := range answer.Shards {
				if shard.Failure != nil {
					results[i].refused++
				}
			}
		}()
	}
	for range arrivals {
		<-done
	}
	return results, d.Stats()
}

func BenchmarkSearchWithoutServiceTime(b *testing.B) {
	d := open(b, stateWith(b, "logs", 4, cluster.ServiceTime{}), nil)
	r := request("one", 0, 0, 2)
	b.ReportAllocs()
	for b.Loop() {
		answer, err := d.Search(b.Context(), "m1", r)
		if err != nil || answer.Shards[1].Failure != nil {
			b.Fatal(err, answer)
		}
	}
}
