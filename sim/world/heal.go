package world

import (
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// healNetwork ends every partition, and lets links behave as they do without a
// fault.
func (w *world) healNetwork() {
	for _, one := range w.faults.all() {
		if one.network {
			w.endFault(one)
		}
	}
}

// restartNow starts nodes again that a crash took down, and waits until they
// have been started.
func (w *world) restartNow(r *scenario.Restart) {
	for _, m := range w.resolve(r.Node) {
		for _, one := range w.faults.all() {
			if one.down == m {
				w.endFault(one)
			}
		}
	}
}
