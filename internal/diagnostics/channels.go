package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley"
)

type channelRow struct {
	Code            string               `json:"code"`
	Network         parley.NetworkName   `json:"network"`
	Number          string               `json:"number"`
	Enabled         bool                 `json:"enabled"`
	Status          parley.ChannelStatus `json:"status"`
	Since           *time.Time           `json:"since"`
	WorkingAt       *time.Time           `json:"working_at"`
	Reason          string               `json:"reason"`
	Waiting         int                  `json:"waiting"`
	RestrictedUntil *time.Time           `json:"restricted_until"`
	Evidence        *evidence            `json:"evidence"`
}

type evidence struct {
	Connected *time.Time `json:"connected_at"`
	Heard     *time.Time `json:"heard_at"`
	Confirmed *time.Time `json:"confirmed_at"`
	Received  *time.Time `json:"received_at"`
}

func (s Source) writeChannels(_ context.Context, b *strings.Builder) error {
	rows := []channelRow{}
	for _, c := range s.Channels() {
		row := channelRow{
			Code: scrub(string(c.Code)), Network: c.Network, Number: maskNumber(c.Number), Enabled: c.Enabled,
			Status: c.State.Status, Since: orNil(c.State.Since), WorkingAt: orNil(c.State.WorkingAt), Reason: scrub(c.State.Reason),
			Waiting: c.Waiting, RestrictedUntil: orNil(c.RestrictedUntil),
		}
		if e := c.Evidence; e != nil {
			row.Evidence = &evidence{orNil(e.Connected), orNil(e.Heard), orNil(e.Confirmed), orNil(e.Received)}
		}
		rows = append(rows, row)
	}
	return writeJSON(b, rows)
}

type change struct {
	At      time.Time            `json:"at"`
	Channel string               `json:"channel"`
	Status  parley.ChannelStatus `json:"status"`
	Reason  string               `json:"reason"`
}

const (
	changesOf  = 20  // the newest of one channel
	allChanges = 500 // of all channels
)

func (s Source) writeChanges(ctx context.Context, b *strings.Builder) error {
	changes := []change{}
	var errs []error
	for _, c := range s.Channels() {
		states, err := s.Store.ChannelStates(ctx, c.Code, time.Time{}, changesOf)
		for _, one := range states {
			changes = append(changes, change{one.Since.UTC(), scrub(string(c.Code)), one.Status, scrub(one.Reason)})
		}
		errs = append(errs, err)
	}
	slices.SortStableFunc(changes, func(x, y change) int { return y.At.Compare(x.At) })
	return errors.Join(writeJSON(b, changes[:min(len(changes), allChanges)]), errors.Join(errs...))
}

func writeJSON(b *strings.Builder, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

type webhookRow struct {
	ID           parley.WebhookID   `json:"id"`
	Host         string             `json:"host"`
	Channel      string             `json:"channel"` // empty: all
	Events       []parley.EventType `json:"events"`  // none: all
	State        string             `json:"state"`
	OffSince     *time.Time         `json:"off_since"`
	Reason       string             `json:"reason"`
	FailingSince *time.Time         `json:"failing_since"`
	Failures     int                `json:"failures"`
	Waiting      int64              `json:"waiting"`
	Failed       int64              `json:"failed"`
	LastProblem  string             `json:"last_problem"` // of the oldest waiting delivery
}

func (s Source) writeWebhooks(ctx context.Context, b *strings.Builder) error {
	webhooks, err := s.Store.Webhooks(ctx)
	errs := []error{err}
	rows := []webhookRow{}
	for _, w := range webhooks {
		row, err := s.webhook(ctx, w)
		rows, errs = append(rows, row), append(errs, err)
	}
	return errors.Join(writeJSON(b, rows), errors.Join(errs...))
}

func (s Source) webhook(ctx context.Context, w parley.Webhook) (webhookRow, error) {
	row := webhookRow{
		ID: w.ID, Host: toHost(w.URL), Channel: scrub(string(w.Channel)), Events: append([]parley.EventType{}, w.Types...), State: "on",
		OffSince: orNil(w.DisabledAt), Reason: scrub(w.Reason), FailingSince: orNil(w.FailingSince), Failures: w.Failures,
	}
	switch {
	case !w.IsEnabled():
		row.State = "off"
	case w.Failures > 0:
		row.State = "failing"
	}
	failed := parley.DeliveryFailed
	var errs [3]error
	row.Waiting, errs[0] = s.Store.CountWaiting(ctx, w.ID)
	_, row.Failed, errs[1] = s.Store.Deliveries(ctx, parley.DeliveryQuery{Webhook: w.ID, State: &failed}, parley.Page{})
	oldest, err := s.Store.OldestDelivery(ctx, w.ID, false)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		errs[2] = err
	}
	row.LastProblem = problemKind(oldest.Problem)
	return row, errors.Join(errs[:]...)
}

// deliveries are all deliveries in the bundle.
type deliveries struct {
	ByState      map[string]int64 `json:"by_state"`
	LastFailures []failure        `json:"last_failures"`
}

// failure is an attempt that failed.
type failure struct {
	Delivery parley.DeliveryID `json:"delivery"`
	Webhook  parley.WebhookID  `json:"webhook,omitempty"`
	Host     string            `json:"host,omitempty"` // of a callback
	Type     parley.EventType  `json:"type"`
	Channel  string            `json:"channel"`
	State    string            `json:"state"`
	Attempts int               `json:"attempts"`
	At       *time.Time        `json:"at"`
	Status   int               `json:"http_status"` // zero: no response
	Problem  string            `json:"problem"`
}

const (
	lastFailures = 50
	lookedAt     = 200 // the newest in each state: most waiting ones were never tried
)

func (s Source) writeDeliveries(ctx context.Context, b *strings.Builder) error {
	all := deliveries{ByState: map[string]int64{}, LastFailures: []failure{}}
	var failed []parley.Delivery
	var errs []error
	for _, state := range []parley.DeliveryState{parley.DeliveryWaiting, parley.DeliveryDone, parley.DeliveryFailed} {
		page := parley.Page{Limit: lookedAt}
		if state == parley.DeliveryDone {
			page = parley.Page{}
		}
		newest, total, err := s.Store.Deliveries(ctx, parley.DeliveryQuery{State: &state}, page)
		all.ByState[state.String()], errs = total, append(errs, err)
		failed = append(failed, slices.DeleteFunc(newest, func(d parley.Delivery) bool { return d.Problem == "" })...)
	}
	slices.SortStableFunc(failed, func(x, y parley.Delivery) int { return y.TriedAt.Compare(x.TriedAt) })
	for _, d := range failed[:min(len(failed), lastFailures)] {
		all.LastFailures = append(all.LastFailures, toFailure(d))
	}
	return errors.Join(writeJSON(b, all), errors.Join(errs...))
}

func toFailure(d parley.Delivery) failure {
	f := failure{
		Delivery: d.ID, Webhook: d.Webhook, Type: d.Type, Channel: scrub(string(d.Channel)), State: d.State.String(),
		Attempts: d.Attempts, At: orNil(d.TriedAt), Status: d.Code, Problem: problemKind(d.Problem),
	}
	if d.Webhook == "" {
		f.Host = toHost(d.URL)
	}
	return f
}

// kinds match the first word of a problem. The rest is for the owner of the address.
var kinds = regexp.MustCompile(`^[a-z_]+`)

func problemKind(problem string) string {
	if problem == "" {
		return ""
	}
	if kind := kinds.FindString(problem); kind != "" && strings.HasPrefix(problem[len(kind):], ": ") {
		return kind
	}
	return "other"
}
