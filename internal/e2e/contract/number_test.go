package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestContractImpossibleNumbers writes to numbers that pass the pattern and that nobody can have. They are
// accepted and fail, with a sentence that says what to do.
func TestContractImpossibleNumbers(t *testing.T) {
	e := parleytest.Start(t)
	for _, number := range []string{"0812345", "081234567890", "12345", "628123", "6281234567890123", strings.Repeat("1", 45)} {
		failed := expectFailed(submit(e, "text", object{"contact_id": number + "@c.us", "message": "x"}), "not_on_network")
		if got := failed.Text("message"); !strings.Contains(got, "Begin with the country code") || failed.Text("data.error.message") != got {
			t.Errorf("%s: %s", number, failed.Body)
		}
		exists := e.Get("/api/channel/check-phone-number?phone=" + number).Expect(http.StatusOK)
		wantValue(t, exists, "data.is_exists", false)
		wantValue(t, exists, "data.contact_id", nil)
		e.Post("/api/sandbox/phones/"+number+"/send", `{"type":"text","message":"hi"}`).Expect(http.StatusBadRequest)
	}
	for _, number := range []string{"1234567", strings.Repeat("1", 15)} {
		wantValue(t, submit(e, "text", object{"contact_id": number + "@c.us", "message": "x"}).Expect(http.StatusOK), "data.status", "SENT")
	}
}
