package diagnostics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/doctor"
)

// broken is a store that does not answer.
type broken struct{ Store }

var errBroken = errors.New("read /var/lib/parley/parley.db: disk I/O error of +62 812-3456-7890")

func (broken) Webhooks(context.Context) ([]parley.Webhook, error) { return nil, errBroken }
func (broken) ChannelStates(context.Context, parley.ChannelCode, time.Time, int) ([]parley.ChannelState, error) {
	return nil, errBroken
}
func (broken) Deliveries(context.Context, parley.DeliveryQuery, parley.Page) ([]parley.Delivery, int64, error) {
	return nil, 0, errBroken
}

// TestCollectWithErrors makes the files of a server on which nothing works any more: each tells what there is,
// and what there is not.
func TestCollectWithErrors(t *testing.T) {
	files := Collect(t.Context(), Source{
		Version: "test", StartedAt: time.Now(), Store: broken{},
		Doctor: func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Check: "data", Level: doctor.Problem, Found: "damaged"}}
		},
		Channels: func() []Channel { return []Channel{{Channel: parley.Channel{Code: "shop", Number: "6281234567890"}}} },
		Metrics:  func() (string, error) { return "", errors.New("no figures") },
		Log:      func() []string { return []string{`level=ERROR msg="it burns" number=+6281234567890`} },
	})
	text := map[string]string{}
	for _, f := range files {
		text[f.Name] = f.Text
	}
	for name, part := range map[string]string{
		"version.txt": "test", "doctor.txt": "damaged", "channels.json": `"number": "…890"`, "goroutines.txt": "TestCollectWithErrors",
		"config.txt": "could not be found out: the settings of the server", "channel-changes.json": "disk I/O error of …890",
		"webhooks.json":   "could not be found out",
		"deliveries.json": "could not be found out", "metrics.txt": "could not be found out: no figures",
		"log.txt": `level=ERROR msg="it burns" number=…890`,
	} {
		if !strings.Contains(text[name], part) {
			t.Errorf("%s has no %q: %.500s", name, part, text[name])
		}
	}
}
