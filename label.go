package parley

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the labels of one channel.
const (
	MaxLabels = 10
	MaxLabel  = 30 // characters
)

// ErrLabel rejects a text that is no label.
var ErrLabel = errors.New("is not a label")

// ParseLabel returns a label in its stored form: lower case, single spaces. It has letters, digits, spaces and - _ . : only.
func ParseLabel(text string) (string, error) {
	label := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if label == "" || utf8.RuneCountInString(label) > MaxLabel || !utf8.ValidString(label) {
		return "", ErrLabel
	}
	for _, r := range label {
		if !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number) && !strings.ContainsRune(" -_.:", r) {
			return "", ErrLabel
		}
	}
	return label, nil
}

// ChangeLabels returns labels with some added and some removed, sorted and each once.
func ChangeLabels(labels, add, remove []string) []string {
	changed := slices.DeleteFunc(slices.Concat(labels, add), func(label string) bool { return slices.Contains(remove, label) })
	slices.Sort(changed)
	return slices.Compact(changed)
}

// CheckLabels returns an error if a channel has too many labels.
func CheckLabels(labels []string) error {
	if len(labels) > MaxLabels {
		return InvalidField("labels", fmt.Sprintf("labels must be at most %d for one channel. Remove some first.", MaxLabels))
	}
	return nil
}
