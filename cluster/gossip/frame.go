package gossip

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// kind says what a frame is. The numbers are the wire format.
type kind byte

const (
	kindRequest  kind = 1  // wants kindAnswer, kindFailure or kindBusy with its id
	kindAnswer   kind = 2  // body is the handler's answer, empty for a check
	kindFailure  kind = 3  // body is the text of the handler's error
	kindBusy     kind = 4  // the request was not handled
	kindCancel   kind = 5  // the requester gave up
	kindSend     kind = 6  // one way
	kindCheck    kind = 7  // is this life still there; with an id, it wants kindAnswer
	kindLeaving  kind = 8  // the sender leaves the cluster for good
	kindStranger kind = 9  // body is a life that a pack was for, and that is not at this address
	kindOwed     kind = 10 // is the request of this id there; if not, it wants kindUnknown with its id
	kindUnknown  kind = 11 // no request of this id is there: it was lost, or its answer is on the way
)

// shape says which parts a kind must or must not have.
type shape struct{ id, noID, noBody bool }

func (k kind) shape() (shape, bool) {
	switch k {
	case kindRequest, kindAnswer, kindFailure:
		return shape{id: true}, true
	case kindBusy, kindCancel, kindOwed, kindUnknown:
		return shape{id: true, noBody: true}, true
	case kindSend, kindStranger:
		return shape{noID: true}, true
	case kindCheck:
		return shape{noBody: true}, true
	case kindLeaving:
		return shape{noID: true, noBody: true}, true
	}
	return shape{}, false
}

// repeatable says that a frame may arrive twice: the second finds nobody who waits for it. A request or a one-way message
// would be handled twice, and a check is worth nothing late.
func (k kind) repeatable() bool {
	switch k {
	case kindAnswer, kindFailure, kindBusy, kindCancel, kindLeaving, kindStranger:
		return true
	}
	return false
}

// answers says that a request waits for the frame.
func (k kind) answers() bool { return k == kindAnswer || k == kindFailure || k == kindBusy }

// frame is one message. id ties an answer to its request within one life of the requester.
type frame struct {
	kind kind
	id   uint64
	body []byte
}

// frameOverhead is the most a frame adds to its body.
const frameOverhead = 1 + binary.MaxVarintLen64 + binary.MaxVarintLen32

// pack is what one stream carries: from one life to one life.
type pack struct {
	from, to string
	frames   []frame
}

const packVersion = 1

func appendHeader(b []byte, from, to string) []byte {
	b = append(b, packVersion)
	b = appendString(b, from)
	return appendString(b, to)
}

func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.kind))
	b = binary.AppendUvarint(b, f.id)
	b = binary.AppendUvarint(b, uint64(len(f.body)))
	return append(b, f.body...)
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decodePack is the strict inverse: one way to write each pack, everything else is an error. Bodies alias b.
func decodePack(b []byte) (pack, error) {
	r := reader{rest: b}
	if v := r.byte(); r.err == nil && v != packVersion {
		return pack{}, fmt.Errorf("%w: pack version %d, want %d", errMalformed, v, packVersion)
	}
	p := pack{from: r.string(), to: r.string()}
	for r.err == nil && len(r.rest) > 0 {
		p.frames = append(p.frames, r.frame())
	}
	if r.err == nil && len(p.frames) == 0 {
		r.fail("a pack without a frame")
	}
	if err := r.end(); err != nil {
		return pack{}, err
	}
	return p, nil
}

// reader reads front to back and keeps its first error.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{errMalformed}, args...)...)
	}
}

func (r *reader) byte() byte {
	if r.err != nil || len(r.rest) == 0 {
		r.fail("cut short")
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

// uvarint accepts the shortest form only.
func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n != (max(bits.Len64(v), 1)+6)/7 {
		r.fail("bad number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.rest)) {
		r.fail("%d bytes announced, %d there", n, len(r.rest))
		return nil
	}
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

func (r *reader) string() string { return string(r.bytes()) }

func (r *reader) frame() frame {
	f := frame{kind: kind(r.byte()), id: r.uvarint(), body: r.bytes()}
	if r.err != nil {
		return f
	}
	s, known := f.kind.shape()
	switch {
	case !known:
		r.fail("kind %d", f.kind)
	case s.id && f.id == 0, s.noID && f.id != 0:
		r.fail("kind %d with id %d", f.kind, f.id)
	case s.noBody && len(f.body) > 0:
		r.fail("kind %d with a body of %d bytes", f.kind, len(f.body))
	}
	return f
}

// end reports the first error, or bytes that are left over.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes too many", len(r.rest))
	}
	return r.err
}
