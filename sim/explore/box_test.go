package explore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
)

// boxVariable names the file of the box in the process that dies.
const boxVariable = "WLMSIM_TEST_BOX"

func init() {
	if path := os.Getenv(boxVariable); path != "" {
		die(path)
		os.Exit(0)
	}
}

// die explores a toy with three workers, until all of them are under way and a
// goroutine in the bubble of one of them panics. Standard output has its schedule.
func die(path string) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	box, err := syscall.Mmap(int(file.Fd()), 0, BoxSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	const workers = 3
	there := make(chan struct{}, workers) // of no bubble, as is the next one
	forever := make(chan struct{})
	x := toyTable(wide(addCell), 1000, 4)
	x.noted(pageOf(box, 0))
	x.hire = func(number int) (*table, error) {
		one := toyTable(wide(addCell), 1000, 4)
		run := one.run
		one.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
			return run(&dying{c, func(taken []int) {
				there <- struct{}{}
				if number == 1 {
					for range workers {
						<-there
					}
					fmt.Println(taken)
					go panic("planted")
				}
				<-forever
			}, nil}, taken, traced)
		}
		one.noted(pageOf(box, number))
		return one, nil
	}
	_ = x.explore(Options{NoReduction: true, Workers: workers}.withDefaults(false))
}

// dying is a chooser that does not come past the sixth turn.
type dying struct {
	chooser
	die   func(taken []int)
	taken []int
}

func (d *dying) choose(turn int, enabled uint64, steps []step, last int) (int, error) {
	if turn == 6 {
		d.die(d.taken)
	}
	next, err := d.chooser.choose(turn, enabled, steps, last)
	d.taken = append(d.taken, next)
	return next, err
}

// Promise 7: of the schedules under way, the one is told in whose bubble a
// goroutine panicked.
func TestABoxKnowsTheScheduleOfThePanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	require.NoError(t, os.WriteFile(path, make([]byte, BoxSize), 0o600))
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), boxVariable+"="+path)
	var words bytes.Buffer
	child.Stderr = &words
	want, err := child.Output()
	require.Error(t, err)
	require.Contains(t, words.String(), "panic: planted")
	box, err := os.ReadFile(path)
	require.NoError(t, err)
	f := Flight{Lanes: []string{"0", "1", "2"}}
	r := f.Result(box, check.Broken, "planted", words.String())
	require.Equal(t, Schedule(strings.Fields(strings.Trim(string(want), "[]\n"))).String(), r.Checks[0].Schedule)
	executions, turns := Begun(box)
	require.EqualValues(t, 8+3, executions, "the first portions, and one of each worker")
	require.EqualValues(t, 3*6, turns)
}

// A page is found by the bubble that is named first, among those under way, or
// among those that were last.
func TestThePageOfWhoBroughtTheProcessDown(t *testing.T) {
	box := make([]byte, BoxSize)
	for worker, id := range []uint64{5, 6, 7} {
		p := pageOf(box, worker+1)
		p.begin()
		p.setBubble(id)
		p.take(0, worker)
	}
	f := Flight{Lanes: []string{"a", "b", "c"}}
	shown := func(words string) string { return f.Result(box, check.Broken, "", words).Checks[0].Schedule }
	words := "panic: x\n\ngoroutine 9 [running, synctest bubble 66]:\ngoroutine 9 [running, synctest bubble %d]:\ngoroutine 8 [select, synctest bubble 5]:\n"
	require.Equal(t, "b", shown(fmt.Sprintf(words, 6)))
	require.Equal(t, "c", shown(fmt.Sprintf(words, 7)))
	require.Equal(t, "a", shown(""))
	pageOf(box, 1)[pageUnder], pageOf(box, 3)[pageUnder] = 0, 0
	require.Equal(t, "b", shown(fmt.Sprintf(words, 7)), "the only one under way")
	pageOf(box, 2)[pageUnder] = 0
	require.Equal(t, "c", shown(fmt.Sprintf(words, 7)))
}

func TestAnEmptyBoxKnowsNoSchedule(t *testing.T) {
	r := Flight{Repeat: "again"}.Result(make([]byte, BoxSize), check.Undecided, "why", "")
	require.Empty(t, r.Checks[0].Schedule)
	require.Equal(t, "why", r.Checks[0].Message)
	require.Equal(t, "again", r.Repeat)
}
