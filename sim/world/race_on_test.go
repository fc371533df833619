//go:build race

package world_test

// raceDetector says that the tests run under the race detector, ten times
// slower: long counts are then cut short.
const raceDetector = true
