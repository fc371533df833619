package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
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
		ServiceTime: time.Duration(rapid.Int64().Draw(t, "service time")), Service: drawService(t),
		Concurrency: rapid.IntRange(0, math.MaxInt32).Draw(t, "concurrency"), Task: rapid.Uint64().Draw(t, "task"),
		Phase:     wire.Phase(rapid.IntRange(int(wire.Query), int(wire.ListPoints)).Draw(t, "phase")),
		Context:   wire.ContextID{Session: rapid.Uint64().Draw(t, "session"), Number: rapid.Uint64().Draw(t, "number")},
		KeepAlive: time.Duration(rapid.Int64().Draw(t, "keep alive")), Point: text.Draw(t, "point"),
		Taken: list(t, rapid.IntRange(0, math.MaxInt32), "taken"),
	}
}

func drawService(t *rapid.T) cluster.ServiceTime {
	if rapid.Bool().Draw(t, "service of the index") {
		return cluster.ServiceTime{}
	}
	length := func(name string) time.Duration { return time.Duration(rapid.Int64().Draw(t, name)) }
	return cluster.ServiceTime{
		Distribution: cluster.Distribution(rapid.StringN(1, 20, -1).Draw(t, "distribution")),
		Mean:         length("mean"), P50: length("p50"), P99: length("p99"), Min: length("min"), Max: length("max"),
		Alpha: rapid.Float64().Draw(t, "alpha"),
	}
}

func drawAnswer(t *rapid.T) *wire.SearchAnswer {
	hits := rapid.Custom(func(t *rapid.T) wire.Hit {
		return wire.Hit{ID: text.Draw(t, "id"), Score: rapid.Float64().Draw(t, "score")}
	})
	points := rapid.Custom(func(t *rapid.T) wire.Point {
		return wire.Point{Text: text.Draw(t, "text"), Created: rapid.Int64().Draw(t, "created"), KeepAlive: time.Duration(rapid.Int64().Draw(t, "keep alive"))}
	})
	return &wire.SearchAnswer{Freed: rapid.IntRange(0, math.MaxInt32).Draw(t, "freed"), Points: list(t, points, "points"), Shards: list(t, rapid.Custom(func(t *rapid.T) wire.ShardAnswer {
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
		{"unknown format", []byte{1, 0}, "decode search answer at byte 1: format 1 is unknown, this program knows 2"},
		{"no count", []byte{2}, "decode search answer at byte 1: no whole number stands here"},
		{"a count that cannot be", []byte{2, 0xff, 0xff, 0x03}, "decode search answer at byte 4: 65535 entries do not fit the 0 bytes that follow"},
		{"an outcome that is none", []byte{2, 1, 1, 'x', 0, 7, 0, 0}, "decode search answer at byte 6: a shard's outcome is 0 or 1 but was 7"},
		{"a text that is too long", []byte{2, 1, 9, 'x', 0, 1, 0}, "decode search answer at byte 3: a text of 9 bytes does not fit the 4 bytes that follow"},
		{"a shard over the greatest", []byte{2, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0}, "decode search answer at byte 8: 4294967295 is over 2147483647"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := wire.DecodeSearchAnswer(row.data)
			require.EqualError(t, err, row.message)
		})
	}
}

// Promise 2: a count that lies does not buy memory.
func TestALyingCountTakesNoMemory(t *testing.T) {
	lie := append([]byte{2, 0x80, 0x80, 0x40}, make([]byte, 5<<20)...) // 1,048,576 answers of zeros fit by length
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
// A data node keeps the index of a shard for as long as a scroll is open. The
// query of the message that named it must not stay with it.
func TestATextDoesNotKeepALargeMessage(t *testing.T) {
	const messages, size = 32, 1 << 20
	var kept []*wire.ShardID
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	query := make([]byte, size)
	before := heap()
	for range messages {
		r, err := wire.DecodeSearchRequest((&wire.SearchRequest{Shards: []wire.ShardID{{Index: "logs"}}, Query: query}).AppendTo(nil))
		require.NoError(t, err)
		kept = append(kept, &wire.ShardID{Index: r.Shards[0].Index})
	}
	require.Less(t, int64(heap())-int64(before), int64(messages*size/4))
	require.Equal(t, "logs", kept[0].Index)
}

func TestNoFieldIsNamedAfterAPrincipal(t *testing.T) {
	fields := []string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.SearchRequest]()) {
		fields = append(fields, f.Name)
	}
	require.Equal(t, []string{"Headers", "Search", "Group", "Shards", "Query", "From", "Size", "ServiceTime",
		"Service", "Concurrency", "Task", "Phase", "Context", "KeepAlive", "Point", "Taken"}, fields)
}

func TestAPhaseThatIsNoneIsAnError(t *testing.T) {
	b := (&wire.SearchRequest{Phase: wire.ListPoints + 1}).AppendTo(nil)
	_, err := wire.DecodeSearchRequest(b)
	require.ErrorContains(t, err, "phase 7 is unknown, this program knows 7")
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
	f.Add((&wire.SearchRequest{Phase: wire.Fetched, Context: wire.ContextID{Session: 3, Number: 1}, KeepAlive: time.Minute, Point: "p", Taken: []int{1, 0},
		Service: cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 1, P99: 9}, Concurrency: 5, Task: 12}).AppendTo(nil))
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
	f.Add((&wire.SearchAnswer{Freed: 2, Points: []wire.Point{{Text: "p", Created: 5, KeepAlive: time.Minute}}}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := wire.DecodeSearchAnswer(data); err == nil {
			b := a.AppendTo(nil)
			again, err := wire.DecodeSearchAnswer(b)
			require.NoError(t, err)
			require.Equal(t, b, again.AppendTo(nil)) // by bytes: a score may be NaN
		}
	})
}

func TestAContextIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &wire.Kept{
			Point: rapid.Bool().Draw(t, "point"), Context: wire.ContextID{Session: rapid.Uint64().Draw(t, "session"), Number: rapid.Uint64Min(1).Draw(t, "number")},
			Expression: text.Draw(t, "expression"), Size: rapid.IntRange(0, math.MaxInt32).Draw(t, "size"),
			ServiceTime: time.Duration(rapid.Int64().Draw(t, "service time")), Service: drawService(t),
			Shards: list(t, rapid.Custom(func(t *rapid.T) wire.KeptShard {
				return wire.KeptShard{Node: text.Draw(t, "node"), ShardID: shards.Draw(t, "shard")}
			}), "shards"),
		}
		read, err := wire.ParseKept(k.Text())
		require.NoError(t, err)
		require.Equal(t, k, read)
		_, err = wire.ParseKept(k.Text()[:rapid.IntRange(0, len(k.Text())-1).Draw(t, "cut")])
		require.ErrorContains(t, err, "decode context")
		_, err = wire.ParseKept(k.Text() + "AA")
		require.ErrorContains(t, err, "decode context")
	})
}

func FuzzParseKept(f *testing.F) {
	f.Add((&wire.Kept{Context: wire.ContextID{Session: 1, Number: 1}}).Text())
	f.Add((&wire.Kept{Point: true, Context: wire.ContextID{Number: 7}, Expression: "logs", Shards: []wire.KeptShard{{Node: "d1", ShardID: wire.ShardID{Index: "logs", Shard: 3}}}}).Text())
	f.Add("DXF1ZXJ5QW5kRmV0Y2gBAAAAAAAAAD4WYm9laVYtZndUQlNsdDcwakFMNjU1QQ==")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := wire.ParseKept(text); err == nil {
			again, err := wire.ParseKept(k.Text())
			require.NoError(t, err)
			require.Equal(t, k.Text(), again.Text()) // a number may be written in several ways
		}
	})
}
