package explore_test

import (
	"fmt"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Two searches meet a limit of one. Whatever the order, one of them runs.
func ExampleRun() {
	f, err := scenario.Parse("two.yaml", []byte(`
version: 1
name: Two searches and a limit of one
groups:
  - {name: narrow, resiliency_mode: enforced, resource_limits: {cpu: 0.1}, throttling: {attribute: group, node_limit: 1}}
explore:
  node: m1
  actors:
    first:  [{search: {id: first, group: narrow}}]
    second: [{search: {id: second, group: narrow}}]
  observe: {first: first.status, second: second.status}
  forbid:  [first == 429 && second == 429]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := explore.Run(f, explore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, r.Complete)
	for _, o := range r.Outcomes {
		fmt.Println(o.Observed[0].Value, o.Observed[1].Value, "by", o.Schedule)
	}
	// Output:
	// held true
	// 200 200 by first×5 second×5
	// 200 429 by first×3 second×4 first×2
	// 429 200 by first×2 second×3 first×2 second×2
}
