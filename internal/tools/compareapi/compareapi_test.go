package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func recorded(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCompare holds that ids and times do not count as differences, and that a status, a field and a word do.
func TestCompare(t *testing.T) {
	before := recorded(t,
		`{"test":"A","method":"POST","path":"/api/x","body":"{\"key\":\"k\"}","status":200,`+
			`"answer":"{\"at\":\"2026-01-01T00:00:00.000Z\",\"id\":\"evt_1a\",\"seq\":7}\n"}`,
		`{"test":"A","method":"GET","path":"/api/y","status":200,"answer":"{\"ok\":true}"}`,
		`{"test":"A","method":"GET","path":"/api/z","status":404,"answer":"{\"message\":\"No.\"}"}`,
		`{"test":"B","method":"GET","path":"/api/old","status":200,"answer":"OK"}`)
	after := recorded(t,
		`{"test":"A","method":"POST","path":"/api/x","body":"{\"key\":\"k\"}","status":200,"answer":"{\"seq\":9,`+
			`\"at\":\"2027-01-01T00:00:00.000Z\",\"id\":\"evt_2b\"}"}`,
		`{"test":"A","method":"GET","path":"/api/y","status":200,"answer":"{\"ok\":true,\"more\":1}"}`,
		`{"test":"A","method":"GET","path":"/api/z","status":400,"answer":"{\"message\":\"No.\"}"}`)
	var out strings.Builder
	differ, err := run(before, after, &out)
	if err != nil || differ != 2 {
		t.Fatalf("%d differ, %v\n%s", differ, err, &out)
	}
	want := `A: GET /api/y 
  - 200 {"ok":true}
  + 200 {"more":1,"ok":true}
A: GET /api/z 
  - 404 {"message":"No."}
  + 400 {"message":"No."}
1 requests have the same responses, 2 have others, 1 are only in the first record
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
	if _, err := run(t.TempDir(), after, &out); err == nil {
		t.Error("a folder without a record is compared")
	}
}
