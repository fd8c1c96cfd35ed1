package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/store"
	"parley/internal/wire"
)

// An export reads page after page, each by itself from where the last one ended, and writes it before it reads the next. So
// its memory is bounded, and a slow reader holds no transaction and no connection of the database.

const (
	exportPage    = 500         // rows that are read at a time
	exportTimeout = time.Minute // for a reader to take what one page has
	exportsAtOnce = 2           // of one token or session
	limitExports  = "exports"
	atMostHeader  = "Parley-Rows-At-Most"
)

var exportTypes = map[string][]string{"csv": {"text/csv; charset=utf-8"}, "jsonl": {"application/jsonl"}}

// errIncomplete is the error of a response that ended too early. The connection is aborted, so that the caller notices.
var errIncomplete = errors.New("the export is incomplete")

// export is what an endpoint exports.
type export[T any] struct {
	name    string                    // of the file
	object  string                    // of the audit log
	columns []string                  // fields of a row as JSON, or of more
	more    func(T) map[string]string // what a row of CSV has besides; may be nil
	atMost  func(ctx context.Context) (int64, error)
	// next reads the next rows. more is false after the last.
	next func(ctx context.Context) (rows []T, more bool, err error)
}

// streamExport checks a request for an export, and reads the first rows, before the response begins. HEAD only counts.
func streamExport[T any](ctx context.Context, s *server, r *request, e export[T]) (response, error) {
	format := r.Choice("format", false, "csv", "jsonl")
	if err := r.Err(); err != nil {
		return response{}, err
	}
	most, err := e.atMost(ctx)
	if err != nil {
		return response{}, err
	}
	name := time.Now().UTC().Format("parley-" + e.name + "-20060102T150405Z." + format)
	header := []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)}, {atMostHeader, strconv.FormatInt(most, 10)}}
	a := response{status: http.StatusOK, contentType: exportTypes[format], header: header, size: sizeUnknown}
	if r.http.Method == http.MethodHead {
		r.inAudit = true // nothing is exported
		return a, nil
	}
	if !s.exports.Acquire(r.token.ID, ctx.Done(), 0) {
		q := limit.Quota{Name: limitExports, Unit: limit.UnitAtOnce, Most: int64(s.exports.Most), Wait: 5 * time.Second}
		return response{}, limit.Exceeded(q, "Too many exports run for this token. Wait until one ends.")
	}
	rows, more, err := e.next(ctx)
	if err == nil && r.action != "" {
		err = s.tx(ctx, func(tx *store.Tx) error {
			return r.auditTx(ctx, tx, change{object: e.object, after: exportFilters(r.http)})
		})
	}
	if err != nil {
		s.exports.Release(r.token.ID)
		return response{}, err
	}
	a.stream = func(w http.ResponseWriter) error {
		defer s.exports.Release(r.token.ID)
		h := w.Header()
		setHeaders(h, r.id)
		h["Content-Type"] = a.contentType
		for _, f := range a.header {
			h.Set(f.key, f.value)
		}
		w.WriteHeader(a.status)
		return writeExport(ctx, w, format, e, rows, more)
	}
	return a, nil
}

// exportFilters are the fields of the request, for the audit log: what was exported.
func exportFilters(hr *http.Request) map[string]string {
	filters := map[string]string{"format": "csv"}
	for name, values := range hr.URL.Query() {
		filters[truncate(name, 40)] = truncate(values[0], 200)
		if len(filters) == 20 {
			break
		}
	}
	return filters
}

func writeExport[T any](ctx context.Context, w http.ResponseWriter, format string, e export[T], rows []T, more bool) (err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	control := http.NewResponseController(w)
	write := writeLines[T]
	if format == "csv" {
		sheet := csv.NewWriter(out)
		if err := sheet.Write(e.columns); err != nil {
			return errors.Join(errIncomplete, err)
		}
		write = func(_ io.Writer, rows []T) error { return e.writeCSV(sheet, rows) }
	}
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportTimeout)) // not every writer has deadlines
		if err = write(out, rows); err == nil {
			err = out.Flush()
		}
		_ = control.Flush() // the reader sees how far it is
		if err == nil && !more {
			return nil
		}
		if err == nil {
			rows, more, err = e.next(ctx)
		}
		if err != nil {
			return errors.Join(errIncomplete, err)
		}
	}
}

