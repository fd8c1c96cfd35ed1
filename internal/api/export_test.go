package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wire"
)

func TestExportOfMessages(t *testing.T) {
	e := newEnv(t)
	send := func(token, message string) {
		t.Helper()
		e.call("POST", "/api/send-message/text", token, m{"contact_id": ayu, "message": message}).want(t, 200)
	}
	formula := "=HYPERLINK(\"http://evil\",\"a,b\")\nsecond line"
	send(e.main, formula)
	send(e.main, "plain, \"quoted\"")
	send(e.second, "elsewhere")
	e.call("POST", "/api/otp/code/request", e.main, m{"contact_id": ayu}).want(t, 200)

	a := e.call("GET", "/api/manage/messages/export?channel=main", e.admin, nil)
	a.want(t, 200)
	if got := a.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" || a.Header.Get(atMostHeader) != "3" ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), `attachment; filename="parley-messages-`) {
		t.Errorf("headers: %v", a.Header)
	}
	rows := must(csv.NewReader(strings.NewReader(a.text)).ReadAll())(t)
	if len(rows) != 4 || rows[0][0] != "timestamp" || rows[0][8] != "body" {
		t.Fatalf("rows: %q", rows)
	}
	if rows[1][8] != hiddenText || rows[1][15] != "true" || rows[2][8] != "plain, \"quoted\"" || rows[3][8] != "'"+formula ||
		rows[3][2] != "out" {
		t.Errorf("rows: %q", rows)
	}

	// JSON lines have the rows of the list, and no more text of a code than CSV.
	viewer := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Viewer})
	a = e.call("GET", "/api/manage/messages/export?format=jsonl&direction=out", viewer, nil)
	a.want(t, 200)
	lines := strings.Split(strings.TrimSpace(a.text), "\n")
	if len(lines) != 4 {
		t.Fatalf("lines: %q", lines)
	}
	for _, line := range lines {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil || row["otp"] == true && row["body"] != hiddenText {
			t.Errorf("line: %s, %v", line, err)
		}
	}

	// HEAD counts and is no export; an export is in the audit log with what was asked for.
	head := must(http.NewRequest("HEAD", e.server.URL+"/api/manage/messages/export", nil))(t)
	head.Header.Set("Authorization", "Bearer "+e.admin)
	got := must(http.DefaultClient.Do(head))(t)
	got.Body.Close()
	if got.StatusCode != 200 || got.Header.Get(atMostHeader) != "4" {
		t.Errorf("HEAD: %d, %v", got.StatusCode, got.Header)
	}
	log, entries := e.auditLog("?action=message.")
	if strings.Join(log, ", ") != "message.export main, message.export" {
		t.Errorf("audit log: %v", log)
	}
	if after := entries[0].(m)["after"].(m); after["format"] != "jsonl" || after["direction"] != "out" {
		t.Errorf("what was exported: %v", after)
	}
}

func TestExportRefuses(t *testing.T) {
	e := newEnv(t)
	for _, query := range []string{"messages/export?format=xml", "messages/export?format=", "messages/export?status=LOST",
		"messages/export?after=soon", "messages/export?contact=x", "deliveries/export?format=pdf", "deliveries/export?state=lost",
		"deliveries/export?since=soon", "deliveries/export?event_id=evt_x"} {
		e.call("GET", "/api/manage/"+query, e.admin, nil).want(t, 422)
	}
	e.call("GET", "/api/manage/messages/export", e.main, nil).want(t, 403)
	e.call("POST", "/api/manage/messages/export", e.admin, nil).want(t, 405)
	if lines, _ := e.auditLog(""); len(lines) != 0 {
		t.Errorf("audit log: %v", lines)
	}
}

func TestExportOfDeliveries(t *testing.T) {
	e := newEnv(t)
	const many = 2*exportPage + 3
	at := time.Now().UTC()
	var all []parley.Delivery
	for i := range many {
		all = append(all, parley.Delivery{URL: fmt.Sprint("https://example.com/", i), EventID: parley.EventID(fmt.Sprint("evt_", i)),
			Channel: "main", Event: int64(i + 1), Type: parley.OTPApproved, State: parley.DeliveryFailed, Problem: "@problem", CreatedAt: at})
	}
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddDeliveries(t.Context(), all) }); err != nil {
		t.Fatal(err)
	}
	a := e.call("GET", "/api/manage/deliveries/export?state=failed", e.admin, nil)
	a.want(t, 200)
	rows := must(csv.NewReader(strings.NewReader(a.text)).ReadAll())(t)
	if len(rows) != many+1 || a.Header.Get(atMostHeader) != fmt.Sprint(many) || rows[1][12] != "'@problem" {
		t.Errorf("%d rows, at most %s: %q", len(rows), a.Header.Get(atMostHeader), rows[:2])
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		seen[row[14]] = true
	}
	if len(seen) != many {
		t.Errorf("%d different deliveries", len(seen))
	}
}

func TestSafeCells(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "hello": "hello", "a=b": "a=b", " =1": " =1", "=1+1": "'=1+1", "+62": "'+62", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\tx": "'\tx",
		"\rx": "'\rx", "\nx": "'\nx", "＝1": "'＝1", "'=1": "'=1", "é": "é",
	} {
		if got := wire.SafeCell(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// failingWriter accepts some bytes.
type failingWriter struct {
	header http.Header
	room   int
}

func (w *failingWriter) Header() http.Header { return w.header }
func (w *failingWriter) WriteHeader(int)     {}
func (w *failingWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestExportIsBounded: the next page is read only when the last one was taken, and an export that cannot go on is no whole one.
func TestExportIsBounded(t *testing.T) {
	pages := 0
	type row struct {
		N string `json:"n"`
	}
	e := export[row]{columns: []string{"n"}}
	e.next = func(context.Context) ([]row, bool, error) {
		pages++
		return slices.Repeat([]row{{strings.Repeat("x", 1000)}}, 100), true, nil
	}
	err := writeExport(t.Context(), &failingWriter{http.Header{}, 350_000}, "csv", e, nil, true)
	if !errors.Is(err, errIncomplete) || !errors.Is(err, io.ErrClosedPipe) || pages > 4 {
		t.Errorf("%d pages: %v", pages, err)
	}
	e.next = func(context.Context) ([]row, bool, error) { return nil, false, errors.New("the database is gone") }
	if err := writeExport(t.Context(), &failingWriter{http.Header{}, 1 << 20}, "csv", e, nil, true); !errors.Is(err, errIncomplete) {
		t.Errorf("an export that failed: %v", err)
	}
}
