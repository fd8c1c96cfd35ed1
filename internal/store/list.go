package store

import (
	"strconv"
	"strings"
)

// maxList is how many values a list in a statement has at most.
const maxList = 64

// param is the nth parameter of a statement.
func param(n int) string { return "$" + strconv.Itoa(n) }

// lists are the texts of lists, by their first parameter and their length.
var lists = map[[2]int]string{}

func init() {
	for first := 1; first <= 8; first++ {
		for size := 1; size <= maxList; size *= 2 {
			lists[[2]int{first, size}] = listText(first, size)
		}
	}
}

func listText(first, size int) string {
	params := make([]string, size)
	for i := range params {
		params[i] = param(first + i)
	}
	return "(" + strings.Join(params, ", ") + ")"
}

// inList makes the list of an IN, from one parameter on, and its arguments. It is filled up to a power of two with its last
// value, because a statement is prepared for every length.
func inList[T any](first int, values []T) (text string, args []any) {
	size := 1
	for size < len(values) {
		size *= 2
	}
	args = make([]any, size)
	for i := range args {
		args[i] = values[min(i, len(values)-1)]
	}
	text, ok := lists[[2]int{first, size}]
	if !ok {
		text = listText(first, size)
	}
	return text, args
}

// texts are values as the database binds them.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
