package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/store"
)

// auditLog returns the newest entries, oldest first, as "action object".
func (e *env) auditLog(query string) (lines []string, rows []any) {
	e.t.Helper()
	reply := e.call("GET", "/api/manage/audit"+query, e.admin, nil)
	reply.want(e.t, 200)
	rows = reply.json["data"].([]any)
	for _, row := range rows {
		object, _ := row.(m)["object"].(string)
		lines = append([]string{strings.TrimSpace(row.(m)["action"].(string) + " " + object)}, lines...)
	}
	return lines, rows
}

func TestAuditOfChanges(t *testing.T) {
	e := newEnv(t)
	ops := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Operator, Name: "Ops"})
	e.call("POST", "/api/manage/channels", ops, m{"code": "toko", "name": "Toko"}).want(t, 201)
	e.call("PATCH", "/api/manage/channels/toko", ops, m{"name": "Toko Ayu"}, "X-Request-Id", "find-me").want(t, 200)
	e.call("POST", "/api/manage/channels/toko/stop", ops, nil).want(t, 200)
	hook := e.call("POST", "/api/manage/webhooks", ops, m{"url": "https://example.com/h?key=hunter2"}).want(t, 201)
	id := hook["id"].(string)
	e.call("PATCH", "/api/manage/webhooks/"+id, ops, m{"enabled": false}).want(t, 200)
	e.call("GET", "/api/manage/webhooks/"+id+"/secret", ops, nil).want(t, 200)
	e.call("DELETE", "/api/manage/webhooks/"+id, ops, nil).want(t, 200)
	e.call("DELETE", "/api/manage/channels/toko", ops, nil).want(t, 202)
	// What fails and what only reads is not logged.
	e.call("POST", "/api/manage/channels", ops, m{"code": "main"}).want(t, 422)
	e.call("POST", "/api/manage/tokens", ops, m{"kind": "global"}).want(t, 403)
	e.call("DELETE", "/api/manage/webhooks/whk_none", ops, nil).want(t, 404)
	e.call("GET", "/api/manage/channels", ops, nil).want(t, 200)

	lines, rows := e.auditLog("?actor=Ops")
	want := []string{"channel.create toko", "channel.change toko", "channel.stop toko", "webhook.create " + id, "webhook.change " + id,
		"webhook.show_secret " + id, "webhook.delete " + id, "channel.delete toko", "access.refused"}
	if strings.Join(lines, ", ") != strings.Join(want, ", ") {
		t.Fatalf("log: %v\nwant %v", lines, want)
	}
	text := string(must(json.Marshal(rows))(t))
	if strings.Contains(text, "hunter2") || strings.Contains(text, "whsec_") {
		t.Errorf("the log has a secret: %s", text)
	}
	if refused := rows[0].(m)["after"].(m); refused["route"] != "POST /api/manage/tokens" || refused["needs"] != "owner" {
		t.Errorf("refused: %v", refused)
	}
	changed := rows[len(rows)-2].(m)
	before, after := changed["before"].(m), changed["after"].(m)
	if len(before) != 1 || before["name"] != "Toko" || len(after) != 1 || after["name"] != "Toko Ayu" || changed["request_id"] != "find-me" ||
		changed["role"] != "operator" || changed["actor_kind"] != "token" || changed["address"] != "127.0.0.1" {
		t.Errorf("change: %v", changed)
	}
}

