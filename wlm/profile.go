package wlm

import (
	"fmt"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// The profiles by name.
const (
	// ProfileReviewed is the pull request with all four remarks of its review
	// met, the default.
	ProfileReviewed = "reviewed"
	// ProfileSubmitted is the pull request as it was first written.
	ProfileSubmitted = "submitted"
	// ProfileUpstream is what OpenSearch made of it: its pull request 22869
	// after the review there (generation G3).
	ProfileUpstream = "upstream"
)

// Profiles returns the name of every profile, the default first.
func Profiles() []string { return []string{ProfileReviewed, ProfileSubmitted, ProfileUpstream} }

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
		}.filled(), nil
	case ProfileUpstream:
		return Switches{
			PrincipalJoin: JoinUnitSeparator,
			Publication:   PublicationManagerLast,
			DimensionKey:  cluster.KeyBy,
			RejectionText: TextNamesGroup,
			Monitor:       MonitorObserves,
			Nested:        NestedExempt,
			Scroll:        ScrollCharged,
			RoleChoice:    RoleSmallest,
			GroupHeader:   HeaderKeepsOuter,
		}.filled(), nil
	}
	return Switches{}, fmt.Errorf("profile %q is unknown: one of %s", name, strings.Join(Profiles(), ", "))
}
