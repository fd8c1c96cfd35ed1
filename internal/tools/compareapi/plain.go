package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// varying are the texts that differ between any two runs, in the order in which they are replaced.
var varying = []struct {
	form *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`), "<token>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b(evt|dlv|whk|tok|otp|req|med|key|whsec|lnk|tkt)_[\w+/=-]+`), "<$1>"},
	{regexp.MustCompile(`\b[0-9A-F]{16,}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "<hex>"},
	{regexp.MustCompile(`\b(127\.0\.0\.1|localhost|\[::1\]):\d+`), "<address>"},
	{regexp.MustCompile(`/tmp/[\w./-]+`), "<path>"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|ns|s|m|h)\b`), "<duration>"},
	{regexp.MustCompile(`\b\d{6}\b`), "<code>"},
}

// varyingNumbers are the fields whose numbers differ between any two runs.
var varyingNumbers = regexp.MustCompile(`(^|_)(ms|bytes|seq|pid|size|took|uptime|age|cursor|position|n|in|rate|seconds|latency|` +
	`count_from)$`)

func plainText(s string) string {
	for _, v := range varying {
		s = v.form.ReplaceAllString(s, v.name)
	}
	return s
}

// plainBody does so in a body. It sorts the fields of JSON.
func plainBody(body string) string {
	var value any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil || decoder.More() {
		return plainText(body)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain("", value)); err != nil {
		return plainText(body)
	}
	return strings.TrimSpace(b.String())
}

func plain(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, inner := range v {
			all[plainText(name)] = plain(name, inner)
		}
		return all
	case []any:
		for i, inner := range v {
			v[i] = plain(field, inner)
		}
		return v
	case string:
		return plainText(v)
	case json.Number:
		if varyingNumbers.MatchString(field) {
			return "<number>"
		}
		return v
	}
	return value
}
