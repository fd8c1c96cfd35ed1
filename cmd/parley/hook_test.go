package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// hook starts a server that receives events, and sets a variable to its address: hook NAME. It adds
// a line to NAME.log for each request, and answers with the status in NAME.status if that is there.
func hook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hook NAME")
	}
	log, status := ts.MkAbs(args[0]+".log"), ts.MkAbs(args[0]+".status")
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		io.Copy(io.Discard, r.Body)
		file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer file.Close()
		fmt.Fprintf(file, "%s %s %s\n", r.Method, r.URL, r.Header.Get("webhook-id"))
		if text, err := os.ReadFile(status); err == nil {
			code, _ := strconv.Atoi(strings.TrimSpace(string(text))) // what is no number fails loudly below
			w.WriteHeader(code)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}
