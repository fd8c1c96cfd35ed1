package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/internal/app"
	"parley/internal/network/cloud/cloudtest"
)

// meta starts a server that speaks Meta's protocol, and a proxy through which it reaches the server of the data directory d. It sets
// META, WABA, FIRST and SECOND, which are the ids of numbers, and PROXY, and writes the secrets to token.txt and secret.txt.
func meta(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: meta")
	}
	s := cloudtest.Start()
	ts.Defer(s.Close)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		running, _ := app.Dir(ts.MkAbs("d")).Running()
		if to, err := url.Parse(running.URL); err == nil {
			r.SetURL(to)
		}
	}})
	ts.Defer(proxy.Close)
	for name, value := range map[string]string{"META": s.URL, "WABA": cloudtest.BusinessID, "PROXY": proxy.URL,
		"FIRST": s.AddNumber("6281100000001").ID, "SECOND": s.AddNumber("6281100000002").ID} {
		ts.Setenv(name, value)
	}
	ts.Check(os.WriteFile(ts.MkAbs("token.txt"), []byte(s.Token+"\n"), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("secret.txt"), []byte(s.AppSecret+"\n"), 0o600))
}
