package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/safehttp"
)

// account is what a channel needs at Meta. It is stored as the channel's credentials.
type account struct {
	PhoneID     string `json:"phone_number_id"`
	BusinessID  string `json:"waba_id"`
	AccessToken string `json:"access_token"`
	AppSecret   string `json:"app_secret"`
	VerifyToken string `json:"verify_token"`        // Meta shows it when it checks our address
	GraphURL    string `json:"graph_url,omitempty"` // empty: Meta's
	PIN         string `json:"pin,omitempty"`       // registers the number; it is not stored
	Webhook     string `json:"webhook,omitempty"`   // whose address Meta is given: one of the constants; empty: the number's
	AppID       string `json:"app_id,omitempty"`
	// HeardSince is since when Meta reports messages to us; zero: it does not. Before that we do not know who wrote.
	HeardSince   time.Time `json:"heard_since,omitzero"`
	TokenExpires time.Time `json:"token_expires,omitzero"` // zero: never
}

const (
	AppWebhook = "app"  // the number's, and the app's own: only that gets what is about templates and the account
	NoWebhook  = "none" // somebody gives it to Meta by hand
)

var errNoAccount = errors.New("the channel has no credentials")

// account reads the account of a channel, and the one that it replaced less than a day ago; zero: none.
func (d *Driver) account(ctx context.Context, c parley.Channel) (current, old account, err error) {
	now, before, err := d.config.Credentials.Credentials(ctx, c)
	if err == nil && now == nil {
		err = errNoAccount
	}
	if err == nil {
		err = json.Unmarshal(now, &current)
	}
	if err == nil && before != nil {
		err = json.Unmarshal(before, &old)
	}
	return current, old, err
}

// CheckAccount asks Meta about an account that a caller gives, in an order in which the first problem is the one to solve first. What
// is missing in it stays as it is on the channel.
func (d *Driver) CheckAccount(ctx context.Context, c parley.Channel, given []byte) ([]byte, error) {
	var a account
	if c.ID != 0 {
		current, _, err := d.account(ctx, c)
		if err != nil && !errors.Is(err, errNoAccount) {
			return nil, err
		}
		a = current
	}
	if err := json.Unmarshal(given, &a); err != nil {
		return nil, err
	}
	a.VerifyToken = cmp.Or(a.VerifyToken, rand.Text())
	if err := d.checkGraphURL(a.GraphURL); err != nil {
		return nil, err
	}
	number, err := d.readNumber(ctx, a)
	if err != nil {
		return nil, accountError(err, "cloud.phone_number_id", "is unknown to Meta, or the token has no access to it.")
	}
	if err := d.checkToken(ctx, &a); err != nil {
		return nil, err
	}
	if err := d.register(ctx, a, number); err != nil {
		return nil, err
	}
	a.PIN = ""
	var done any
	if err := d.do(ctx, a, http.MethodPost, a.BusinessID+"/subscribed_apps", proof(), nil, &done); err != nil {
		return nil, accountError(err, "cloud.waba_id", "is unknown to Meta, or the token has no access to it.")
	}
	return json.Marshal(a)
}

// register registers a number that is not connected, if its PIN is given. A number without one gets this one.
func (d *Driver) register(ctx context.Context, a account, n phoneNumber) error {
	if a.PIN == "" || n.Status == "CONNECTED" {
		return nil
	}
	var done any
	body := map[string]string{"messaging_product": "whatsapp", "pin": a.PIN}
	err := d.do(ctx, a, http.MethodPost, a.PhoneID+"/register", proof(), body, &done)
	if e, ok := asGraphError(err); ok && e.Code >= 133000 && e.Code < 134000 {
		return wrongField("cloud.pin", "does not register the number. Meta says: "+sentence(e.text()))
	}
	if err != nil {
		return accountError(err, "cloud.pin", "does not register the number.")
	}
	return nil
}

func (d *Driver) checkGraphURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := safehttp.CheckURL(address)
	switch {
	case err != nil:
		return parley.InvalidField("cloud.graph_url", err.Error())
	case u.Scheme != "https" && !d.config.AllowHTTP:
		return wrongField("cloud.graph_url", "must begin with https://. A test server needs --allow-private-callers.")
	case u.RawQuery != "":
		return wrongField("cloud.graph_url", "must have no query.")
	}
	return nil
}

// wrongField makes an error of what is wrong with a field, after its name.
func wrongField(field, what string) error { return parley.InvalidField(field, field+" "+what) }

