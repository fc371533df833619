package world

import "github.com/wlmsim/wlmsim/sim/history"

// owner is the key by which the history knows whose search it is: by the
// role that a bucket is charged to, whichever that is under this profile.
func (w *world) owner(user string, roles []string) string {
	return history.PrincipalKey(user, []string{w.switches.RoleChoice.Charged(roles)})
}