func TestAuditOfTokens(t *testing.T) {
	e := newEnv(t)
	body := m{"kind": "admin", "role": "viewer", "name": "New"}
	made := e.call("POST", "/api/manage/tokens", e.admin, body, "Idempotency-Key", "k").want(t, 201)
	e.call("POST", "/api/manage/tokens", e.admin, body, "Idempotency-Key", "k").want(t, 201) // is logged once
	id := made["id"].(string)
	e.call("PATCH", "/api/manage/tokens/"+id, e.admin, m{"role": "support"}).want(t, 200)
	e.call("DELETE", "/api/manage/tokens/"+id, e.admin, nil).want(t, 200)
	e.call("POST", "/api/manage/sign-in-link", e.admin, m{"role": "viewer", "name": "Ayu"}).want(t, 200)
	e.call("POST", "/api/manage/signing-key/rotate", e.admin, nil).want(t, 200)
	lines, rows := e.auditLog("?object=" + id)
	if strings.Join(lines, ", ") != "token.create "+id+", token.change "+id+", token.revoke "+id {
		t.Errorf("log: %v", lines)
	}
	if change := rows[1].(m); change["before"].(m)["role"] != "viewer" || change["after"].(m)["role"] != "support" {
		t.Errorf("change: %v", change)
	}
	if text := string(must(json.Marshal(rows))(t)); strings.Contains(text, made["token"].(string)) {
		t.Error("the log has a token")
	}
	if lines, _ := e.auditLog("?action=session."); strings.Join(lines, ", ") != "session.link" {
		t.Errorf("links: %v", lines)
	}
	if lines, _ := e.auditLog("?action=token.&limit=1"); len(lines) != 1 || !strings.HasPrefix(lines[0], "token.rotate_key key_") {
		t.Errorf("newest: %v", lines)
	}
	owner := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Owner})
	ended := e.call("POST", "/api/manage/signing-key/rotate", e.admin, m{"retire": true, "keep_current": true}).want(t, 200)["ended"].([]any)
	e.call("GET", "/api/manage/me", e.admin, nil).want(t, 401)
	e.admin = owner
	_, rows = e.auditLog("?action=token.rotate_key&limit=1")
	if len(ended) == 0 || len(rows[0].(m)["after"].(m)["ended"].([]any)) != len(ended) {
		t.Errorf("ended %v, log: %v", ended, rows)
	}
}

// TestRefusalsDoNotFloodTheAuditLog: of one caller only some are logged, which does not hide those of another.
func TestRefusalsDoNotFloodTheAuditLog(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"One", "Other"} {
		viewer := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Viewer, Name: name})
		for range 3 * refusedBurst {
			e.call("DELETE", "/api/manage/channels/main", viewer, nil).want(t, 403)
		}
		if lines, _ := e.auditLog("?action=access.&actor=" + name); len(lines) < refusedBurst || len(lines) > refusedBurst+2 ||
			lines[0] != "access.refused main" {
			t.Errorf("%d refusals of %s are logged: %v", len(lines), name, lines)
		}
	}
}

// TestAuditIsInTheTransaction: an act that cannot be logged does not happen.
func TestAuditIsInTheTransaction(t *testing.T) {
	e := newEnv(t, func(c *Config) {
		tx := c.Store.Tx
		c.tx = func(ctx context.Context, do func(*store.Tx) error) error {
			return tx(ctx, func(t *store.Tx) error { return errors.Join(do(t), errors.New("the disk is full")) })
		}
	})
	e.call("POST", "/api/manage/webhooks", e.admin, m{"url": "https://example.com/h"}).want(t, 500)
	if lines, _ := e.auditLog(""); len(lines) != 0 {
		t.Errorf("log: %v", lines)
	}
}

// TestEveryActIsAudited: every route that changes something through the management API, or reaches somebody from the console, has an
// action.
func TestEveryActIsAudited(t *testing.T) {
	exempt := []string{"POST /api/media", "POST /api/send-message/typing", "POST /api/send-message/stop-typing",
		"POST /api/otp/code/validate", "POST /api/groups/participant", "POST /mcp"}
	for _, row := range tokenRoutes(&server{}) {
		exempt := slices.Contains(exempt, row.pattern) || strings.Contains(row.pattern, "/api/sandbox/")
		if row.audit == "" && !strings.HasPrefix(row.pattern, "GET ") && !exempt {
			t.Errorf("%s names no act", row.pattern)
		}
	}
}
