package gossip

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var a1 = netip.MustParseAddrPort("10.0.0.1:7946")

func encodePack(p pack) []byte {
	b := appendHeader(nil, p.from, p.to)
	for _, f := range p.frames {
		b = appendFrame(b, f)
	}
	return b
}

// What decodes is written in exactly one way, and nothing makes the decoder panic.
func FuzzDecodePack(f *testing.F) {
	from, to := life("m1", a1, 1), life("m2", a1, 1<<60)
	for _, frames := range [][]frame{
		{{kind: kindRequest, id: 1, body: []byte("q")}, {kind: kindAnswer, id: 1 << 40}, {kind: kindFailure, id: 3, body: []byte("no")}},
		{{kind: kindBusy, id: 4}, {kind: kindCancel, id: 5}, {kind: kindSend, body: make([]byte, 200)}},
		{{kind: kindCheck}, {kind: kindCheck, id: 6}, {kind: kindLeaving}, {kind: kindStranger, body: []byte(from)}, {kind: kindOwed, id: 7}, {kind: kindUnknown, id: 7}},
	} {
		f.Add(encodePack(pack{from, to, frames}))
	}
	f.Add([]byte{packVersion, 0, 0, 99, 0, 0})                                 // unknown kind
	f.Add([]byte{packVersion, 0x80, 0, 0})                                     // a number not in its shortest form
	f.Add([]byte{packVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}) // longer than there is
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePack(b)
		if err != nil {
			require.ErrorIs(t, err, errMalformed)
			return
		}
		require.Equal(t, b, encodePack(p))
	})
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add(encodeMeta(Member{}))
	f.Add(encodeMeta(Member{ID: "id", Roles: []string{"manager", "data"}, Raft: "10.0.0.1:1", HTTP: "10.0.0.1:2"}))
	f.Add([]byte{metaVersion, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			require.ErrorIs(t, err, errMalformed)
			return
		}
		require.Equal(t, b, encodeMeta(m))
	})
}

func FuzzParseLife(f *testing.F) {
	f.Add(life("m1", a1, 12345))
	f.Add("m1@[::1]:7946#z")
	f.Add("m1@10.0.0.1:07946#1")
	f.Add("@10.0.0.1:1#1")
	f.Fuzz(func(t *testing.T, s string) {
		name, address, err := parseLife(s)
		if err != nil {
			require.ErrorIs(t, err, errMalformed)
			return
		}
		require.NoError(t, CheckName(name))
		require.True(t, address.IsValid())
	})
}

func TestStrictFrames(t *testing.T) {
	header := string(appendHeader(nil, "a", "b"))
	for name, bytes := range map[string]string{
		"nothing":                  "",
		"another version":          "\x02\x01a\x01b\x06\x00\x00",
		"no frame":                 header,
		"unknown kind":             header + "\x0a\x00\x00",
		"kind 0":                   header + "\x00\x00\x00",
		"request without id":       header + "\x01\x00\x00",
		"one-way message with id":  header + "\x06\x01\x00",
		"cancel with body":         header + "\x05\x01\x01x",
		"body cut short":           header + "\x06\x00\x05abc",
		"number too long":          header + "\x01\x81\x00\x00",
		"good frame then half one": header + "\x06\x00\x00\x06",
	} {
		_, err := decodePack([]byte(bytes))
		require.ErrorIs(t, err, errMalformed, name)
	}
	_, err := decodePack([]byte(header + "\x06\x00\x00"))
	require.NoError(t, err)
}

// The outbox against a naive one: a plain list cut by the same bounds.
func TestOutboxAgainstANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bounds{
			OutboxMessages: rapid.IntRange(1, 6).Draw(t, "messages"), OutboxBytes: rapid.IntRange(1, 60).Draw(t, "bytes"),
			PackMessages: rapid.IntRange(1, 4).Draw(t, "pack messages"), PackBytes: rapid.IntRange(1, 80).Draw(t, "pack bytes"),
		}
		var (
			o       outbox
			naive   []item
			sending bool
			id      uint64
		)
		size := func() (n int) {
			for _, it := range naive {
				n += len(it.body)
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id++
				it := item{frame: frame{kind: kindRequest, id: id, body: make([]byte, rapid.IntRange(0, 50).Draw(t, "size"))}, call: &Call{id: id}}
				room := 1
				if rapid.Bool().Draw(t, "answer") {
					it.kind, it.call, room = kindAnswer, nil, 2
				}
				fits := len(naive) < room*b.OutboxMessages && (len(naive) == 0 || size()+len(it.body) <= room*b.OutboxBytes)
				start, err := o.put(it, b)
				if !fits {
					require.ErrorIs(t, err, ErrFull)
					require.False(t, start)
					return
				}
				require.NoError(t, err)
				require.Equal(t, !sending, start, "one sender at a time")
				sending = true
				naive = append(naive, it)
			},
			"give up": func(t *rapid.T) {
				if len(naive) == 0 {
					t.Skip("nothing waits")
				}
				if c := naive[rapid.IntRange(0, len(naive)-1).Draw(t, "which")].call; c != nil {
					c.state.CompareAndSwap(callQueued, callDropped)
				}
			},
			"take": func(t *rapid.T) {
				var want []item
				bytes, n := 0, 0
				for _, it := range naive {
					if len(want) == b.PackMessages || len(want) > 0 && bytes+len(it.body)+frameOverhead > b.PackBytes {
						break
					}
					n++
					if it.call == nil || it.call.state.Load() == callQueued {
						want = append(want, it)
						bytes += len(it.body) + frameOverhead
					}
				}
				naive = naive[n:]
				got := o.take(nil, b, time.Time{})
				require.Equal(t, want, got)
				sending = len(want) > 0
			},
			"drop": func(*rapid.T) {
				o.drop()
				naive = slices.DeleteFunc(naive, func(it item) bool { return it.kind == kindRequest })
			},
		})
	})
}

// A cancel that overtakes its request still ends it, and the memory of such cancels is bounded.
func TestCancelThatOvertakesItsRequest(t *testing.T) {
	const most = 1000
	var s serving
	s.cancel(7, most)
	require.False(t, s.start(7, func() {}))
	require.True(t, s.start(8, func() {}))
	ctx, cancel := context.WithCancel(t.Context())
	require.False(t, s.start(8, cancel), "a request that is there already")
	require.True(t, s.start(9, cancel))
	s.cancel(9, most)
	require.Error(t, ctx.Err())
	for id := uint64(100); id < 100+2*most; id++ {
		s.cancel(id, most)
	}
	require.Len(t, s.early, most)
	require.Len(t, s.order, most)
	require.True(t, s.start(100, func() {}), "the oldest is forgotten")
	require.False(t, s.start(100+2*most-1, func() {}))
	require.False(t, s.start(100+most, func() {}))
	require.Len(t, s.early, most-2)
}

// Ids are unique in one life of the requester, not among those that are asked.
func TestOnlyTheLifeThatWasAskedCanAnswer(t *testing.T) {
	c := calls{open: make(map[uint64]*Call)}
	k := c.start(&Call{life: "m1@10.0.0.1:7946#1"})
	require.Same(t, k, c.find(k.life, k.id))
	require.Nil(t, c.find("m1@10.0.0.1:7946#2", k.id))
	require.Nil(t, c.find(k.life, k.id+1))
	c.end(k)
	require.Nil(t, c.find(k.life, k.id))
}
