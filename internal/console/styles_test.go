package console

import (
	"regexp"
	"testing"
)

// TestTextSizes holds that every text has a size of the one scale in style.css, or one relative to the text around it.
func TestTextSizes(t *testing.T) {
	size := regexp.MustCompile(`font-size: *([^;}]+)`)
	allowed := regexp.MustCompile(`^(var\(--text-[1-6]\)|\.?\d*em|inherit) *$`)
	for _, file := range []string{"ui/style.css", "ui/pages.css"} {
		body, err := embedded.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := size.FindAllStringSubmatch(string(body), -1)
		if len(found) == 0 {
			t.Errorf("%s: no sizes were found", file)
		}
		for _, match := range found {
			if !allowed.MatchString(match[1]) {
				t.Errorf("%s: %q is not of the scale --text-1 to --text-6", file, match[0])
			}
		}
	}
}
