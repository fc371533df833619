package coordinator_test

import (
	"context"
	"fmt"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/datanode"
	"github.com/wlmsim/wlmsim/wlm"
)

// stateOf is a source of states that never changes.
type stateOf struct{ state *cluster.State }

func (s stateOf) State() *cluster.State { return s.state }

// A node's coordinator reaches data nodes through the peers it is handed; here
// there is one, in the same process.
func Example() {
	state := cluster.Empty()
	for _, c := range []cluster.Command{
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "1", Roles: []cluster.Role{cluster.Data}}},
		&cluster.CreateIndex{Name: "logs", Shards: 6},
	} {
		state, _ = cluster.Apply(state, c)
	}
	throttle, err := wlm.New(wlm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := datanode.New(datanode.Config{Node: "d1", States: stateOf{state}.State})
	defer node.Close()
	c := coordinator.New(coordinator.Config{
		Node: "m1", States: stateOf{state}, Throttle: throttle,
		Peers: peers(func(ctx context.Context, _ string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			return node.Search(ctx, "m1", r)
		}),
	})
	defer c.Close()

	response, err := c.Search(context.Background(), coordinator.Request{Index: "logs", Query: []byte("error"), Size: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.Shards.Successful, "of", response.Shards.Total, "shards,", len(response.Hits), "hits")
	_, err = c.Search(context.Background(), coordinator.Request{Index: "none"})
	fmt.Println(err)
	fmt.Printf("%+v\n", c.Outcomes())
	// Output:
	// 6 of 6 shards, 3 hits
	// no such index [none]
	// [{Group:DEFAULT_WORKLOAD_GROUP Completed:1 Failed:1 Throttled:0 Cancelled:0 Uncounted:0}]
}
