package wlm

// Charged returns which of a user's roles a bucket by role is charged to; ""
// if there is none.
func (c RoleChoice) Charged(roles []string) string { return charged(roles, newChooser(c)) }

func charged(roles []string, c chooser) string {
	best := ""
	for _, role := range roles {
		best = c.better(best, role)
	}
	return best
}
