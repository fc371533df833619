package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// A client that goes away takes neither its scroll nor its point in time along:
// they are there for whoever has the text, until their time is over.
func TestAScrollOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := build(t, options{})
		defer w.close()
		client, leave := context.WithCancel(t.Context())
		scroll := coordinator.Request{ID: "scroll", Index: "logs", Size: 1, Scroll: time.Minute}
		first := completed(t, w.search(client, scroll))
		point, err := w.c.OpenPoint(client, coordinator.PointRequest{Index: "logs", KeepAlive: time.Minute})
		require.NoError(t, err)
		leave()

		page := coordinator.Request{ID: "page", ScrollID: first.ScrollID, Scroll: time.Minute}
		in := coordinator.Request{ID: "in", PointID: point.ID}
		time.Sleep(time.Minute - 1)
		completed(t, w.search(t.Context(), page))
		completed(t, w.search(t.Context(), in))
		time.Sleep(time.Minute)
		for _, r := range []coordinator.Request{page, in} {
			_, err := w.c.Search(t.Context(), r)
			require.Equal(t, wire.ContextMissing, causeOf(t, err), r.ID)
		}
	})
}

// Of a search whose client goes away while the scroll opens, a data node that
// has answered keeps its context until its time is over; the others keep none.
func TestAClientThatLeavesWhileItsScrollOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := build(t, options{dataNodes: 2, peers: func(next coordinator.Peers) coordinator.Peers {
			return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
				if slow := *r; node == "d2" && r.Phase == wire.OpenScroll {
					slow.ServiceTime = time.Minute
					return next.Search(ctx, node, &slow)
				}
				return next.Search(ctx, node, r)
			})
		}})
		defer w.close()
		client, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := w.c.Search(client, coordinator.Request{ID: "scroll", Index: "logs", Scroll: time.Hour})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		freed, err := w.c.ClearScrolls(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 3, freed, "the shards of d1")
		w.idle()
	})
}
