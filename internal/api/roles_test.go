package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// TestEveryRouteAndRole calls every route with every role, through the console and, where they may call it, with an admin token.
// testdata/roles.txt says who is allowed. Endpoints are replaced: a role that suffices does no harm here.
func TestEveryRouteAndRole(t *testing.T) {
	e := newEnv(t)
	api := e.handler.(*API)
	var session parley.Role
	inConsole := emptyRouter(api.server, api.duration)
	inConsole.checkSession = func(context.Context, *http.Request) (parley.Ticket, error) {
		return parley.Ticket{Hash: []byte("session"), Role: session}, nil
	}
	withToken := emptyRouter(api.server, api.duration)
	for _, m := range []*router{inConsole, withToken} {
		m.add(tokenRoutes(m.server))
		m.finish()
		for _, path := range m.paths {
			for _, h := range path.by {
				h.(*route).work = refusing(parley.Errorf(parley.Unavailable, "permitted"))
				h.(*route).input = nothing
			}
		}
	}
	var names, got []string
	for _, row := range tokenRoutes(api.server) {
		names = append(names, row.names()...)
	}
	for _, name := range names {
		method, path, _ := strings.Cut(name, " ")
		line := name
		for _, role := range parley.Roles {
			session = role
			allowed := e.isPermitted(inConsole, method, path, role, "")
			if strings.HasPrefix(path, "/api/manage/") {
				token := e.token(parley.Token{Kind: parley.AdminToken, Role: role})
				if byToken := e.isPermitted(withToken, method, path, role, token); byToken != allowed {
					t.Errorf("%s as %s: by token %t, in the console %t", name, role, byToken, allowed)
				}
			}
			if allowed {
				line += " " + string(role)
			}
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(string(must(os.ReadFile("testdata/roles.txt"))(t))), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in testdata/roles.txt: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("only in testdata/roles.txt: %s", line)
		}
	}
}

// isPermitted reports whether a request reaches its endpoint. It must do that, or be refused for its role.
func (e *env) isPermitted(m *router, method, path string, role parley.Role, token string) bool {
	e.t.Helper()
	hr := httptest.NewRequest(method, strings.NewReplacer("{code}", "main", "{", "", "}", "").Replace(path), nil)
	hr.Header.Set("X-Channel", "main")
	if token != "" {
		hr.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, hr)
	switch body := w.Body.String(); {
	case w.Code == http.StatusServiceUnavailable && strings.Contains(body, "permitted"):
		return true
	case w.Code != http.StatusForbidden || !strings.Contains(body, "needs the role"):
		e.t.Errorf("%s %s as %s: %d %s", method, path, role, w.Code, body)
	}
	return false
}

func TestRolesOfTokens(t *testing.T) {
	e := newEnv(t)
	made := e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "admin", "role": "viewer"}).want(t, 201)
	id, viewer := made["id"].(string), made["token"].(string)
	if made["role"] != "viewer" {
		t.Errorf("role: %v", made["role"])
	}
	e.call("GET", "/api/manage/channels", viewer, nil).want(t, 200)
	refused := e.call("POST", "/api/manage/channels/main/stop", viewer, nil)
	refused.want(t, 403)
	if !strings.Contains(refused.text, "the role operator") || !strings.Contains(refused.text, "parley token set "+id+" --role operator") {
		t.Errorf("the sentence does not say what to do: %s", refused.text)
	}
	e.call("POST", "/api/manage/tokens", viewer, m{"kind": "admin"}).want(t, 403)
	e.call("PATCH", "/api/manage/tokens/"+id, viewer, m{"role": "owner"}).want(t, 403)
	if me := e.call("GET", "/api/manage/me", viewer, nil).want(t, 200); me["id"] != id || me["role"] != "viewer" || me["kind"] != "token" {
		t.Errorf("me: %v", me)
	}

	changed := e.call("PATCH", "/api/manage/tokens/"+id, e.admin, m{"role": "operator", "name": "Ops"}).want(t, 200)
	if changed["name"] != "Ops" {
		t.Errorf("changed: %v", changed)
	}
	e.call("POST", "/api/manage/channels/main/stop", viewer, nil).want(t, 200) // at once
	e.call("PATCH", "/api/manage/tokens/"+id, viewer, m{"role": "owner"}).want(t, 403)
	e.call("PATCH", "/api/manage/tokens/tok_unknown", e.admin, m{"role": "viewer"}).want(t, 404)
	e.call("PATCH", "/api/manage/tokens/"+id, e.admin, m{"role": "root"}).want(t, 422)

	// A token without a role is an owner's. Other kinds have none.
	if owner := e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "admin"}).want(t, 201); owner["role"] != "owner" {
		t.Errorf("role of an admin token: %v", owner["role"])
	}
	e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "global", "role": "viewer"}).want(t, 422)
	global := e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "global"}).want(t, 201)
	if global["role"] != nil {
		t.Errorf("role of a Global token: %v", global["role"])
	}
	e.call("PATCH", "/api/manage/tokens/"+global["id"].(string), e.admin, m{"role": "viewer"}).want(t, 422)
}

func TestRolesOfSignInLinks(t *testing.T) {
	e := newEnv(t)
	support := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Support, Name: "Ayu"})
	for asked, want := range map[string]int{"": 200, "viewer": 200, "support": 200, "operator": 403, "owner": 403, "root": 422} {
		body := m{}
		if asked != "" {
			body["role"] = asked
		}
		link := e.call("POST", "/api/manage/sign-in-link", support, body)
		link.want(t, want)
		if role := strings.TrimSpace(asked + " support"); want == 200 && !strings.Contains(link.text, `"role":"`+strings.Fields(role)[0]+`"`) {
			t.Errorf("asked for %q: %s", asked, link.text)
		}
	}
	e.call("POST", "/api/manage/sign-in-link", support, nil).want(t, 200)
}

// TestPairingEventsNeedAnOperator looks for the event with a pairing code as a viewer and as an operator.
func TestPairingEventsNeedAnOperator(t *testing.T) {
	e := newStreamEnv(t, 100)
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		event := parley.Event{Type: parley.ChannelPairing, Channel: "main", At: time.Now(), Data: []byte(`{"step":"qr"}`)}
		return tx.AddEvent(t.Context(), &event)
	})
	if err != nil {
		t.Fatal(err)
	}
	for role, sees := range map[parley.Role]bool{parley.Viewer: false, parley.Support: false, parley.Operator: true, parley.Owner: true} {
		token := e.token(parley.Token{Kind: parley.AdminToken, Role: role})
		all := e.call("GET", "/api/manage/events/recent", token, nil)
		if all.StatusCode != http.StatusOK || strings.Contains(all.text, "channel.pairing") != sees {
			t.Errorf("%s: %d %s", role, all.StatusCode, all.text)
		}
		only := e.call("GET", "/api/manage/events/recent?types=channel.pairing", token, nil)
		stream := e.call("HEAD", "/api/manage/events?types=channel.pairing", token, nil)
		if (only.StatusCode == http.StatusOK) != sees || (stream.StatusCode == http.StatusOK) != sees {
			t.Errorf("%s asks for nothing else: %d, and by stream %d", role, only.StatusCode, stream.StatusCode)
		}
	}
}
