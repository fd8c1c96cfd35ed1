package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wire"
)

const maxLoggedPath = 300

// record adds a request with a token to the log of its channel. The console's own requests are not part of it. The path is that of
// the route: the request's own may contain a number or a mistyped secret.
func (rt *route) record(r *request, status int, began time.Time, took time.Duration, err error) {
	code := r.channel.Code
	if code == "" && r.token.Kind == parley.ChannelToken { // refused before the channel was chosen
		code = r.token.Channel
	}
	if code == "" || r.token.Kind == console {
		return
	}
	entry := store.LoggedRequest{
		Channel: code, At: began, Method: r.http.Method, Path: rt.path, Status: status, Took: took, Request: r.id,
		Token: r.token.ID,
	}
	if err != nil {
		entry.Code = callersError(err).Code.String()
	}
	if keys := r.http.Header[keyHeader]; len(keys) == 1 && validKey(keys[0]) {
		entry.IdempotencyKey = keys[0]
	}
	rt.config.Requests.Add(entry)
}

var statusPattern = regexp.MustCompile(`^([1-5])(xx|[0-9]{2})$`)

// parseStatuses reads a status (404) or a class of them (4xx).
func parseStatuses(text string) (statuses [2]int, err error) {
	match := statusPattern.FindStringSubmatch(text)
	if match == nil {
		return statuses, errors.New("no status")
	}
	class := int(match[1][0]-'0') * 100
	if match[2] == "xx" {
		return [2]int{class, class + 99}, nil
	}
	one := class + int(match[2][0]-'0')*10 + int(match[2][1]-'0')
	return [2]int{one, one}, nil
}

func (s *server) listRequests(ctx context.Context, r *request) (any, error) {
	q := store.RequestQuery{
		Code: r.OptionalText("code", 1, 60), Path: r.OptionalText("path", 1, maxLoggedPath), Request: r.OptionalText("request_id", 1, 128),
		IdempotencyKey: r.OptionalText("idempotency_key", 1, 255), Token: parley.TokenID(r.OptionalText("token", 1, 100)),
		After: r.Whole("after", 0, 0, 1<<53),
	}
	if r.Has("method") {
		q.Method = r.Choice("method", true, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	if text := r.OptionalText("status", 1, 10); text != "" {
		var err error
		if q.Status, err = parseStatuses(text); err != nil {
			r.Fail("status", "must be an HTTP status such as 404, or a class of them such as 4xx.")
		}
	}
	page := seqPage(r.Form)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := s.config.Requests.Flush(ctx); err != nil {
		return nil, err
	}
	found, total, err := s.config.Store.Requests(ctx, r.code(), q, page)
	found, meta := cutPage(found, page, total, func(l store.LoggedRequest) int64 { return l.Seq })
	return envelope{Success: true, Message: "OK", Data: mapped(found, func(l store.LoggedRequest) wire.LoggedRequest {
		return wire.LoggedRequest{ID: l.Seq, At: wire.At(l.At), Method: l.Method, Path: l.Path, Status: l.Status, Code: wire.Text(l.Code),
			TookMS: float64(l.Took.Microseconds()) / 1000, RequestID: l.Request, IdempotencyKey: wire.Text(l.IdempotencyKey), Token: l.Token}
	}), Meta: meta}, notFoundAs(err, errNoChannel)
}
