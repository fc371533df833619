package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// beside counts on a goroutine outside of any bubble for as long as the trial
// runs, and returns the count and how to end it.
func beside() (*atomic.Int64, func()) {
	count, done := &atomic.Int64{}, make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				count.Add(1)
			}
		}
	}()
	return count, func() { close(done); <-ended }
}

// planted returns a function that the load calls now and then.
func planted(what string, outside *atomic.Int64, t *trace) func() {
	switch what {
	case "outside":
		return func() { t.note("planted", outside.Load()) }
	case "clock":
		return func() {
			var now syscall.Timeval
			if err := syscall.Gettimeofday(&now); err != nil {
				os.Exit(1)
			}
			if now.Usec&1 == 1 {
				time.Sleep(time.Microsecond) // so that what follows moves
			}
		}
	}
	return func() {}
}
