package scenario_test

import (
	"fmt"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func ExampleParse() {
	_, err := scenario.Parse("late.yaml", []byte(`version: 1
name: The second search is refused
groups:
  - {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}
steps:
  - at: 1s
    search: {id: one, group: lte, service_time: 5s}
  - at: 2s
    search: {id: two, grup: late}
expect:
  - two.staus == 429
`))
	fmt.Println(err)
	// Output:
	// late.yaml:7:30: unknown group "lte": did you mean "late"?
	//         search: {id: one, group: lte, service_time: 5s}
	//                                  ^
	// late.yaml:9:23: unknown key "grup": did you mean "group"?
	//         search: {id: two, grup: late}
	//                           ^
	// late.yaml:11:9: unknown field "staus": did you mean "status"?
	//       - two.staus == 429
	//             ^
}

func ExampleFile_Set() {
	f, err := scenario.Parse("starter.yaml", []byte(scenario.Starter()))
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err = f.Set("groups.analytics.throttling.node_limit=5", "switches.counters=plain")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Groups[0].Throttling.NodeLimit, f.Switches)
	// Output: 5 map[counters:plain]
}

func ExampleFile_Compile() {
	f, err := scenario.Parse("file.yaml", []byte("version: 1\nname: x\nsteps: [{at: 1s, search: {id: one}}]\nexpect: [one.status == 200]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	expectation, err := f.Compile(f.Expect[0], scenario.InRun)
	if err != nil {
		fmt.Println(err)
		return
	}
	env := scenario.Env{Answers: map[string]any{"one": scenario.SearchAnswer{Answer: scenario.Answer{Status: 429}}}}
	fmt.Println(expectation.Holds(f.Vars(scenario.InRun, env)))
	// Output: false <nil>
}
