package bubble_test

import (
	"fmt"
	"time"

	"github.com/wlmsim/wlmsim/sim/bubble"
)

func ExampleRun() {
	err := bubble.Run(func() {
		time.Sleep(30 * 24 * time.Hour)
		fmt.Println(time.Since(bubble.Epoch))
	})
	fmt.Println(err)

	err = bubble.Run(func() { panic("seven") })
	fmt.Println(err)
	// Output:
	// 720h0m0s
	// <nil>
	// bubble: the function panicked: seven
}
