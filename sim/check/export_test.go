package check

// NewBucketsDistinct returns the check with another bound than MaxPrincipals.
func NewBucketsDistinct(most int) Check {
	c := newBucketsDistinct()
	c.most = most
	return c
}
