package streams_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/live/streams"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// exchange is what one stream carries: words there, and answers to each.
type exchange struct {
	At      time.Duration
	Sizes   []int // of the words written
	Answers bool  // whether each is echoed
	Unread  int   // bytes of the last word that the other end does not read
	Lazy    time.Duration
}

// A stream is a pipe of its own whatever came before on its connection: what
// one end writes, the other one reads.
func TestStreamsCarryWhatIsWrittenToThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) exchange {
			return exchange{
				At:      time.Duration(rapid.IntRange(0, 2000).Draw(rt, "at")) * time.Millisecond,
				Sizes:   rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 40), rapid.IntRange(1, 40), rapid.IntRange(65_000, 80_000)), 1, 4).Draw(rt, "sizes"),
				Answers: rapid.Bool().Draw(rt, "answers"),
				Unread:  rapid.IntRange(0, 30).Draw(rt, "unread"),
				Lazy:    time.Duration(rapid.SampledFrom([]int{0, 0, 0, 20, 700, 3000}).Draw(rt, "lazy")) * time.Millisecond,
			}
		}), 1, 8).Draw(rt, "plan")
		seed := rapid.Uint64().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) { carry(t, plan, seed) })
	})
}

// carry runs a plan between two pools. The first byte of a stream is its number
// in the plan.
func carry(t *testing.T, plan []exchange, seed uint64) {
	n, err := netsim.New(netsim.Config{Seed: seed})
	require.NoError(t, err)
	p := &pair{net: n}
	p.here, p.there = p.pool(t, "here", streams.Bounds{}), p.pool(t, "there", streams.Bounds{})
	p.address = p.there.Addr().String()

	faults := make(chan error, 2*len(plan))
	var running sync.WaitGroup
	running.Go(func() {
		for range plan {
			s, err := p.there.Accept()
			if err != nil {
				faults <- err
				return
			}
			running.Go(func() { faults <- answer(s, plan) })
		}
	})
	for number, e := range plan {
		running.Go(func() {
			time.Sleep(e.At)
			s, err := p.here.Dial(t.Context(), p.address)
			if err == nil {
				err = errors.Join(ask(s, number, e), s.Close())
			}
			faults <- err
		})
	}
	running.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(p.here.Close(), p.there.Close(), n.Close()))
}

// word is the bytes of a word of an exchange, the same at both ends.
func word(number, i, size int) []byte {
	b := make([]byte, size)
	for j := range b {
		b[j] = byte(j ^ j>>8 ^ number*37 ^ i*11)
	}
	return b
}

func ask(s net.Conn, number int, e exchange) error {
	if _, err := s.Write([]byte{byte(number)}); err != nil {
		return err
	}
	for i, size := range e.Sizes {
		if _, err := s.Write(word(number, i, size)); err != nil {
			return err
		}
		if e.Answers && i < len(e.Sizes)-1 {
			if err := expect(s, word(number, i, size)); err != nil {
				return err
			}
		}
	}
	return nil
}

func answer(s net.Conn, plan []exchange) error {
	var number [1]byte
	if _, err := io.ReadFull(s, number[:]); err != nil {
		return err
	}
	e := plan[number[0]]
	time.Sleep(e.Lazy)
	last := len(e.Sizes) - 1
	for i, size := range e.Sizes {
		w := word(int(number[0]), i, size)
		if i == last {
			w = w[:max(1, size-e.Unread)] // none at all might end the stream before it is written
		}
		if err := expect(s, w); err != nil {
			return err
		}
		if e.Answers && i < last {
			if _, err := s.Write(w); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

func expect(s net.Conn, want []byte) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other bytes than were written")
	}
	return nil
}
