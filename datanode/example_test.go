package datanode_test

import (
	"context"
	"fmt"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/datanode"
)

// A data node searches the shards that the state puts on it.
func Example() {
	state := cluster.Empty()
	for _, c := range []cluster.Command{
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "1", Roles: []cluster.Role{cluster.Data}}},
		&cluster.CreateIndex{Name: "logs", Shards: 2},
	} {
		state, _ = cluster.Apply(state, c)
	}
	node := datanode.New(datanode.Config{Node: "d1", States: func() *cluster.State { return state }})
	defer node.Close()
	answer, err := node.Search(context.Background(), "m1", &wire.SearchRequest{
		Shards: []wire.ShardID{{Index: "logs", Shard: 0}, {Index: "logs", Shard: 7}},
		Query:  []byte("error"), Size: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, shard := range answer.Shards {
		if shard.Failure != nil {
			fmt.Println(shard.Shard, shard.Failure)
			continue
		}
		fmt.Println(shard.Shard, shard.Total, "of", shard.Searched, "documents, the best is", shard.Hits[0].ID)
	}
	// Output:
	// [logs][0] 7050 of 61253 documents, the best is 6FWQGYjujJE13H-M13PZ
	// [logs][7] no such shard [logs][7] on node [d1]
}
