package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/internal/diagnostics"
)

var typeZip = []string{"application/zip"}

// diagnosticsName is what a bundle is saved as.
const diagnosticsName = "parley-diagnostics-20060102T150405Z.zip"

// readDiagnostics answers with what somebody who helps needs to know, in one file.
func (s *server) readDiagnostics(ctx context.Context, _ *request) (answer, error) {
	now := time.Now().UTC()
	packed, err := diagnostics.Zip(diagnostics.Collect(ctx, s.diagnosed()), now)
	return answer{status: http.StatusOK, contentType: typeZip, body: packed,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", now.Format(diagnosticsName))}}}, err
}

// diagnosticsFile is one file of the bundle, to be looked at before it is saved.
type diagnosticsFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Text  string `json:"text"`
}

func (s *server) listDiagnostics(ctx context.Context, _ *request) (envelope[[]diagnosticsFile], error) {
	files := diagnostics.Collect(ctx, s.diagnosed())
	rows := make([]diagnosticsFile, len(files))
	for i, f := range files {
		rows[i] = diagnosticsFile{f.Name, len(f.Text), f.Text}
	}
	return ok("OK", rows), nil
}

// diagnosed is where the bundle takes what it tells from.
func (s *server) diagnosed() diagnostics.Source {
	return diagnostics.Source{
		Version: s.Program.Version, Mode: s.Program.Mode, StartedAt: s.Program.StartedAt, Settings: s.Program.Settings,
		Doctor: s.Program.Doctor, Channels: s.diagnosedChannels, Store: s.Store, Metrics: s.metricsText, Log: s.Program.RecentLog,
	}
}

func (s *server) diagnosedChannels() []diagnostics.Channel {
	var all []diagnostics.Channel
	for _, c := range s.Gateway.Channels() {
		one := diagnostics.Channel{Channel: c, Waiting: s.Gateway.QueueDepth(c.Code)}
		if e, known := s.Gateway.Evidence(c.Code); known {
			one.Evidence = &e
		}
		all = append(all, one)
	}
	return all
}

// metricsText is what /metrics would answer.
func (s *server) metricsText() (string, error) {
	kept := &keptAnswer{header: http.Header{}, status: http.StatusOK}
	promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(kept, &http.Request{Header: http.Header{}})
	if kept.status != http.StatusOK {
		return "", fmt.Errorf("the figures are answered with %d", kept.status)
	}
	return kept.body.String(), nil
}

// keptAnswer is an answer that goes nowhere.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(p []byte) (int, error) { return k.body.Write(p) }
