package streams

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// preface begins every connection; its last byte but one is the version.
const preface = "wlmstream1\n"

// kind says what a frame is. The numbers are the format.
type kind byte

const (
	kindOpen kind = 1 // the first bytes of a stream, from the end that dialled
	kindData kind = 2 // more bytes of it, from either end
	kindEnd  kind = 3 // the end that accepted has closed it; without bytes
)

// headerSize is a kind and the number of bytes that follow, big endian.
const headerSize = 3

// maxFrame bounds the bytes of a frame.
const maxFrame = 1<<16 - 1

var errFormat = errors.New("streams: bytes that are no frame")

// appendFrame appends a frame; b has at most maxFrame bytes.
func appendFrame(buf []byte, k kind, b []byte) []byte {
	buf = append(buf, byte(k))
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(b)))
	return append(buf, b...)
}

// readHeader reads the header of a frame. After an error that passes, as of a
// deadline, it can be called again and nothing is lost.
func readHeader(r *bufio.Reader) (k kind, size int, err error) {
	b, err := r.Peek(headerSize)
	if err != nil {
		if len(b) > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, 0, err
	}
	k, size = kind(b[0]), int(binary.BigEndian.Uint16(b[1:]))
	if k < kindOpen || k > kindEnd || k == kindEnd && size != 0 {
		return 0, 0, fmt.Errorf("%w: kind %d with %d bytes", errFormat, k, size)
	}
	_, err = r.Discard(headerSize)
	return k, size, err
}

func readPreface(r *bufio.Reader) error {
	var b [len(preface)]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	if string(b[:]) != preface {
		return fmt.Errorf("%w: a connection begins with %q, want %q", errFormat, b[:], preface)
	}
	return nil
}
