package gossip

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// Member is one node of the cluster as this node sees it.
type Member struct {
	// Name is unique among live nodes.
	Name string
	// Address is where the node gossips, "ip:port".
	Address string
	// ID, Roles, Raft and HTTP are what the node says of itself; Raft and HTTP are "host:port".
	ID    string
	Roles []string
	Raft  string
	HTTP  string
	// Alive is this node's own view. A suspect is alive until it is dead.
	Alive bool
}

func (m Member) clone() Member {
	m.Roles = slices.Clone(m.Roles)
	return m
}

const (
	maxMeta     = memberlist.MetaMaxSize
	metaVersion = 1
)

// encodeMeta writes what travels as memberlist's metadata: a version, then strings with their lengths before them.
func encodeMeta(m Member) []byte {
	b := []byte{metaVersion}
	b = appendString(b, m.ID)
	b = appendString(b, m.Raft)
	b = appendString(b, m.HTTP)
	b = binary.AppendUvarint(b, uint64(len(m.Roles)))
	for _, role := range m.Roles {
		b = appendString(b, role)
	}
	return b
}

func checkMeta(m Member) error {
	if n := len(encodeMeta(m)); n > maxMeta {
		return fmt.Errorf("gossip: id, roles and addresses take %d bytes, at most %d", n, maxMeta)
	}
	return nil
}

// decodeMeta is the strict inverse of encodeMeta; Name, Address and Alive stay empty.
func decodeMeta(b []byte) (Member, error) {
	var m Member
	if len(b) > maxMeta {
		return m, fmt.Errorf("%w: metadata of %d bytes, at most %d", errMalformed, len(b), maxMeta)
	}
	r := reader{rest: b}
	if v := r.byte(); r.err == nil && v != metaVersion {
		return m, fmt.Errorf("%w: metadata version %d, want %d", errMalformed, v, metaVersion)
	}
	m.ID, m.Raft, m.HTTP = r.string(), r.string(), r.string()
	n := r.uvarint()
	if n > uint64(len(r.rest)) { // a role takes a byte at least
		r.fail("%d roles in %d bytes", n, len(r.rest))
	}
	for i := uint64(0); i < n && r.err == nil; i++ {
		m.Roles = append(m.Roles, r.string())
	}
	return m, r.end()
}
