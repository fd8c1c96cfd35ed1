package api

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/store"
)

// addChannels stores channels that do not run.
func (e *env) addChannels(channels ...parley.Channel) {
	e.t.Helper()
	err := e.config.Store.Tx(e.t.Context(), func(tx *store.Tx) error {
		for _, c := range channels {
			c.Network = parley.Sandbox
			c.State.Status = parley.ChannelStopped
			if c.Name == "" {
				c.Name = string(c.Code)
			}
			if err := tx.AddChannel(e.t.Context(), c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = e.config.Gateway.Refresh(e.t.Context())
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// codesOf returns the codes of a response, and its meta.
func (e *env) codesOf(query string) (codes []string, meta m) {
	e.t.Helper()
	r := e.call("GET", "/api/manage/channels?"+query, e.admin, nil)
	if r.StatusCode != 200 {
		e.t.Fatalf("%s: %d %s", query, r.StatusCode, r.text)
	}
	for _, row := range r.json["data"].([]any) {
		codes = append(codes, row.(m)["code"].(string))
	}
	return codes, r.json["meta"].(m)
}

func TestPagesOfManyChannels(t *testing.T) {
	e := newEnv(t)
	var many []parley.Channel
	for i := range 998 {
		code := parley.ChannelCode(fmt.Sprintf("toko-%04d", i))
		many = append(many, parley.Channel{Code: code, Labels: []string{fmt.Sprintf("city %d", i%150)}})
	}
	e.addChannels(many...)

	for _, sort := range []string{"code", "-code", "attention", "-since", "name", "last_inbound_at", "-failed_24h", "waiting", "number"} {
		seen, cursor, pages := map[string]bool{}, "", 0
		for {
			codes, meta := e.codesOf("limit=200&sort=" + sort + cursor)
			if pages++; len(codes) != 200 || meta["total"].(float64) != 1000 {
				t.Fatalf("%s, page %d: %d channels, meta %v", sort, pages, len(codes), meta)
			}
			for _, code := range codes {
				if seen[code] {
					t.Errorf("%s: %s is there twice", sort, code)
				}
				seen[code] = true
			}
			if sort == "code" && !slices.IsSorted(codes) {
				t.Errorf("page %d is not sorted", pages)
			}
			if meta["next_cursor"] == nil {
				break
			}
			cursor = "&cursor=" + meta["next_cursor"].(string)
		}
		if pages != 5 || len(seen) != 1000 {
			t.Errorf("%s: %d channels on %d pages", sort, len(seen), pages)
		}
	}

	codes, meta := e.codesOf("")
	statuses := meta["statuses"].(m)
	if len(codes) != 50 || statuses["STOPPED"].(float64) != 998 || statuses["WORKING"].(float64) != 2 || statuses["FAILED"].(float64) != 0 {
		t.Errorf("without parameters: %d channels, %v", len(codes), statuses)
	}
	if labels := meta["labels"].([]any); len(labels) != 100 || labels[0].(m)["channels"].(float64) != 7 {
		t.Errorf("%d labels, the first is %v", len(labels), labels[0])
	}
	if codes, _ = e.codesOf("sort=attention&limit=1"); codes[0] != "main" {
		t.Errorf("a stopped channel comes before one that works: %v", codes)
	}
	if codes, meta = e.codesOf("limit=1"); len(codes) != 1 || meta["next_cursor"] == nil {
		t.Errorf("limit 1: %v %v", codes, meta["next_cursor"])
	}
	if codes, _ = e.codesOf("limit=1&cursor=" + meta["next_cursor"].(string)); codes[0] != "second" {
		t.Errorf("after main comes %v", codes)
	}
	e.call("DELETE", "/api/manage/channels/main", e.admin, nil).want(t, 202)
	if codes, _ = e.codesOf("limit=1&cursor=" + meta["next_cursor"].(string)); codes[0] != "second" {
		t.Errorf("after a deleted channel comes %v", codes)
	}
}

func TestFindChannels(t *testing.T) {
	e := newEnv(t)
	e.addChannels(
		parley.Channel{Code: "percent", Name: "100% Kopi", Labels: []string{"jakarta", "trial"}},
		parley.Channel{Code: "under_score", Name: "Toko_A", Labels: []string{"jakarta"}},
		parley.Channel{Code: "cafe", Name: "CAFÉ Ünïcode 東京", Number: "6281211112222"},
		parley.Channel{Code: "plain", Name: "Nothing here", Number: "5511987654321"})
	for query, want := range map[string]string{
		"search=%25":                                "percent",
		"search=_":                                  "under_score",
		"search=" + url.QueryEscape("é"):            "cafe",
		"search=" + url.QueryEscape("É"):            "cafe",
		"search=" + url.QueryEscape("東"):            "cafe",
		"search=TOKO":                               "under_score",
		"search=" + url.QueryEscape("+62 812-1111"): "cafe",
		"search=0812":                               "",
		"search=98765":                              "plain",
		"search=" + url.QueryEscape(`'";--`):        "",
		"search=":                                   "cafe main percent plain second under_score",
		"search=" + url.QueryEscape("  cafe"):       "cafe",
		"label=jakarta":                             "percent under_score",
		"label=" + url.QueryEscape(" Trial "):       "percent",
		"label=none":                                "",
		"label=jakarta&search=toko":                 "under_score",
		"status=WORKING":                            "main second",
		"status=STOPPED&label=trial":                "percent",
		"simulated=true&status=WORKING":             "main second",
		"simulated=false":                           "",
		"network=sandbox&status=WORKING":            "main second",
	} {
		if codes, meta := e.codesOf(query); strings.Join(codes, " ") != want || int(meta["total"].(float64)) != len(codes) {
			t.Errorf("%s: %v, total %v, want %s", query, codes, meta["total"], want)
		}
	}
	_, meta := e.codesOf("status=WORKING&label=jakarta") // each count ignores its own filter
	if n := meta["statuses"].(m)["STOPPED"].(float64); n != 2 {
		t.Errorf("%v stopped channels of jakarta", n)
	}
	if labels := meta["labels"].([]any); len(labels) != 0 {
		t.Errorf("labels of working channels: %v", labels)
	}
}

func TestChannelListThatIsRefused(t *testing.T) {
	e := newEnv(t)
	other := base64.RawURLEncoding.EncodeToString([]byte("name\nx\nmain"))
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=201": "limit", "limit=-1": "limit", "limit=x": "limit", "cursor=main": "cursor", "cursor=m1": "cursor",
		"cursor=" + other: "cursor", "cursor=" + strings.Repeat("A", 700): "cursor", "cursor=%25": "cursor", "cursor=": "cursor",
		"status=working": "status", "status=": "status", "network=telegram": "network", "sort=size": "sort", "sort=--code": "sort",
		"label=": "label", "label=a%2Cb": "label", "search=" + strings.Repeat("x", 101): "search", "limit=1&limit=2": "limit",
	} {
		r := e.call("GET", "/api/manage/channels?"+query, e.admin, nil)
		if _, named := r.json["errors"].(m)[field]; r.StatusCode != 422 || !named {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.text)
		}
	}
}

func TestLabels(t *testing.T) {
	e := newEnv(t)
	labels := func(made m) string { return fmt.Sprint(made["labels"]) }
	made := e.call("POST", "/api/manage/channels", e.admin, m{"code": "shop",
		"labels": []string{"  Big   City ", "b", "B", "東京"}}).want(t, 201)
	if labels(made) != "[b big city 東京]" {
		t.Errorf("created with %v", made["labels"])
	}
	change := func(body m) string {
		t.Helper()
		return labels(e.call("PATCH", "/api/manage/channels/shop", e.admin, body).want(t, 200))
	}
	for _, c := range []struct {
		body m
		want string
	}{
		{m{"name": "Toko"}, "[b big city 東京]"},
		{m{"add_labels": []string{"A", "b"}, "remove_labels": []string{"東京", "none"}}, "[a b big city]"},
		{m{"labels": []string{"z"}}, "[z]"},
		{m{"labels": []string{}}, "[]"},
		{m{"add_labels": strings.Fields("1 2 3 4 5 6 7 8 9 x")}, "[1 2 3 4 5 6 7 8 9 x]"},
	} {
		if got := change(c.body); got != c.want {
			t.Errorf("%v: %s, want %s", c.body, got, c.want)
		}
	}
	if codes, _ := e.codesOf("label=x"); len(codes) != 1 {
		t.Errorf("with the label x: %v", codes)
	}
	for field, body := range map[string]m{
		"labels":          {"add_labels": []string{"eleventh"}},
		"labels.0":        {"labels": []string{"a,b"}},
		"labels.1":        {"labels": []string{"a", " "}},
		"add_labels.0":    {"add_labels": []string{strings.Repeat("é", 31)}},
		"remove_labels.0": {"remove_labels": []any{1}},
		"add_labels":      {"add_labels": strings.Fields("1 2 3 4 5 6 7 8 9 10 11")},
	} {
		r := e.call("PATCH", "/api/manage/channels/shop", e.admin, body)
		if _, named := r.json["errors"].(m)[field]; r.StatusCode != 422 || !named {
			t.Errorf("%v: %d %s", body, r.StatusCode, r.text)
		}
	}
	e.call("PATCH", "/api/manage/channels/shop", e.admin, m{"labels": []string{"a"}, "add_labels": []string{"b"}}).want(t, 422)
	if got := change(m{"add_labels": []string{"1"}}); got != "[1 2 3 4 5 6 7 8 9 x]" {
		t.Errorf("after refusals: %s", got)
	}
	change(m{"labels": []string{strings.Repeat("é", 30)}})
}

func TestFindByID(t *testing.T) {
	e := newEnv(t)
	sent := e.call("POST", "/api/send-message/text", e.second, m{"contact_id": ayu, "message": "halo"}).want(t, 200)
	full := sent["message_id"].(string)
	bare := full[strings.LastIndexByte(full, '_')+1:]
	find := func(query string) []any {
		t.Helper()
		return e.call("GET", "/api/manage/find?"+query, e.admin, nil).json["data"].([]any)
	}
	for _, id := range []string{full, bare} {
		found := find("id=" + url.QueryEscape(id))
		if len(found) != 1 || found[0].(m)["channel"] != "second" || found[0].(m)["message"].(m)["body"] != "halo" {
			t.Errorf("%s: %v", id, found)
		}
	}
	if found := find("channel=main&id=" + bare); len(found) != 0 {
		t.Errorf("on another channel: %v", found)
	}
	events, _, err := e.config.Store.RecentEvents(t.Context(), math.MaxInt64, parley.EventFilter{Channel: "second"}, 1)
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	event := string(events[0].ID)
	if found := find("id=" + event); len(found) != 1 || found[0].(m)["kind"] != "event" {
		t.Errorf("the event %s: %v", event, found)
	}
	for _, id := range []string{"nothing", "%25", "evt_00000000000000000000000000", "東京"} {
		if found := find("id=" + url.QueryEscape(id)); len(found) != 0 {
			t.Errorf("%s: %v", id, found)
		}
	}
	e.call("GET", "/api/manage/find", e.admin, nil).want(t, 422)
	e.call("GET", "/api/manage/find?id="+bare, e.main, nil).want(t, 403)
}
