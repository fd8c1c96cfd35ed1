package api

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/network/sandbox"
	"parley/internal/store"
	"parley/internal/wire"
)

// onSandbox wraps an endpoint for channels on the sandbox network.
func (s *server) onSandbox(do endpoint) work { return work{do: s.ofSandbox(handle(do).do)} }

func (s *server) ofSandbox(do func(context.Context, *request) (response, error)) func(context.Context, *request) (response, error) {
	return func(ctx context.Context, r *request) (response, error) {
		if r.channel.Network != parley.Sandbox {
			return response{}, parley.Errorf(parley.NotSupported, "Channel %s is not on the sandbox network.", r.channel.Code)
		}
		if err := s.config.Gateway.CheckNetwork(r.channel.Code); err != nil {
			return response{}, err // these are the phones of a deleted channel
		}
		a, err := do(ctx, r)
		return a, withNumber(r, err)
	}
}

// withNumber adds an invalid number in the path to the wrong fields.
func withNumber(r *request, err error) error {
	e, wrong := errors.AsType[*parley.Error](err)
	isNumber := func(f parley.FieldError) bool { return f.Field == "number" }
	if !wrong || e.Code != parley.Invalid || r.number() == "" || slices.ContainsFunc(e.Fields, isNumber) {
		return err
	}
	if _, bad := parley.ParseNumber(r.number()); bad == nil {
		return err
	}
	return parley.InvalidFields(append(slices.Clone(e.Fields), parley.FieldError{Field: "number", Sentence: sandbox.NumberSentence}))
}

type cursorData struct {
	Cursor sandbox.Cursor `json:"cursor"`
}

func (s *server) cursor(ctx context.Context, r *request) (any, error) {
	cursor, err := s.config.Sandbox.Cursor(ctx, r.channel.Code)
	return ok("OK", cursorData{cursor}), err
}

func toPhone(p sandbox.Phone) wire.Phone {
	return wire.Phone{
		Number: p.Number, ContactID: p.ContactID, Name: p.Name, Online: p.Online, Reads: string(p.Reads),
		DelayMS: p.Delay.Milliseconds(), Blocks: p.Blocks, OnNetwork: p.OnNetwork, LIDOnly: p.LIDOnly, Hidden: p.NumberHidden,
		Timer: p.Timer,
	}
}

func (s *server) phones(ctx context.Context, r *request) (any, error) {
	phones, err := s.config.Sandbox.Phones(ctx, r.channel.Code)
	return ok("OK", mapped(phones, toPhone)), err
}

func (s *server) createPhone(ctx context.Context, r *request) (any, error) {
	number, name := optionalNumber(r.Form, "number"), strings.TrimSpace(r.OptionalText("name", 1, 100))
	if err := r.Err(); err != nil {
		return nil, err
	}
	var made sandbox.Phone
	err := s.underKey(ctx, r, func() (err error) {
		made, err = s.config.Sandbox.CreatePhone(ctx, r.channel.Code, number, name)
		return err
	})
	return ok("Phone created", toPhone(made)), err
}

func (r *request) number() string { return r.http.PathValue("number") }

