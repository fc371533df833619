package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/simtest"
)

// patient is a client as one writes it: it tries again after 429, each time
// after twice the time, up to five seconds, with jitter.
type patient struct {
	client *http.Client
	draw   *rand.Rand
	user   string

	completed, refused int
}

func (p *patient) search(url, body string) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		request, err := http.NewRequest("POST", url+"/logs/_search", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.SetBasicAuth(p.user, "any")
		request.Header.Set("Content-Type", "application/json")
		response, err := p.client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			p.completed++
			return nil
		case http.StatusTooManyRequests:
			p.refused++
			time.Sleep(wait/2 + time.Duration(p.draw.Int64N(int64(wait/2))))
		default:
			return fmt.Errorf("status %d", response.StatusCode)
		}
	}
}

// Six programs of one user, who may run two searches at a time, share a cluster
// for ten minutes. They back off when it answers 429; none gives up.
func ExampleRun() {
	simtest.Run(simtest.Example("ExampleRun"), simtest.Options{Scenario: `
cluster: {managers: 1, data: 2}
users: {etl: {roles: [batch]}}
groups:
  - {name: nightly, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 2}}
rules:
  - {workload_group: nightly, principal.role: [batch]}
`}, func(c *simtest.Cluster) {
		programs := make([]patient, 6)
		var running sync.WaitGroup
		for i := range programs {
			p := &programs[i]
			*p = patient{client: c.Client(), draw: rand.New(rand.NewPCG(1, uint64(i))), user: "etl"}
			running.Go(func() {
				for c.Now() < 10*time.Minute {
					if err := p.search(c.URL("m1"), `{"ext": {"wlmsim": {"service_time": "2s"}}}`); err != nil {
						fmt.Println(err)
						return
					}
				}
			})
		}
		running.Wait()

		completed, refused := 0, 0
		for i := range programs {
			completed += programs[i].completed
			refused += programs[i].refused
		}
		fmt.Println("ten minutes passed:", c.Now() > 10*time.Minute)
		fmt.Println("two searches of two seconds at a time, or nearly so:", completed > 540 && completed <= 610)
		fmt.Println("429s:", refused > 100, "all counted:", refused == c.Stats("m1", "nightly").TotalThrottled)
	})
	// Output:
	// ten minutes passed: true
	// two searches of two seconds at a time, or nearly so: true
	// 429s: true all counted: true
}

// A window between two steps of a node is held open while a client looks into
// it: node d1 enforces a group that it has no counters for yet.
func ExampleCluster_Hold() {
	simtest.Run(simtest.Example("ExampleCluster_Hold"), simtest.Options{}, func(c *simtest.Cluster) {
		c.Hold("d1", probe.ApplierPublished, probe.Filter{})
		c.Begin("put_group: {id: put, name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}")
		c.AwaitHeld("d1", probe.ApplierPublished, 1)

		c.Begin("search: {id: first, user: bob, group: late, via: d1, service_time: 5s}")
		second := c.Ask("search: {id: second, user: bob, group: late, via: d1}")
		fmt.Println(second.Status, second.Error.Type)
		c.Expect(`stats("d1", "DEFAULT_WORKLOAD_GROUP").total_throttled == 0`, `permits("d1", "late").held == 1`)

		c.Release("d1", probe.ApplierPublished)
		time.Sleep(10 * time.Second)
		c.Expect("put.status == 200", "first.status == 200", "first.permit")
	})
	// Output: 429 rejected_execution_exception
}

// Every order of an update and two searches is tried: before the new group's
// counters exist its limit is in force, and nobody else is charged.
func ExampleExplore() {
	result := simtest.Explore(simtest.Example("ExampleExplore"), simtest.Exploration{Scenario: `
explore:
  node: m1
  actors:
    update: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}]
    first:  [{search: {id: first, user: bob, group: late, hold: true}}]
    second: [{search: {id: second, user: bob, group: late}}]
  observe:
    second: second.status
    counted: stats("late").total_throttled
    default: stats("DEFAULT_WORKLOAD_GROUP").total_throttled
  forbid:  [default > 0]
  require: [second == 429]
`})
	fmt.Println("every order:", result.Complete)
	for _, outcome := range result.Outcomes {
		var seen []string
		for _, v := range outcome.Observed {
			seen = append(seen, fmt.Sprint(v.Name, " ", v.Value))
		}
		fmt.Println(strings.Join(seen, ", "))
	}
	// Unordered output:
	// every order: true
	// second 200, counted 0, default 0
	// second 200, counted 1, default 0
	// second 429, counted 0, default 0
	// second 429, counted 1, default 0
}
