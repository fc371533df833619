package streams_test

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/live/streams"
)

const preface = "wlmstream1\n"

// firstBytes says, from the description of the format alone, which byte of each
// stream a reader sees that takes one and closes.
func firstBytes(b []byte) (seen []byte) {
	rest, ok := strings.CutPrefix(string(b), preface)
	for wants := false; ok && len(rest) >= 3; {
		kind, size := rest[0], int(binary.BigEndian.Uint16([]byte(rest[1:3])))
		rest = rest[3:]
		switch {
		case kind == 1 && wants, kind != 1 && kind != 2:
			return seen
		case kind == 1 && size == 0:
			wants = true
		case kind == 1 && len(rest) > 0, kind == 2 && wants && size > 0 && len(rest) > 0:
			seen, wants = append(seen, rest[0]), false
		}
		if len(rest) < size {
			return seen
		}
		rest = rest[size:]
	}
	return seen
}

func FuzzConnection(f *testing.F) {
	f.Add([]byte(preface + "\x01\x00\x05hello"))
	f.Add([]byte(preface + "\x01\x00\x00\x02\x00\x02ab\x02\x00\x01c\x01\x00\x01d"))
	f.Add([]byte(preface + "\x01\x00\x01a\x01\x00\x01b\x03\x00\x00\x01\x00\x01c"))
	f.Add([]byte(preface + "\x01\x00\x00\x01\x00\x01b"))
	f.Add([]byte(preface + "\x01\x00\x01a\x04\x00\x00"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte(preface + "\x01\xff\xffshort"))
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) { require.Equal(t, firstBytes(b), takeFirstBytes(t, b)) })
	})
}

// takeFirstBytes writes b to a pool's connection, and reads one byte of each
// stream.
func takeFirstBytes(t *testing.T, b []byte) (seen []byte) {
	inner := newPipes()
	p, err := streams.New(streams.Config{Listener: inner, Dial: inner.dial})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			s, err := p.Accept()
			if err != nil {
				return
			}
			var one [1]byte
			n, _ := s.Read(one[:]) // an error is a fault of the format, and nothing to see
			seen = append(seen, one[:n]...)
			_ = s.Close()
		}
	})
	conn, err := inner.dial(t.Context(), "itself")
	require.NoError(t, err)
	running.Go(func() { _, _ = io.Copy(io.Discard, conn) })
	_, _ = conn.Write(b) // an error says that the other end has had enough
	synctest.Wait()
	require.NoError(t, errors.Join(conn.Close(), p.Close()))
	running.Wait()
	return seen
}

// Either end closes a connection on which something else than frames arrives,
// says so, and goes on.
func TestBytesThatAreNoFramesCostTheirConnection(t *testing.T) {
	for name, bytes := range map[string]string{
		"no preface":          "\x08 what memberlist writes itself",
		"unknown kind":        preface + "\x07\x00\x01a",
		"end from the dialer": preface + "\x03\x00\x00",
		"end with bytes":      preface + "\x03\x00\x01a",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
				raw, err := p.net.Host("here").Dial(t.Context(), p.address)
				require.NoError(t, err)
				say(t, raw, bytes)
				_, err = io.ReadAll(raw)
				require.True(t, err == nil || strings.Contains(err.Error(), "reset"), "%v", err)
				require.NoError(t, raw.Close())
				require.Contains(t, p.logged(), "bytes that are no frame")
				p.message(t, "the next")
			})
		})
	}
	for name, bytes := range map[string]string{
		"open from the accepter": "\x01\x00\x01a",
		"unknown kind":           "\x00\x00\x00",
		"two ends":               "\x03\x00\x00\x03\x00\x00",
	} {
		t.Run("answer: "+name, func(t *testing.T) {
			inBubble(t, streams.Bounds{}, func(t *testing.T, p *pair) {
				raw, err := p.net.Host("raw").Listen(7000)
				require.NoError(t, err)
				s, err := p.here.Dial(t.Context(), raw.Addr().String())
				require.NoError(t, err)
				say(t, s, "hello")
				other, err := raw.Accept()
				require.NoError(t, err)
				hear(t, other, preface+"\x01\x00\x05hello")
				say(t, other, bytes)
				_, err = s.Read(make([]byte, 1))
				require.Error(t, err)
				_, err = io.ReadAll(other)
				require.NoError(t, err)
				require.Contains(t, p.logged(), "bytes that are no frame")
				for _, c := range []io.Closer{s, other, raw} {
					require.NoError(t, c.Close())
				}
			})
		})
	}
}

// A log is optional, also where it would have something to say.
func TestNoLogIsNeeded(t *testing.T) {
	inner := newPipes()
	p, err := streams.New(streams.Config{Listener: inner, Dial: inner.dial, Log: (*slog.Logger)(nil)})
	require.NoError(t, err)
	conn, err := inner.dial(t.Context(), "itself")
	require.NoError(t, err)
	_, _ = conn.Write([]byte("nonsense of some length"))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err)
	require.NoError(t, p.Close())
}
