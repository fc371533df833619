package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

var text = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "caf\xe9", "a\x00b", "logs"}))

// list draws a list as the decoder returns it: an empty one is nil.
func list[T any](t *rapid.T, entry *rapid.Generator[T], name string) []T {
	if l := rapid.SliceOfN(entry, 0, 5).Draw(t, name); len(l) > 0 {
		return l
	}
	return nil
}

var shards = rapid.Custom(func(t *rapid.T) wire.ShardID {
	return wire.ShardID{Index: text.Draw(t, "index"), Shard: rapid.IntRange(0, math.MaxInt32).Draw(t, "shard")}
})

func drawRequest(t *rapid.T) *wire.SearchRequest {
	return &wire.SearchRequest{
		Headers: list(t, rapid.Custom(func(t *rapid.T) wire.Header {
			return wire.Header{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
		}), "headers"),
		Search: text.Draw(t, "search"), Group: text.Draw(t, "group"),
		Shards: list(t, shards, "shards"), Query: list(t, rapid.Byte(), "query"),
		From: rapid.IntRange(0, math.MaxInt32).Draw(t, "from"), Size: rapid.IntRange(0, math.MaxInt32).Draw(t, "size"),
		ServiceTime: time.Duration(rapid.Int64().Draw(t, "service time")),
	}
}

func drawAnswer(t *rapid.T) *wire.SearchAnswer {
	hits := rapid.Custom(func(t *rapid.T) wire.Hit {
		return wire.Hit{ID: text.Draw(t, "id"), Score: rapid.Float64().Draw(t, "score")}
	})
	return &wire.SearchAnswer{Shards: list(t, rapid.Custom(func(t *rapid.T) wire.ShardAnswer {
		s := wire.ShardAnswer{Shard: shards.Draw(t, "shard")}
		if rapid.Bool().Draw(t, "failed") {
			s.Failure = &cluster.Error{Kind: cluster.Kind(text.Draw(t, "kind")), Reason: text.Draw(t, "reason")}
			return s
		}
		s.Total, s.Searched = rapid.Int64().Draw(t, "total"), rapid.Int64().Draw(t, "searched")
		s.MaxScore, s.Hits = rapid.Float64().Draw(t, "max"), list(t, hits, "hits")
		return s
	}), "answers")}
}

// Promise 1, and that every cut and every byte more is an error (promise 2).
func TestMessagesAreReadBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request, answer := drawRequest(t), drawAnswer(t)
		prefix := []byte("kept")
		b := request.AppendTo(prefix)
		require.Equal(t, "kept", string(b[:4]))
		read, err := wire.DecodeSearchRequest(b[4:])
		require.NoError(t, err)
		require.Equal(t, request, read)
		c := answer.AppendTo(nil)
		readAnswer, err := wire.DecodeSearchAnswer(c)
		require.NoError(t, err)
		require.Equal(t, answer, readAnswer)

		cut := rapid.IntRange(0, len(b)-5).Draw(t, "cut")
		_, err = wire.DecodeSearchRequest(b[4 : 4+cut])
		require.ErrorContains(t, err, "decode search request at byte")
		_, err = wire.DecodeSearchRequest(append(b[4:], 0))
		require.EqualError(t, err, fmt.Sprintf("decode search request at byte %d: 1 bytes follow the end", len(b)-4))
		_, err = wire.DecodeSearchAnswer(c[:rapid.IntRange(0, len(c)-1).Draw(t, "cut")])
		require.ErrorContains(t, err, "decode search answer at byte")
	})
}

func TestWhatIsNotAMessageIsAnError(t *testing.T) {
	for _, row := range []struct {
		name    string
		data    []byte
		message string
	}{
		{"empty", nil, "decode search answer at byte 0: the message is cut off"},
		{"unknown format", []byte{2, 0}, "decode search answer at byte 1: format 2 is unknown, this program knows 1"},
		{"no count", []byte{1}, "decode search answer at byte 1: no whole number stands here"},
		{"a count that cannot be", []byte{1, 0xff, 0xff, 0x03}, "decode search answer at byte 4: 65535 entries do not fit the 0 bytes that follow"},
		{"an outcome that is none", []byte{1, 1, 1, 'x', 0, 7, 0, 0}, "decode search answer at byte 6: a shard's outcome is 0 or 1 but was 7"},
		{"a text that is too long", []byte{1, 1, 9, 'x', 0, 1, 0}, "decode search answer at byte 3: a text of 9 bytes does not fit the 4 bytes that follow"},
		{"a shard over the greatest", []byte{1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0}, "decode search answer at byte 8: 4294967295 is over 2147483647"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := wire.DecodeSearchAnswer(row.data)
			require.EqualError(t, err, row.message)
		})
	}
}

// Promise 2: a count that lies does not buy memory.
func TestALyingCountTakesNoMemory(t *testing.T) {
	lie := append([]byte{1, 0x80, 0x80, 0x40}, make([]byte, 5<<20)...) // 1,048,576 answers of zeros fit by length
	lie[4+14+2] = 9                                                    // and the second one's outcome is none
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.DecodeSearchAnswer(lie); err == nil {
				b.Fatal("the lie was believed")
			}
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(1<<20))
}

// The principal has no field in a message between nodes (promise 3).
func TestNoFieldIsNamedAfterAPrincipal(t *testing.T) {
	fields := []string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.SearchRequest]()) {
		fields = append(fields, f.Name)
	}
	require.Equal(t, []string{"Headers", "Search", "Group", "Shards", "Query", "From", "Size", "ServiceTime"}, fields)
}

func TestAShardIsWrittenAsOpenSearchDoes(t *testing.T) {
	require.Equal(t, "[logs][3]", wire.ShardID{Index: "logs", Shard: 3}.String())
}

var (
	seedRequest = &wire.SearchRequest{Headers: []wire.Header{{Name: "workloadGroupId", Value: "g"}}, Search: "one", Group: "g",
		Shards: []wire.ShardID{{Index: "logs", Shard: 2}}, Query: []byte(`{"match_all":{}}`), Size: 10, ServiceTime: -1}
	seedAnswer = &wire.SearchAnswer{Shards: []wire.ShardAnswer{
		{Shard: wire.ShardID{Index: "logs", Shard: 2}, Total: 7, Searched: 100, MaxScore: 1.5, Hits: []wire.Hit{{ID: "d", Score: 1.5}}},
		{Shard: wire.ShardID{Index: "logs"}, Failure: cluster.Errorf(cluster.TooMany, "queue of %d is full", 1000)},
	}}
)

func FuzzDecodeSearchRequest(f *testing.F) {
	f.Add(seedRequest.AppendTo(nil))
	f.Add((&wire.SearchRequest{}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := wire.DecodeSearchRequest(data); err == nil {
			again, err := wire.DecodeSearchRequest(r.AppendTo(nil))
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
	})
}

func FuzzDecodeSearchAnswer(f *testing.F) {
	f.Add(seedAnswer.AppendTo(nil))
	f.Add((&wire.SearchAnswer{}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := wire.DecodeSearchAnswer(data); err == nil {
			b := a.AppendTo(nil)
			again, err := wire.DecodeSearchAnswer(b)
			require.NoError(t, err)
			require.Equal(t, b, again.AppendTo(nil)) // by bytes: a score may be NaN
		}
	})
}
