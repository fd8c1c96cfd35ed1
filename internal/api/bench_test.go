package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkSendText sends texts through everything but the network: 64 callers, each waiting for its
// message to be on disk and confirmed.
func BenchmarkSendText(b *testing.B) {
	e := newEnv(b, func(c *Config) { c.Log = slog.New(slog.DiscardHandler) })
	var caller atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		n := caller.Add(1)
		body := fmt.Sprintf(`{"contact_id":"62812345%05d@c.us","message":"Your order is on its way."}`, n)
		for pb.Next() {
			hr := httptest.NewRequest("POST", "/api/send-message/text", strings.NewReader(body))
			hr.Header.Set("Authorization", "Bearer "+e.main)
			hr.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			e.handler.ServeHTTP(w, hr)
			if w.Code != http.StatusOK {
				b.Error(w.Body.String())
				return
			}
		}
	})
}

// BenchmarkRefused measures the way to a refusal: what the API costs without the gateway.
func BenchmarkRefused(b *testing.B) {
	e := newEnv(b, func(c *Config) { c.Log = slog.New(slog.DiscardHandler) })
	b.ReportAllocs()
	for b.Loop() {
		hr := httptest.NewRequest("POST", "/api/send-message/text", strings.NewReader(`{"contact_id":"6281234567890@c.us","message":""}`))
		hr.Header.Set("Authorization", "Bearer "+e.main)
		hr.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		e.handler.ServeHTTP(w, hr)
		if w.Code != http.StatusUnprocessableEntity {
			b.Fatal(w.Body.String())
		}
	}
}
