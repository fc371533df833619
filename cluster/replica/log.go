package replica

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// bridge hands raft's log lines to slog. Raft calls an error or a warning what
// is ordinary to a node, such as a peer that is down: that is information here,
// and all else is for debugging. What stops the replica goes to
// [Config.OnStop].
type bridge struct {
	to    *slog.Logger
	name  string
	with  []any
	quiet func() bool // while true, everything is of the lowest level; nil: never
}

func (b *bridge) lowered(level hclog.Level) slog.Level {
	switch {
	case b.quiet != nil && b.quiet():
		return slog.LevelDebug
	case level >= hclog.Warn:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (b *bridge) Log(level hclog.Level, msg string, args ...any) {
	if !b.enabled(level) {
		return
	}
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = arg
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 {
			shown[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	b.to.Log(context.Background(), b.lowered(level), "raft: "+msg, shown...)
}

func (b *bridge) enabled(level hclog.Level) bool {
	return b.to.Enabled(context.Background(), b.lowered(level))
}

func (b *bridge) Trace(msg string, args ...any) { b.Log(hclog.Trace, msg, args...) }
func (b *bridge) Debug(msg string, args ...any) { b.Log(hclog.Debug, msg, args...) }
func (b *bridge) Info(msg string, args ...any)  { b.Log(hclog.Info, msg, args...) }
func (b *bridge) Warn(msg string, args ...any)  { b.Log(hclog.Warn, msg, args...) }
func (b *bridge) Error(msg string, args ...any) { b.Log(hclog.Error, msg, args...) }

func (b *bridge) IsTrace() bool { return b.enabled(hclog.Trace) }
func (b *bridge) IsDebug() bool { return b.enabled(hclog.Debug) }
func (b *bridge) IsInfo() bool  { return b.enabled(hclog.Info) }
func (b *bridge) IsWarn() bool  { return b.enabled(hclog.Warn) }
func (b *bridge) IsError() bool { return b.enabled(hclog.Error) }

func (b *bridge) ImpliedArgs() []any { return b.with }

func (b *bridge) With(args ...any) hclog.Logger {
	return &bridge{to: b.to.With(args...), name: b.name, with: append(b.with[:len(b.with):len(b.with)], args...), quiet: b.quiet}
}

func (b *bridge) Name() string { return b.name }

func (b *bridge) Named(name string) hclog.Logger { return b.ResetNamed(b.name + name) }

func (b *bridge) ResetNamed(name string) hclog.Logger {
	return &bridge{to: b.to, name: name, with: b.with, quiet: b.quiet}
}

// SetLevel does nothing: the level is the slog handler's.
func (b *bridge) SetLevel(hclog.Level) {}

func (b *bridge) GetLevel() hclog.Level { return hclog.NoLevel }

func (b *bridge) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(b.to.Handler(), slog.LevelDebug)
}

func (b *bridge) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return b.StandardLogger(o).Writer()
}
