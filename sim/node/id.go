package node

import (
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// idLength is the length of OpenSearch's random ids: 16 bytes in URL-safe
// base64 without padding.
const idLength = 22

// ids makes random ids from a seed, so that a run with one seed names things
// the same every time.
type ids struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

// newIDs returns the stream of a seed and a purpose.
func newIDs(seed uint64, purpose string) *ids {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	copy(key[8:], purpose)
	return &ids{source: rand.NewChaCha8(key)}
}

func (i *ids) next() string {
	var raw [16]byte
	i.mu.Lock()
	_, _ = i.source.Read(raw[:]) // never fails
	i.mu.Unlock()
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// NewID returns an id as nodes make them: 22 URL-safe characters drawn from
// seed. Worlds use it for the ids of their nodes; the ids that a node of the
// same seed makes are others.
func NewID(seed uint64) string { return newIDs(seed, "of a node").next() }
