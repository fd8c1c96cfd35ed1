package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
)

// challengeForm is what is sent back to who asks. Anything else could be a page.
var challengeForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,256}$`)

// Challenge responds to Meta's check of an address. It carries no signature.
func (d *Driver) Challenge(ctx context.Context, c parley.Channel, query url.Values) (string, error) {
	a, _, err := d.account(ctx, c)
	if err != nil && !errors.Is(err, errNoAccount) {
		return "", err
	}
	challenge, shown := query.Get("hub.challenge"), query.Get("hub.verify_token")
	if query.Get("hub.mode") != "subscribe" || !challengeForm.MatchString(challenge) || a.VerifyToken == "" ||
		subtle.ConstantTimeCompare([]byte(shown), []byte(a.VerifyToken)) != 1 {
		return "", parley.Errorf(parley.Forbidden, "The verify token is not that of this channel.")
	}
	if a.Webhook == NoWebhook && a.HeardSince.IsZero() { // somebody gave it to Meta by hand
		a.HeardSince = time.Now().UTC()
		if err := d.store(ctx, c, a); err != nil {
			return "", err
		}
	}
	return challenge, nil
}

// change is one report of Meta's. Its value depends on the field.
type change struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"`
}

const signatureHeader = "X-Hub-Signature-256"

var errSignature = parley.Errorf(parley.Unauthenticated, "The signature does not fit the body.")

// Verify checks the signature over the bytes as they came: Meta escapes characters, so another encoding would have another one. A call
// of an app can be about several of its numbers.
func (d *Driver) Verify(ctx context.Context, c parley.Channel, header http.Header, body []byte) ([]network.Call, error) {
	current, old, err := d.account(ctx, c)
	if err != nil {
		return nil, err
	}
	given, _ := strings.CutPrefix(header.Get(signatureHeader), "sha256=")
	signs := func(a account) bool {
		return a.AppSecret != "" && hmac.Equal([]byte(strings.ToLower(given)), []byte(sign(a.AppSecret, body)))
	}
	if !signs(current) && !signs(old) {
		d.noteBadSignature(c.Code)
		return nil, errSignature
	}
	var report struct {
		Entry []struct{ Changes []change }
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, &parley.Error{Code: parley.BadRequest, Message: "The body is not JSON of the expected form.", Cause: err}
	}
	parts := map[parley.ChannelCode][]change{}
	var order []parley.ChannelCode
	for _, entry := range report.Entry {
		for _, ch := range entry.Changes {
			to, err := d.addressee(ctx, c, current, ch)
			if err != nil {
				return nil, err
			}
			if to == "" {
				d.metrics.ignored.WithLabelValues("other_number").Inc()
				continue
			}
			if parts[to] == nil {
				order = append(order, to)
			}
			parts[to] = append(parts[to], ch)
		}
	}
	calls := make([]network.Call, len(order))
	for i, code := range order {
		text, err := json.Marshal(parts[code])
		if err != nil {
			return nil, err
		}
		calls[i] = network.Call{Channel: code, Body: text}
	}
	return calls, nil
}

// addressee returns the channel that a change is about: the one of the address, or another one of the same app; empty: none.
func (d *Driver) addressee(ctx context.Context, c parley.Channel, a account, ch change) (parley.ChannelCode, error) {
	var value struct {
		Metadata struct {
			PhoneID string `json:"phone_number_id"`
		}
	}
	if json.Unmarshal(ch.Value, &value) != nil || value.Metadata.PhoneID == "" || value.Metadata.PhoneID == a.PhoneID {
		return c.Code, nil // what is about the account comes to every channel of it
	}
	all, err := d.config.Store.Channels(ctx)
	if err != nil {
		return "", err
	}
	for _, other := range all {
		if other.Network != parley.Cloud {
			continue
		}
		its, _, err := d.account(ctx, other)
		if errors.Is(err, errNoAccount) {
			continue
		}
		if err != nil {
			return "", err
		}
		if its.PhoneID == value.Metadata.PhoneID && hmac.Equal([]byte(its.AppSecret), []byte(a.AppSecret)) {
			return other.Code, nil
		}
	}
	return "", nil
}

var errNotOpen = parley.Errorf(parley.Unavailable, "The channel is not open here.")

// Receive gives the changes of a channel to its session, in order.
func (d *Driver) Receive(_ context.Context, call network.Call) error {
	var changes []change
	if err := json.Unmarshal(call.Body, &changes); err != nil {
		return err
	}
	s := d.session(call.Channel)
	if s == nil || !s.enter() {
		return errNotOpen
	}
	defer s.running.Done()
	s.noteReport()
	for _, ch := range changes {
		if err := s.receive(ch); err != nil {
			return err
		}
	}
	return nil
}

// reportFields are what Meta reports of that is handled.
var reportFields = []string{"messages", "user_id_update", "account_update", "phone_number_quality_update", "phone_number_name_update",
	"business_capability_update", "message_template_status_update", "message_template_quality_update", "template_category_update"}

func (s *session) receive(ch change) error {
	switch {
	case ch.Field == "messages":
		var v messagesValue
		if err := json.Unmarshal(ch.Value, &v); err != nil {
			s.ignore("unreadable") // it will not be better the next time
			return nil
		}
		return s.receiveMessages(v)
	case ch.Field == "user_id_update":
		var v usersValue
		if err := json.Unmarshal(ch.Value, &v); err != nil {
			s.ignore("unreadable")
			return nil
		}
		return s.receiveUsers(v)
	case slices.Contains(reportFields, ch.Field):
		s.dropTemplates()
		s.checkSoon()
		return s.receiveNotice(ch.Field, ch.Value)
	default:
		s.ignore(ch.Field)
	}
	return nil
}

// knownFields bounds the label of a metric.
var knownFields = regexp.MustCompile(`^[a-z_]{1,40}$`)

func (s *session) ignore(field string) {
	if !knownFields.MatchString(field) {
		field = "other"
	}
	s.d.metrics.ignored.WithLabelValues(field).Inc()
}
