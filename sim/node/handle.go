package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// handle answers one message of another node.
func (n *Node) handle(ctx context.Context, from string, message []byte) ([]byte, error) {
	if err := n.awaitStart(ctx); err != nil {
		return nil, err
	}
	if len(message) == 0 {
		return nil, fmt.Errorf("an empty message from %s", from)
	}
	k, body := kind(message[0]), message[1:]
	switch k {
	case kindSearch:
		return n.handleSearch(ctx, from, body), nil
	case kindApplied:
		return seal(n.handleApplied(ctx, body)), nil
	case kindTasks:
		return seal(n.handleTasks(ctx, body)), nil
	case kindStats:
		return seal(n.handleStats(body)), nil
	case kindPropose, kindGroups, kindCommit, kindLeave:
		return seal(n.handleAsLeader(ctx, k, body)), nil
	}
	return nil, fmt.Errorf("message kind %q from %s is unknown to node %s; it was sent by a newer one", byte(k), from, n.config.Name)
}

// awaitStart waits until the node has all its parts.
func (n *Node) awaitStart(ctx context.Context) error {
	select {
	case <-n.started: // as nearly always; with another case it would cost ten times as much
		return nil
	default:
	}
	select {
	case <-n.started:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handleSearch returns a sealed answer: it is written behind its first byte,
// where seal would copy it.
func (n *Node) handleSearch(ctx context.Context, from string, body []byte) []byte {
	request, err := wire.DecodeSearchRequest(body)
	if err != nil {
		return seal(nil, cluster.Errorf(cluster.Parsing, "%v", err))
	}
	answer, err := n.data.Search(ctx, from, request)
	if err != nil {
		return seal(nil, err)
	}
	return answer.AppendTo([]byte{answerOK})
}

func (n *Node) handleStats(body []byte) ([]byte, error) {
	var r statsRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, cluster.Errorf(cluster.Parsing, "decode stats request: %v", err)
	}
	groups, err := n.throttle.Stats(r.Groups)
	if err != nil {
		return nil, err
	}
	return json.Marshal(statsAnswer{groups})
}

// handleAsLeader answers what only the leader knows. A node that does not lead
// refuses, so that the sender, who now knows that nothing happened, may look
// for another leader.
func (n *Node) handleAsLeader(ctx context.Context, k kind, body []byte) ([]byte, error) {
	switch k {
	case kindPropose:
		command, err := cluster.DecodeCommand(body)
		if err != nil {
			return nil, cluster.Errorf(cluster.Parsing, "%v", err)
		}
		answer, err := n.lead(ctx, command)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	case kindGroups:
		groups, err := n.leaderGroups(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(groups)
	case kindCommit:
		index, err := n.leaderCommit(ctx)
		return strconv.AppendUint(nil, index, 10), err
	default:
		return nil, n.takeOut(ctx, string(body))
	}
}
