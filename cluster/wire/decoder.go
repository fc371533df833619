package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

func appendShard(b []byte, s ShardID) []byte {
	b = appendText(b, s.Index)
	return binary.AppendUvarint(b, uint64(s.Shard))
}

// decoder reads a message from front to back and keeps its first error; after
// one it returns zero values.
type decoder struct {
	data  []byte
	rest  []byte // the end of data that was not read
	texts string // a copy of short data, which all texts are parts of; "" before the first one
	err   error
}

func decode(data []byte) decoder { return decoder{data: data, rest: data} }

func (d *decoder) fail(why string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("at byte %d: "+why, append([]any{len(d.data) - len(d.rest)}, args...)...)
		d.rest = nil
	}
}

// finish returns the first error, or that something follows the message.
func (d *decoder) finish(what string) error {
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes follow the end", len(d.rest))
	}
	if d.err != nil {
		return fmt.Errorf("decode %s %w", what, d.err)
	}
	return nil
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail("the message is cut off")
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) expectFormat() {
	if f := d.byte(); d.err == nil && f != format {
		d.fail("format %d is unknown, this program knows %d", f, format)
	}
}

func (d *decoder) unsigned() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 { // most numbers are small
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("no whole number stands here")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("no whole number stands here")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// size reads a number that must fit a Java int, as counts and shards do.
func (d *decoder) size() int {
	v := d.unsigned()
	if v > math.MaxInt32 {
		d.fail("%d is over %d", v, math.MaxInt32)
		return 0
	}
	return int(v)
}

// count reads how many entries follow, each at least least bytes long.
func (d *decoder) count(least int) int {
	n := d.unsigned()
	if n > uint64(len(d.rest)/least) {
		d.fail("%d entries do not fit the %d bytes that follow", n, len(d.rest))
		return 0
	}
	return int(n)
}

// prealloc bounds the entries for which memory is taken before they are read.
const prealloc = 1024

// list reads a counted list whose entries are at least least bytes long, into
// room, if that is enough, which must be empty; an empty list is nil.
func list[T any](d *decoder, room []T, least int, read func() T) []T {
	n := d.count(least)
	if n == 0 {
		return nil
	}
	entries := room
	if n > cap(room) {
		entries = make([]T, 0, min(n, prealloc))
	}
	for range n {
		entries = append(entries, read())
		if d.err != nil {
			return nil
		}
	}
	return entries
}

// maxShared is the length of the longest message whose texts share one copy of
// it. A text that outlives its message, as an index's name in the context of a
// scroll does, keeps no more than this with it.
const maxShared = 4096

func (d *decoder) text() string {
	raw := d.raw()
	if len(raw) == 0 {
		return ""
	}
	if len(d.data) > maxShared {
		return string(raw)
	}
	if d.texts == "" {
		d.texts = string(d.data)
	}
	end := len(d.data) - len(d.rest)
	return d.texts[end-len(raw) : end]
}

// raw reads a text as a part of the message.
func (d *decoder) raw() []byte {
	n := d.unsigned()
	if n > uint64(len(d.rest)) {
		d.fail("a text of %d bytes does not fit the %d bytes that follow", n, len(d.rest))
		return nil
	}
	raw := d.rest[:n]
	d.rest = d.rest[n:]
	return raw
}

func (d *decoder) float() float64 {
	if len(d.rest) < 8 {
		d.fail("the message is cut off")
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return f
}

func (d *decoder) shard() ShardID { return ShardID{d.text(), d.size()} }
