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
	clear(c.lives)
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
	clear(c.spaces)
	c.known, c.findings = 0, findings{}
}

func (c *versionsForward) reset() {
	clear(c.lives)
	c.findings = findings{}
}

// These judge by the facts of the end alone.
func (c *principalStays) reset()      { c.findings = findings{} }
func (c *statesEqual) reset()         { c.findings = findings{} }
func (c *historyLinearizable) reset() { c.findings = findings{} }
func (c *settles) reset()             { c.findings = findings{} }
