package node

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// kind is the first byte of a message between nodes. A node refuses a kind
// that it does not know.
type kind byte

const (
	kindSearch  kind = 's' // wire.SearchRequest, answered by wire.SearchAnswer
	kindPropose kind = 'p' // an encoded command, answered by proposeAnswer
	kindGroups  kind = 'g' // no body, answered by the leader's groups
	kindApplied kind = 'a' // a version in decimal, answered with the applied one once that is reached
	kindCommit  kind = 'c' // no body, answered by the leader's commit index
	kindStats   kind = 't' // statsRequest, answered by statsAnswer
	kindTasks   kind = 'k' // rest.TaskQuery, answered by tasksAnswer
	kindLeave   kind = 'l' // a node's name, answered when the leader has taken it out
)

// The first byte of an answer.
const (
	answerOK    byte = 0
	answerError byte = 1 // followed by a cluster.Error
)

type proposeAnswer struct {
	Version      uint64         `json:"version"`
	Acknowledged bool           `json:"acknowledged"`
	Group        *cluster.Group `json:"group,omitempty"`
	Rule         *cluster.Rule  `json:"rule,omitempty"`
	Index        *cluster.Index `json:"index,omitempty"`
}

type statsRequest struct {
	Groups []string `json:"groups,omitempty"`
}

type statsAnswer struct {
	Groups []wlm.GroupStats `json:"groups"`
}

// seal makes an answer of a body or an error.
func seal(body []byte, err error) []byte {
	if err == nil {
		return append([]byte{answerOK}, body...)
	}
	text, _ := json.Marshal(refusalOf(err)) // two strings always encode
	return append([]byte{answerError}, text...)
}

// refusalOf returns the refusal in err's chain, or err's text as one.
func refusalOf(err error) *cluster.Error {
	if refusal, ok := errors.AsType[*cluster.Error](err); ok {
		return refusal
	}
	return cluster.Errorf(cluster.IllegalState, "%v", err)
}

// open is the other side of seal.
func open(answer []byte) ([]byte, error) {
	if len(answer) == 0 {
		return nil, errors.New("the answer is empty")
	}
	switch answer[0] {
	case answerOK:
		return answer[1:], nil
	case answerError:
		refusal := &cluster.Error{}
		if err := json.Unmarshal(answer[1:], refusal); err != nil {
			return nil, fmt.Errorf("decode refusal: %w", err)
		}
		return nil, refusal
	}
	return nil, fmt.Errorf("an answer begins with %d or %d but this one with %d", answerOK, answerError, answer[0])
}

func openJSON[T any](answer []byte) (T, error) {
	var v T
	body, err := open(answer)
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	return v, err
}
