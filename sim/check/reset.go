package check

// resetter is a check that can be made as good as new and keep its memory: an
// explorer judges tens of thousands of short runs a second.
type resetter interface{ reset() }

func (c *permitsBounded) reset() {
	clear(c.permits)
	clear(c.buckets)
	c.findings = findings{}
}

func (c *permitsReturn) reset() {
	clear(c.held)
	c.findings = findings{}
}

func (c *oneOutcome) reset() {
	clear(c.open)
	for _, t := range c.lives { // lives are the same from run to run
		*t = tally{}
	}
	clear(c.unbegun)
	c.findings = findings{}
}

func (c *countersAddUp) reset() {
	clear(c.refused)
	clear(c.given)
	clear(c.counted)
	c.findings = findings{}
}

func (c *rejectionAttribution) reset() {
	clear(c.rejected)
	c.findings = findings{}
}

func (c *rejectionKept) reset() {
	clear(c.refused)
	c.findings = findings{}
}

func (c *bucketsDistinct) reset() {
	clear(c.owners)
	for _, p := range c.spaces {
		clear(p.bucketOf)
		clear(p.ownerOf)
		c.spare = append(c.spare, p)
	}
	clear(c.spaces)
	c.known, c.findings = 0, findings{}
}

func (c *versionsForward) reset() {
	for _, p := range c.lives { // lives are the same from run to run
		*p = publication{listeners: p.listeners[:0]}
	}
	c.findings = findings{}
}

// These judge by the facts of the end alone.
func (c *principalStays) reset()      { c.findings = findings{} }
func (c *statesEqual) reset()         { c.findings = findings{} }
func (c *historyLinearizable) reset() { c.findings = findings{} }
func (c *settles) reset()             { c.findings = findings{} }
