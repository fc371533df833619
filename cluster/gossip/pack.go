package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/memberlist"
)

// A pack travels in a stream of its own: packMark, its length in four bytes, big-endian, and the pack, sealed with
// AES-GCM behind its nonce if there is a key. memberlist could carry it as a user's message, but spends more on that than
// the pack itself costs. No stream of memberlist's begins with packMark.
const (
	packMark = 0xb7
	packHead = 5
)

// maxPack bounds what is read of a pack; a sender's Bounds keep it well below.
const maxPack = 20 * mib

// firstRoom is how much room is made for a pack on the word of its sender alone.
const firstRoom = 64 << 10

// seal is what a key makes of packs; nil leaves them plain.
func seal(key []byte) (cipher.AEAD, error) {
	if len(key) == 0 {
		return nil, nil
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// packStart appends the room for a head.
func packStart(b []byte) []byte { return append(b, packMark, 0, 0, 0, 0) }

// sendPack sends what was written behind packStart.
func (t *transport) sendPack(to *peer, b []byte) error {
	s, err := t.DialAddressTimeout(memberlist.Address{Addr: to.address}, t.timings.Stream)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if t.seal != nil {
		b = t.seal.Seal(packStart(nil), nil, b[packHead:], b[:1])
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-packHead))
	_, err = s.Write(b)
	return err
}

// serve reads a stream that was accepted, unless memberlist has to.
func (t *transport) serve(s *stream) {
	var head [packHead]byte
	err := s.SetReadDeadline(time.Now().Add(t.timings.Stream))
	if err == nil {
		_, err = io.ReadFull(s, head[:1])
	}
	if err == nil && head[0] != packMark {
		t.pass(&begun{s, head[:1]})
		return
	}
	var b []byte
	if err == nil {
		b, err = t.readPack(s, head[:])
	}
	_ = s.Close()
	switch {
	case err == io.EOF || t.ctx.Err() != nil: // whoever dialled said nothing, or this node closes
	case err != nil:
		t.log.Warn("gossip: message dropped", "from", s.RemoteAddr(), "error", err)
	default:
		t.receive(b)
	}
}

// readPack reads a pack behind its mark.
func (t *transport) readPack(s io.Reader, head []byte) ([]byte, error) {
	if _, err := io.ReadFull(s, head[1:]); err != nil {
		return nil, cutShort(err)
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	if n > maxPack {
		return nil, fmt.Errorf("%w: a pack of %d bytes, at most %d", errMalformed, n, maxPack)
	}
	b := bytes.NewBuffer(make([]byte, 0, min(n, firstRoom)+bytes.MinRead))
	if _, err := io.CopyN(b, s, n); err != nil {
		return nil, cutShort(err)
	}
	if t.seal == nil {
		return b.Bytes(), nil
	}
	plain, err := t.seal.Open(nil, nil, b.Bytes(), head[:1])
	if err != nil {
		return nil, fmt.Errorf("%w: a pack that is not sealed with this node's key", errMalformed)
	}
	return plain, nil
}

func cutShort(err error) error { return fmt.Errorf("%w: a pack is cut short: %w", errMalformed, err) }

// pass gives a stream to memberlist.
func (t *transport) pass(b *begun) {
	select {
	case t.streams <- b:
	case <-t.ctx.Done():
		_ = b.Close()
	}
}

// begun is a stream of which something was read.
type begun struct {
	*stream
	read []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.read) == 0 || len(p) == 0 {
		return b.stream.Read(p)
	}
	n := copy(p, b.read)
	b.read = b.read[n:]
	return n, nil
}