func writeLines[T any](out io.Writer, rows []T) error {
	for _, row := range rows {
		line, err := encode(row)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (e export[T]) writeCSV(sheet *csv.Writer, rows []T) error {
	cells := make([]string, len(e.columns))
	for _, row := range rows {
		fields, err := toFields(row)
		if err != nil {
			return err
		}
		var more map[string]string
		if e.more != nil {
			more = e.more(row)
		}
		for i, name := range e.columns {
			cells[i] = wire.SafeCell(strings.ToValidUTF8(cmp.Or(more[name], toCell(fields[name])), "\uFFFD"))
		}
		if err := sheet.Write(cells); err != nil {
			return err
		}
	}
	sheet.Flush()
	return sheet.Error()
}

// toCell is a JSON value as text; null is empty.
func toCell(value json.RawMessage) (text string) {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return ""
	case json.Unmarshal(value, &text) != nil: // not a text
		return string(value)
	}
	return text
}

var messageColumns = []string{"timestamp", "channel", "direction", "contact_id", "group_id", "contact_name", "group_name", "type", "body",
	"status", "error_code", "error_message", "updated_at", "message_id", "request_id", "otp"}

func moreOfMessage(m wire.Message) map[string]string {
	more := map[string]string{"direction": "in", "otp": strconv.FormatBool(m.OTP)}
	if m.Outgoing {
		more["direction"] = "out"
	}
	if m.Error != nil {
		more["error_code"], more["error_message"] = string(m.Error.Code), m.Error.Message
	}
	return more
}

func (s *server) exportMessages(ctx context.Context, r *request) (response, error) {
	q := messageQuery(r.Form)
	q.Limit, q.Before = exportPage, 0
	return streamExport(ctx, s, r, export[wire.Message]{
		name: "messages", object: string(q.Channel), columns: messageColumns, more: moreOfMessage,
		atMost: func(ctx context.Context) (int64, error) { return s.config.Store.CountMessagesAtMost(ctx, q) },
		next: func(ctx context.Context) ([]wire.Message, bool, error) {
			page, err := s.config.Gateway.FindMessages(ctx, q)
			if err != nil {
				return nil, false, err
			}
			rows, err := s.messageRows(ctx, r, s.searchable(q, page.Messages))
			for i := range rows {
				if rows[i].OTP && rows[i].Body != "" {
					rows[i].Body = hiddenText // also of the sandbox
				}
			}
			q.Before = page.Next
			return rows, page.Next != 0, err
		},
	})
}

var deliveryColumns = []string{"created_at", "channel", "type", "event_id", "contact_id", "webhook", "url", "state", "attempts", "tried_at",
	"code", "took_ms", "problem", "next_at", "id"}

func (s *server) exportDeliveries(ctx context.Context, r *request) (response, error) {
	q := deliveryQuery(r.Form, "waiting", retrying, "delivered", "failed")
	if r.Has("event_id") {
		q.Events = append(q.Events, eventSeq(r.Form, "event_id"))
	}
	page := parley.Page{Limit: exportPage}
	return streamExport(ctx, s, r, export[wire.Delivery]{
		name: "deliveries", object: cmp.Or(string(q.Webhook), string(q.Channel)), columns: deliveryColumns,
		atMost: func(ctx context.Context) (int64, error) {
			_, total, err := s.config.Store.Deliveries(ctx, q, parley.Page{})
			return total, err
		},
		next: func(ctx context.Context) ([]wire.Delivery, bool, error) {
			found, err := s.config.Store.ListDeliveries(ctx, q, page)
			if err != nil || len(found) == 0 {
				return nil, false, err
			}
			addresses, err := s.addresses(ctx)
			page.Beyond = found[len(found)-1].ID.Number()
			return mapped(found, func(d parley.Delivery) wire.Delivery { return r.delivery(d, addresses) }), len(found) == exportPage, err
		},
	})
}
