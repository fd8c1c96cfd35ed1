package main

import (
	"strings"
	"testing"
	"time"
)

const stream = `{"Action":"start","Package":"parley/a"}
{"Action":"run","Package":"parley/a","Test":"TestGood"}
{"Action":"output","Package":"parley/a","Test":"TestGood","Output":"    a.go:1: a word of a good test\n"}
{"Action":"pass","Package":"parley/a","Test":"TestGood","Elapsed":1.4}
{"Action":"run","Package":"parley/a","Test":"TestBad"}
{"Action":"run","Package":"parley/a","Test":"TestBad/part"}
{"Action":"output","Package":"parley/a","Test":"TestBad/part","Output":"=== RUN   TestBad/part\n"}
{"Action":"output","Package":"parley/a","Test":"TestBad/part","Output":"    a.go:2: why it failed\n"}
{"Action":"fail","Package":"parley/a","Test":"TestBad/part"}
{"Action":"output","Package":"parley/a","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"parley/a","Test":"TestBad"}
{"Action":"run","Package":"parley/a","Test":"TestPanics"}
{"Action":"output","Package":"parley/a","Test":"TestPanics","Output":"panic: oh\n"}
{"Action":"output","Package":"parley/a","Output":"FAIL\tparley/a\t0.01s\n"}
{"Action":"fail","Package":"parley/a"}
a line of the compiler
{"Action":"output","Package":"parley/b","Output":"PASS\n"}
{"Action":"output","Package":"parley/b","Output":"ok  \tparley/b\t0.02s\n"}
{"Action":"pass","Package":"parley/b"}
{"Action":"run","Package":"parley/c","Test":"TestLong"}
`

func TestProgress(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	if err := p.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	want := `    a.go:2: why it failed
--- FAIL: TestBad (0.00s)
--- did not end: TestPanics
panic: oh
FAIL	parley/a	0.01s
a line of the compiler
ok  	parley/b	0.02s
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
	if got, want := p.slowest(1), "slowest: a TestGood 1s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.running[test{"parley/c", "TestLong"}] = p.begun
	if got, want := p.status(p.begun.Add(80*time.Second)), "  1m20s: 1 tests passed, 2 failed; running c TestLong 1m20s"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
}
