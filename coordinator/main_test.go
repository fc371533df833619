package coordinator_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds returns how often a race is tried: full times when WLMSIM_SOAK=1, and
// reduced times otherwise.
func rounds(reduced, full int) int {
	if os.Getenv("WLMSIM_SOAK") == "1" {
		return full
	}
	return reduced
}
