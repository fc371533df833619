package applier_test

import (
	"context"
	"fmt"

	"github.com/wlmsim/wlmsim/applier"
	"github.com/wlmsim/wlmsim/cluster"
)

// A subscriber meets the new version before it is readable, a listener after.
func Example() {
	a := applier.New(applier.Config{})
	tell := func(name string) applier.Func {
		return func(prev, next *cluster.State) error {
			fmt.Printf("%s: from %d to %d, readable: %d\n", name, prev.Version(), next.Version(), a.State().Version())
			return nil
		}
	}
	a.Before("settings", tell("settings"))
	a.Listen("wlm", tell("wlm"))
	a.Start(cluster.Empty())
	defer a.Close()

	next, err := cluster.Apply(cluster.Empty(), &cluster.PutNode{Node: cluster.Node{Name: "m1", ID: "1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := a.Enqueue(next); err != nil {
		fmt.Println(err)
	}
	if err := a.Wait(context.Background(), 1); err != nil {
		fmt.Println(err)
	}
	// Output:
	// settings: from 0 to 0, readable: 0
	// wlm: from 0 to 0, readable: 0
	// settings: from 0 to 1, readable: 0
	// wlm: from 0 to 1, readable: 1
}
