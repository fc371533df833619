package campaign

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// An interrupt that meets a worker which has just answered, and so ends it, does
// not lose the answer.
func TestAnInterruptDoesNotLoseAnAnswer(t *testing.T) {
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "CAMPAIGN_TEST_WORKER=none")
	require.NoError(t, command.Run())
	w := &worker{command: command, answers: make(chan answer, 1), ended: make(chan struct{})}
	close(w.ended)
	_, ok := w.part()
	require.False(t, ok, "it has none")
	w.answers <- answer{Error: "an answer"}
	a, ok := w.part()
	require.True(t, ok)
	require.Equal(t, "an answer", a.Error)
}
