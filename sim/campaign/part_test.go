package campaign

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/explore"
)

// gone is a worker whose process has ended.
func gone(t *testing.T) *worker {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, command.Run())
	w := &worker{command: command, answers: make(chan answer, 1), noise: &noise{}, ended: make(chan struct{})}
	close(w.ended)
	return w
}

// An interrupt that meets a worker which has just answered, and so ends it, does
// not lose the answer.
func TestAnInterruptDoesNotLoseAnAnswer(t *testing.T) {
	w := gone(t)
	_, ok := w.part()
	require.False(t, ok, "it has none")
	w.answers <- answer{Error: "an answer"}
	a, ok := w.part()
	require.True(t, ok)
	require.Equal(t, "an answer", a.Error)
}

// nobody reads what is written to it.
type nobody struct{ io.Writer }

func (nobody) Close() error { return nil }

// A worker that has nothing to tell when shrinking is interrupted says how it was
// ended; who asked learns that it was the context.
func TestAnInterruptOfShrinkingIsTheErrorOfTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := gone(t)
	w.in = nobody{io.Discard}
	w.answers <- answer{Error: "terminated signal received"}
	h := &Hand{slot{config: &Config{Limit: DefaultLimit}, worker: w}}
	_, err := h.Shrink(ctx, Shrinking{}, &explore.Result{})
	require.ErrorIs(t, err, context.Canceled)
}
