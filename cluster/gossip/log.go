package gossip

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
)

// libraryLog adapts memberlist's logger: what it calls a warning or an error is part of a node's life when others come and
// go, and information here; the rest is debug. If not even information is wanted, memberlist does not format its lines at
// all.
func libraryLog(to *slog.Logger) *log.Logger {
	if !to.Enabled(context.Background(), slog.LevelInfo) {
		return log.New(io.Discard, "", 0)
	}
	return log.New(lineWriter{to}, "", 0)
}

type lineWriter struct{ to *slog.Logger }

// Write takes one line, "[LEVEL] memberlist: text".
func (w lineWriter) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.HasPrefix(line, []byte("[WARN]")) || bytes.HasPrefix(line, []byte("[ERR")) {
		level = slog.LevelInfo
	}
	text := bytes.TrimSpace(line)
	if i := bytes.IndexByte(text, ']'); i >= 0 && bytes.HasPrefix(text, []byte("[")) {
		text = bytes.TrimSpace(text[i+1:])
	}
	w.to.Log(context.Background(), level, string(text))
	return len(line), nil
}
