package node

import (
	"context"

	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// peers sends a coordinator's requests to data nodes over gossip messages. A
// node asks its own data node directly.
type peers struct{ n *Node }

// Search implements [coordinator.Peers], for the node's own data node.
func (p peers) Search(ctx context.Context, name string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
	return p.n.data.Search(ctx, name, r)
}

// Send implements [coordinator.Sender], for the others.
func (p peers) Send(name string, r *wire.SearchRequest, k coordinator.Answered) (coordinator.Sent, error) {
	if name == p.n.config.Name {
		return nil, nil
	}
	sent, err := p.n.gossip.Ask(name, r.AppendTo([]byte{byte(kindSearch)}), func(body []byte, err error) { k.Answered(searchAnswer(body, err)) })
	if err != nil {
		return nil, err
	}
	return sent, nil
}

// searchAnswer reads the answer to a search, if there is one.
func searchAnswer(body []byte, err error) (*wire.SearchAnswer, error) {
	if err == nil {
		body, err = open(body)
	}
	if err != nil {
		return nil, err
	}
	return wire.DecodeSearchAnswer(body)
}
