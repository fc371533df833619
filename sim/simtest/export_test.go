package simtest

// FailFile returns the path of the fail file of a test and its program.
func FailFile(t TB, o Exploration) (string, error) {
	x := exploring{TB: t, options: o}
	_, _, err := x.prepare()
	return x.path(), err
}
