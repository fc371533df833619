package node

import (
	"context"

	"github.com/wlmsim/wlmsim/coordinator"
)

// OpenPoint opens a point in time with this node as its coordinator, as its
// HTTP API does. It refuses while the node is not ready.
func (n *Node) OpenPoint(ctx context.Context, r coordinator.PointRequest) (*coordinator.Point, error) {
	if err := n.notReady(); err != nil {
		return nil, err
	}
	return n.coordinator.OpenPoint(ctx, r)
}

// FreePoints ends points in time; see [coordinator.Coordinator.FreePoints]. It
// refuses while the node is not ready.
func (n *Node) FreePoints(ctx context.Context, ids []string) ([]coordinator.FreedPoint, error) {
	if err := n.notReady(); err != nil {
		return nil, err
	}
	return n.coordinator.FreePoints(ctx, ids)
}
