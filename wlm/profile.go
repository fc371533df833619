package wlm

import (
	"fmt"
	"strings"
)

// The profiles by name.
const (
	// ProfileReviewed is the pull request with all four remarks of its review
	// met, the default.
	ProfileReviewed = "reviewed"
	// ProfileSubmitted is the pull request as it was first written.
	ProfileSubmitted = "submitted"
)

// Profiles returns the name of every profile, the default first.
func Profiles() []string { return []string{ProfileReviewed, ProfileSubmitted} }

// Profile returns the switches of a profile, all of them set. An unknown name
// is an error that lists the known ones.
func Profile(name string) (Switches, error) {
	switch name {
	case ProfileReviewed:
		return Switches{}.filled(), nil
	case ProfileSubmitted:
		return Switches{
			Counters:         CountersPlain,
			MissingCounters:  MissingDefaultGroup,
			CountFailure:     FailureSwallowsRejection,
			PrincipalCarrier: CarrierHeader,
			PrincipalJoin:    JoinComma,
			Acquire:          AcquireRollback,
		}, nil
	}
	return Switches{}, fmt.Errorf("profile %q is unknown: one of %s", name, strings.Join(Profiles(), ", "))
}