// accountError is why Meta does not accept an account, as an error of the field that is wrong. otherwise is what is wrong with that
// field if it is not the token or the secret.
func accountError(err error, field, otherwise string) error {
	e, ok := asGraphError(err)
	if !ok {
		cause := "Meta's servers cannot be reached. Try again in a moment."
		if p, isProblem := errors.AsType[*safehttp.Problem](err); isProblem && p.Code == safehttp.BlockedAddress {
			return parley.InvalidField("cloud.graph_url", p.Sentence)
		}
		return &parley.Error{Code: parley.Unavailable, Message: cause, RetryAfter: 5 * time.Second, Cause: err}
	}
	switch r := ruleFor(e); {
	case strings.Contains(e.Message, "appsecret_proof"):
		return wrongField("cloud.app_secret", "does not belong to the app of this token. Copy it from App settings, Basic.")
	case e.Code == 190 || e.Code == 0:
		return wrongField("cloud.access_token", "is not valid, or has expired. Create a system user's token that never expires.")
	case e.Code == 10 || e.Code >= 200 && e.Code < 300 || e.Code == 3 || e.Code == 131005:
		return wrongField("cloud.access_token", "lacks a permission: "+sentence(e.text()))
	case r.action == pauseChannel || r.action == retry || r.action == unknown:
		return &parley.Error{Code: parley.Unavailable, Message: r.sentence + " Try again in a moment.",
			RetryAfter: cmp.Or(e.RetryAfter, time.Minute), Cause: err}
	case r.action == broken:
		return parley.Errorf(parley.BadRequest, "%s", r.sentence)
	}
	return wrongField(field, fmt.Sprintf("%s Meta says: %s", otherwise, sentence(e.text())))
}

// scopes are the permissions that a token needs.
var scopes = []string{"whatsapp_business_messaging", "whatsapp_business_management"}

// checkToken checks what the token may do, and until when.
func (d *Driver) checkToken(ctx context.Context, a *account) error {
	var token struct {
		Data struct {
			AppID   string `json:"app_id"`
			Valid   bool   `json:"is_valid"`
			Expires int64  `json:"expires_at"`
			Scopes  []string
		}
	}
	if err := d.do(ctx, *a, http.MethodGet, "debug_token", url.Values{"input_token": {a.AccessToken}}, nil, &token); err != nil {
		return accountError(err, "cloud.access_token", "cannot be checked.")
	}
	if !token.Data.Valid {
		return wrongField("cloud.access_token", "is not valid, or has expired. Create a system user's token that never expires.")
	}
	for _, scope := range scopes {
		if !slices.Contains(token.Data.Scopes, scope) {
			return wrongField("cloud.access_token", "lacks the permission "+scope+". Create a token with both WhatsApp permissions.")
		}
	}
	a.AppID = token.Data.AppID
	if a.TokenExpires = (time.Time{}); token.Data.Expires > 0 {
		a.TokenExpires = time.Unix(token.Data.Expires, 0).UTC()
	}
	return nil
}

// SetAccount stores a checked account. If others can reach us at an address, Meta reports to it from then on.
func (d *Driver) SetAccount(ctx context.Context, c parley.Channel, checked []byte, address string) error {
	var a account
	if err := json.Unmarshal(checked, &a); err != nil {
		return err
	}
	before, _, err := d.account(ctx, c)
	if err != nil && !errors.Is(err, errNoAccount) {
		return err
	}
	if before.PhoneID != a.PhoneID {
		a.HeardSince = time.Time{}
	}
	if err := d.store(ctx, c, a); err != nil {
		return err
	}
	if address != "" && a.Webhook == AppWebhook {
		if err := d.setAppWebhook(ctx, a, address); err != nil {
			return err
		}
	}
	if address != "" && a.Webhook != NoWebhook { // Meta calls it before the response
		webhook := map[string]string{"override_callback_uri": address, "verify_token": a.VerifyToken}
		configuration := map[string]any{"webhook_configuration": webhook}
		var done any
		if err := d.do(ctx, a, http.MethodPost, a.PhoneID, proof(), configuration, &done); err != nil {
			return errNotVerified(address, err)
		}
		if a.HeardSince.IsZero() {
			a.HeardSince = time.Now().UTC()
			if err := d.store(ctx, c, a); err != nil {
				return err
			}
		}
	}
	if err := d.createCodesTemplate(ctx, a); err != nil { // it may not be allowed yet, and not all channels need it
		d.config.Log.Warn("the template of one-time codes could not be created", "channel", c.Code, "error", err)
	}
	if s := d.session(c.Code); s != nil {
		s.checkSoon()
	}
	return nil
}

