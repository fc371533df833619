package node_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

// Case C30, what becomes of raft: gossip takes a node for dead and for alive
// again, and no manager writes a line to its log for that. A change of raft's
// members would be one.
func TestGossipChangesNoMemberOfRaft(t *testing.T) {
	inLab(t, "m1 m2 m3 d1 d2", nil, func(l *lab) {
		l.mustPropose("d2", newGroup(l.nodes["d2"].NewID(), "before", cluster.ByGroup, 1))
		l.awaitSame(l.names...)
		var written atomic.Int64
		for _, name := range []string{"m1", "m2", "m3"} {
			l.stores[name].SetFault(func(op replica.Op) error {
				if op.Kind == replica.OpStoreLogs {
					written.Add(1)
				}
				return nil
			})
		}
		alive := func() (n int) {
			for _, m := range l.nodes["m1"].Members() {
				if m.Alive {
					n++
				}
			}
			return n
		}
		for range 5 {
			cut, err := l.net.Partition([]string{"d1"}, []string{"m1", "m2", "m3", "d2"})
			require.NoError(l.t, err)
			time.Sleep(30 * time.Second)
			require.Equal(l.t, 4, alive(), "d1 is taken for dead")
			cut.Heal()
			time.Sleep(30 * time.Second)
			require.Equal(l.t, 5, alive(), "d1 is back")
		}
		require.Zero(l.t, written.Load())

		// It was a member all the while: a change reaches it by raft.
		l.mustPropose("d2", newGroup(l.nodes["d2"].NewID(), "after", cluster.ByGroup, 1))
		require.Positive(l.t, written.Load())
		l.awaitSame(l.names...)
	})
}
