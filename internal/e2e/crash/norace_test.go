//go:build !race

package crash_test

var buildFlags []string
