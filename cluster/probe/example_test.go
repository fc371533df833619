package probe_test

import (
	"fmt"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

// A window is held open while somebody looks.
func ExampleHolds() {
	var holds probe.Holds
	node := probe.New("d2", &holds)
	if err := holds.Hold(probe.ApplierPublished, probe.Filter{Count: 1}); err != nil {
		fmt.Println(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		node.At(probe.Event{Step: probe.ApplierPublished, Version: 7})
	}()
	holds.Await(nil, probe.ApplierPublished, 1)
	for _, e := range holds.Parked(probe.ApplierPublished) {
		fmt.Println(e.Node, "waits at", e.Step, "with version", e.Version)
	}
	holds.Release(probe.ApplierPublished)
	<-done
	// Output: d2 waits at applier.published with version 7
}
