package campaign

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sampleDump = `SIGQUIT: quit
PC=0x495c61 m=0 sigcode=0

goroutine 1 gp=0x39ad40f9c1e0 m=nil [synctest.Run (durable), 4 minutes, synctest bubble 1]:
runtime.gopark(0x39ad413f94e0?, 0x8?, 0x8?, 0x0?, 0x1?)
	/usr/local/go/src/runtime/proc.go:462 +0xce fp=0x39ad413f9478 sp=0x39ad413f9458 pc=0x48c14e
main.main()
	/src/main.go:18 +0xc5

goroutine 7 gp=0x39ad410923c0 m=nil [cleanup wait, 5 minutes]:
runtime.runCleanups()
	/usr/local/go/src/runtime/mcleanup.go:718 +0x45 fp=0x1 sp=0x2 pc=0x3

goroutine 19 [sync.Mutex.Lock, 4 minutes, synctest bubble 1]:
internal/sync.runtime_SemacquireMutex(0x1?, 0x2?, 0x3?)
	/usr/local/go/src/runtime/sema.go:95 +0x25
example.com/x.(*thing).take(0x39ad4124c460, {0xfc9a60, 0x39ad41241360})
	/src/x/thing.go:12 +0x3b3 fp=0x39ad41c2bfa8 sp=0x39ad41c2be98 pc=0xa15c93
created by example.com/x.start in goroutine 1
	/src/x/thing.go:5 +0x385

rax    0xca
rip    0x495c61
`

func TestADumpIsReducedToWhatHoldsVirtualTimeUp(t *testing.T) {
	require.Equal(t, `goroutine 19 [sync.Mutex.Lock, 4 minutes, synctest bubble 1]
  internal/sync.runtime_SemacquireMutex at /usr/local/go/src/runtime/sema.go:95
  example.com/x.(*thing).take at /src/x/thing.go:12
and 2 other goroutines`, culprits(sampleDump))
}

func TestWhatIsShownIsBounded(t *testing.T) {
	block := "goroutine 5 [running, synctest bubble 1]:\nmain.f()\n\t/src/f.go:1\n\n"
	require.Equal(t, shownGoroutines, strings.Count(culprits(strings.Repeat(block, 50)), "main.f at"))
	require.Contains(t, culprits(strings.Repeat(block, 50)), "and 42 other goroutines")
	require.Equal(t, shownLines, strings.Count(beginning(strings.Repeat("x\n", 1000)), "\n"))
	require.Equal(t, "x\nx", beginning("x\nx\n"))
}
