package replica_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/replica"
)

func TestThreeVotersOverLoopbackAgree(t *testing.T) {
	dir := t.TempDir()
	c := newCluster(t, nil, 3, func(name string) *replica.Store { return replica.Bolt(dir + "/" + name) })
	start := time.Now()
	c.open()
	defer c.close()
	opened := time.Since(start)
	c.leader()
	t.Log(opened, time.Since(start))
	for i := range 5 {
		at := time.Now()
		_, s := c.propose(group(fmt.Sprint("id", i), fmt.Sprint("g", i), 1))
		mid := time.Since(at)
		require.Equal(t, uint64(i+1), s.Version())
		for _, name := range c.names {
			c.nodes[name].version(s.Version())
		}
		t.Log(mid, time.Since(at))
	}
}
