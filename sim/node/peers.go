package node

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster/wire"
)

// peers sends a coordinator's requests to data nodes over gossip messages. A
// node asks its own data node directly.
type peers struct{ n *Node }

// Search implements [coordinator.Peers].
func (p peers) Search(ctx context.Context, name string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	if name == p.n.config.Name {
		return p.n.data.Search(ctx, name, r)
	}
	answer, err := p.n.gossip.Request(ctx, name, r.AppendTo([]byte{byte(kindSearch)}))
	if err != nil {
		return nil, err
	}
	body, err := open(answer)
	if err != nil {
		return nil, err
	}
	return wire.DecodeSearchAnswer(body)
}