// setAppWebhook has Meta report what is about the app's accounts to an address, in place of the one that the app has. It is a request
// of the app itself.
func (d *Driver) setAppWebhook(ctx context.Context, a account, address string) error {
	app := a
	app.AccessToken = a.AppID + "|" + a.AppSecret
	query := url.Values{"object": {"whatsapp_business_account"}, "callback_url": {address}, "verify_token": {a.VerifyToken},
		"fields": {strings.Join(reportFields, ",")}}
	var done any
	if err := d.do(ctx, app, http.MethodPost, a.AppID+"/subscriptions", query, nil, &done); err != nil {
		return errNotVerified(address, err)
	}
	return nil
}

func errNotVerified(address string, cause error) error {
	return errors.Join(parley.Errorf(parley.BadRequest, "Meta could not verify %s. Check that it can be reached from the internet "+
		"and has a public certificate. Meta says: %s", address, sentence(cause.Error())), cause)
}

func (d *Driver) store(ctx context.Context, c parley.Channel, a account) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return d.config.Credentials.SetCredentials(ctx, c, text)
}

// codesTTL is for how long Meta tries to deliver a code.
const codesTTL = 5 * time.Minute

// createCodesTemplate creates the template of one-time codes, or changes it.
func (d *Driver) createCodesTemplate(ctx context.Context, a account) error {
	template := map[string]any{
		"name": CodesTemplate.Name, "languages": []string{CodesTemplate.Language, "id"}, "category": "AUTHENTICATION",
		"message_send_ttl_seconds": int(codesTTL.Seconds()),
		"components": []any{
			map[string]any{"type": "BODY", "add_security_recommendation": true},
			map[string]any{"type": "FOOTER", "code_expiration_minutes": int(codesTTL.Minutes())},
			map[string]any{"type": "BUTTONS", "buttons": []any{map[string]string{"type": "OTP", "otp_type": "COPY_CODE"}}},
		},
	}
	var done any
	return d.do(ctx, a, http.MethodPost, a.BusinessID+"/upsert_message_templates", proof(), template, &done)
}

// AccountInfo is what may be shown of an account.
type AccountInfo struct {
	PhoneNumberID  string     `json:"phone_number_id"`
	BusinessID     string     `json:"waba_id"`
	GraphURL       string     `json:"graph_url,omitempty"`
	TokenExpiresAt *time.Time `json:"token_expires_at"` // null: never
	ReportsSince   *time.Time `json:"reports_since"`    // null: Meta does not report messages and statuses to us
	NumberStatus   string     `json:"number_status"`    // empty: not known yet, as of the next four
	Quality        string     `json:"quality"`
	MessagingLimit string     `json:"messaging_limit"`
	Throughput     string     `json:"throughput"`
	CodesTemplate  string     `json:"codes_template"`
	WebhookURL     string     `json:"webhook_url"`            // where Meta reports to, as Meta says
	CallbackURL    string     `json:"callback_url,omitempty"` // where it is to, with VerifyToken
	VerifyToken    string     `json:"verify_token,omitempty"`
	OnBusinessApp  bool       `json:"on_business_app"` // what is written there is not passed on
}

// Account describes the account of a channel; nil: it has none.
func (d *Driver) Account(ctx context.Context, c parley.Channel, whole bool) (any, error) {
	a, _, err := d.account(ctx, c)
	if errors.Is(err, errNoAccount) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info := &AccountInfo{PhoneNumberID: a.PhoneID, BusinessID: a.BusinessID, GraphURL: a.GraphURL, TokenExpiresAt: orNil(a.TokenExpires),
		ReportsSince: orNil(a.HeardSince)}
	if whole {
		info.VerifyToken = a.VerifyToken
		if d.config.Address != nil {
			info.CallbackURL = d.config.Address(c)
		}
	}
	if s := d.session(c.Code); s != nil {
		s.mu.Lock()
		n := s.number
		info.CodesTemplate = s.codes
		s.mu.Unlock()
		info.NumberStatus, info.Quality, info.MessagingLimit, info.Throughput = n.Status, n.Quality, n.Limit, n.Throughput.Level
		info.WebhookURL, info.OnBusinessApp = n.Webhook.Phone, n.OnApp
	}
	return info, nil
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
