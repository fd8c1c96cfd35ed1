package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestContractLinkOfLongWords holds that a code is found beside words that are longer than it.
func TestContractLinkOfLongWords(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	for n, more := range []string{
		`"name":"` + strings.Repeat("abcdefgh", 7) + `"`,
		`"message":{"prompt":"https://toko.example/` + strings.Repeat("Km7p", 120) + ` ##code##","success":"s","failed":"f","expired":"e"}`,
		`"message":{"prompt":"masuk` + strings.Repeat("Km7p", 60) + `##code##sekarang","success":"s","failed":"f","expired":"e"}`,
	} {
		number := fmt.Sprintf("62813000010%02d", n)
		l := linkFor(e, number, more)
		e.Phone(number).Types(l.prompt)
		awaitLink(e, l.id, "APPROVED")
		if strings.Contains(string(e.Get("/api/chat/detail?contact_id="+number+"@c.us").Body), l.code) {
			t.Errorf("history holds the code of %q", l.prompt)
		}
	}
}
