package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
)

// Limits of the labels of one channel.
const (
	maxLabels = 10
	maxLabel  = 30 // characters
)

// isLabel reports whether a text has letters, digits, spaces and - _ . : only.
func isLabel(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= maxLabel && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number) && !strings.ContainsRune(" -_.:", r)
		})
}

// changedLabels are labels with some added and some removed, sorted and each once.
func changedLabels(labels, add, remove []string) []string {
	changed := slices.DeleteFunc(slices.Concat(labels, add), func(label string) bool { return slices.Contains(remove, label) })
	slices.Sort(changed)
	return slices.Compact(changed)
}

// checkLabels returns an error if a channel has too many labels. It runs in the transaction that changes the channel.
func checkLabels(_ *store.Tx, _, after parley.Channel) error {
	if len(after.Labels) > maxLabels {
		return parley.InvalidField("labels", fmt.Sprintf("labels must be at most %d for one channel. Remove some first.", maxLabels))
	}
	return nil
}

// labels reads a list of labels, sorted and each once.
func (r *request) labels(field string) []string {
	var labels []string
	r.List(field, 0, maxLabels, false, func(f form.Form, index string) {
		labels = append(labels, parseLabel(f, index))
	})
	return changedLabels(nil, labels, nil)
}

// parseLabel reads a label. It is stored in lower case, with single spaces.
func parseLabel(f form.Form, name string) string {
	text := f.Text(name, 1, 1000)
	label := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if text != "" && !isLabel(label) {
		f.Fail(name, "must be 1 to %d letters, digits, spaces and - _ . : for example jakarta.", maxLabel)
	}
	return label
}

// labelChange reads the fields that change labels: labels replaces them, add_labels and remove_labels change some.
func (r *request) labelChange() (change func([]string) []string) {
	all, add, remove := r.labels("labels"), r.labels("add_labels"), r.labels("remove_labels")
	if r.Has("labels") && (r.Has("add_labels") || r.Has("remove_labels")) {
		r.Fail("labels", "replaces all labels: do not send add_labels or remove_labels with it.")
	}
	replaces := r.Has("labels")
	return func(labels []string) []string {
		if replaces {
			return all
		}
		return changedLabels(labels, add, remove)
	}
}
