package browsertest

import (
	"net/http"
	"strings"
	"testing"
)

// TestExport saves the messages of a filter as a file.
func TestExport(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, text := range []string{`=HYPERLINK(\"http://evil\")\nover two lines`, "plain", "<script>alert(1)</script>"} {
		c.Post("/api/send-message/text", `{"contact_id":"`+ayu+`@c.us","message":"`+text+`"}`).Expect(http.StatusOK)
	}
	p := c.open("/messages?q=direction:out")
	p.see("plain")
	p.click("button", "Export")
	p.see("At most 3 rows.")
	p.accessible()
	file := string(p.downloads(func() { p.click("button", "Start export") }))
	p.see("3 rows exported.")
	if !strings.HasPrefix(file, "timestamp,channel,") || !strings.Contains(file, `"'=HYPERLINK(""http://evil"")`) ||
		strings.Count(file, "\n") != 5 {
		t.Errorf("the file is %q", file)
	}
	p.visit("/webhooks/deliveries")
	p.live()
	p.click("button", "Export")
	p.see("At most 0 rows.")
	p.accessible()
}