func (s *server) changePhone(ctx context.Context, r *request) (any, error) {
	patch := sandbox.PhonePatch{
		Name:         given(r, "name", func() string { return strings.TrimSpace(r.Text("name", 0, 100)) }),
		Online:       given(r, "online", func() bool { return r.Bool("online", false) }),
		Blocks:       given(r, "blocks", func() bool { return r.Bool("blocks", false) }),
		OnNetwork:    given(r, "on_network", func() bool { return r.Bool("on_network", false) }),
		LIDOnly:      given(r, "lid_only", func() bool { return r.Bool("lid_only", false) }),
		NumberHidden: given(r, "number_hidden", func() bool { return r.Bool("number_hidden", false) }),
		Timer:        given(r, "disappearing_seconds", func() int { return readTimer(r, "disappearing_seconds") }),
		Reads: given(r, "reads", func() sandbox.Reads {
			return sandbox.Reads(r.Choice("reads", true, string(sandbox.AtOnce), string(sandbox.WhenOpen), string(sandbox.Never)))
		}),
		Delay: given(r, "delay_ms", func() time.Duration {
			return time.Duration(r.Whole("delay_ms", 0, 0, maxPhoneDelay)) * time.Millisecond
		}),
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	phone, err := s.config.Sandbox.UpdatePhone(ctx, r.channel.Code, r.number(), patch)
	return ok("Phone changed", toPhone(phone)), err
}

const maxPhoneDelay = 60_000 // ms

// given reads an optional field; nil: not given.
func given[T any](r *request, name string, read func() T) *T {
	if !r.Has(name) {
		return nil
	}
	v := read()
	return &v
}

func toArrived(m sandbox.Message) wire.Arrived {
	a := wire.Arrived{
		MessageID: m.ID.String(), GroupID: wire.Text(m.ID.Chat.Group()), Type: m.Kind, Body: m.Body, Codes: m.Codes, Links: m.Links,
		ReplyTo: wire.Text(m.ReplyTo), Status: m.Status.String(), Timestamp: wire.At(m.At), EditedAt: wire.At(m.EditedAt),
		Copies: m.Copies, Timer: m.Timer, Cursor: string(m.Cursor),
	}
	if f := m.Media; f != nil {
		a.Media = &wire.ArrivedFile{
			MIMEType: f.MIME, Filename: f.Filename, Size: f.Size, SHA256: hex.EncodeToString(f.SHA256),
			Width: f.Width, Height: f.Height, Seconds: f.Seconds,
		}
	}
	return a
}

var recordKinds = mapped(parley.HistoryKinds, func(k parley.Kind) string { return string(k) })

func (s *server) phoneMessages(ctx context.Context, r *request) (any, error) {
	q := sandbox.Query{
		After:    sandbox.Cursor(r.OptionalText("after", 0, 100)),
		Contains: r.OptionalText("contains", 0, 4096),
		Limit:    int(r.Whole("limit", 50, 1, 100)),
		Wait:     time.Duration(r.Whole("wait", 0, 0, 30)) * time.Second,
	}
	if r.Has("type") {
		q.Kind = parley.Kind(r.Choice("type", true, recordKinds...))
	}
	if err := r.Failed(q.After.Check); err != nil {
		return nil, err
	}
	page, err := s.config.Sandbox.Messages(ctx, r.channel.Code, r.number(), q)
	if late, ok := errors.AsType[*sandbox.WaitTimeout](err); ok {
		return nil, &parley.Error{Code: parley.NotFound, Message: late.Sentence()}
	}
	if err != nil {
		return nil, err
	}
	if page.Cursor == "" { // no message yet: the current position
		if page.Cursor, err = s.config.Sandbox.Cursor(ctx, r.channel.Code); err != nil {
			return nil, err
		}
	}
	return envelope{Success: true, Message: "OK", Data: mapped(page.Messages, toArrived), Meta: cursorData{page.Cursor}}, nil
}

const maxRestriction = 366 * 24 * 60 * 60 // s

// faultKinds are the faults, faultyKinds what they can affect.
var (
	faultKinds  = mapped(sandbox.FaultKinds, func(k sandbox.FaultKind) string { return string(k) })
	faultyKinds = append(slices.Clone(recordKinds), "reaction", "edit", "seen", "delete", "star", "archive", "read", "disappearing")
)

func (s *server) addFault(ctx context.Context, r *request) (any, error) {
	fault := sandbox.Fault{
		Fault:  sandbox.FaultKind(r.Choice("fault", true, faultKinds...)),
		Times:  int(r.Whole("times", 1, 1, 1000)),
		To:     optionalNumber(r.Form, "to"),
		Reason: r.OptionalText("reason", 1, 200),

		Seconds: given(r, "seconds", func() int { return int(r.Whole("seconds", 0, 0, maxRestriction)) }),
	}
	if r.Has("type") {
		fault.Kind = parley.Kind(r.Choice("type", true, faultyKinds...))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	err := s.underKey(ctx, r, func() error { return s.config.Sandbox.AddFault(ctx, r.channel.Code, fault) })
	return ok("Fault added", struct{}{}), err
}

type waitingFault struct {
	Fault  sandbox.FaultKind `json:"fault"`
	Times  int               `json:"times"`
	To     *string           `json:"to"`
	Type   *string           `json:"type"`
	Reason *string           `json:"reason"`
	// Seconds is how long a restriction lasts; null: the default, or it is another fault.
	Seconds *int `json:"seconds"`
}

func (s *server) listFaults(ctx context.Context, r *request) (any, error) {
	faults, err := s.config.Sandbox.Faults(ctx, r.channel.Code)
	return ok("OK", mapped(faults, func(f sandbox.Fault) waitingFault {
		return waitingFault{f.Fault, f.Times, textOrNil(f.To), textOrNil(f.Kind), textOrNil(f.Reason), f.Seconds}
	})), err
}

func (s *server) clearFaults(ctx context.Context, r *request) (any, error) {
	return ok("Faults removed", struct{}{}), s.config.Sandbox.ClearFaults(ctx, r.channel.Code)
}

func optionalNumber(f form.Form, name string) string {
	s := f.OptionalText(name, 1, 50)
	if s == "" {
		return ""
	}
	if _, err := parley.ParseNumber(s); err != nil {
		f.Fail(name, "must be a phone number in digits, for example 6281234567890.")
	}
	return s
}

const maxAdvance = 366 * 24 * 60 * 60 // seconds: a leap year

type clockData struct {
	Timestamp string `json:"timestamp"`
}

func (s *server) moveClock(ctx context.Context, r *request) (any, error) {
	seconds := r.RequiredWhole("advance", 1, maxAdvance)
	if err := r.Err(); err != nil {
		return nil, err
	}
	var moved envelope
	by := time.Duration(seconds) * time.Second
	err := s.config.Gateway.AdvanceClock(ctx, r.channel.Code, by, func(tx *store.Tx, _, after parley.Channel) error {
		moved = ok("Clock moved", clockData{parley.Stamp(time.Now().Add(time.Duration(after.Settings.ClockAhead)))})
		if r.key != nil {
			r.key.Scope = channelScope(after) // in which a retry looks
		}
		return r.storeKey(ctx, tx, http.StatusOK, moved)
	})
	return moved, err
}

// resetSandbox deletes the simulated network of a channel and the channel's chats, and resets its clock.
func (s *server) resetSandbox(ctx context.Context, r *request) (any, error) {
	code := r.channel.Code
	err := s.config.Gateway.ResetChannel(ctx, code, func(ctx context.Context) error { return s.config.Sandbox.Reset(ctx, code) })
	return ok("Sandbox reset", struct{}{}), err
}
