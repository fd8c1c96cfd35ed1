package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/network/cloud/cloudtest"
)

// TestCloudNetwork sets a channel up on the official network and uses it, from the HTTP request to Meta and back.
func TestCloudNetwork(t *testing.T) {
	meta := cloudtest.Start()
	t.Cleanup(meta.Close)
	number := meta.AddNumber("6281100000001")
	var target atomic.Pointer[url.URL] // Meta reaches us by a proxy, as it is in front of most servers
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target.Load()) }})
	t.Cleanup(proxy.Close)
	s, c := &toyServers{}, Config{DataDir: Dir(t.TempDir()), PublicURL: proxy.URL, AllowPrivateCallers: loopback, AllowPrivate: loopback}
	data := openTest(t, c.DataDir)
	s.fill(t, data, 0)
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	s.servers = append(s.servers, r)
	address, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(address)

	account := map[string]string{"phone_number_id": number.ID, "waba_id": cloudtest.BusinessID, "access_token": meta.Token,
		"app_secret": meta.AppSecret, "graph_url": meta.URL}
	manage := func(method, path string, body any) (int, string) {
		t.Helper()
		text, _ := json.Marshal(body)
		req, _ := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(string(text)))
		req.Header = http.Header{"Authorization": {"Bearer " + s.admin}, "Content-Type": {"application/json"}}
		return s.do(t, req)
	}
	create := func(code string, account map[string]string) (int, string) {
		t.Helper()
		return manage("POST", "/api/manage/channels", map[string]any{"code": code, "network": "cloud", "cloud": account})
	}
	for field, wrong := range map[string]string{"access_token": "EAAwrong", "app_secret": "wrong", "phone_number_id": "123", "waba_id": "123",
		"graph_url": "ftp://x"} {
		broken := map[string]string{}
		for name, value := range account {
			broken[name] = value
		}
		broken[field] = wrong
		if status, text := create("toko", broken); status != http.StatusUnprocessableEntity || !strings.Contains(text, `"cloud.`+field+`"`) {
			t.Errorf("a wrong %s: %d %s", field, status, text)
		}
	}
	if status, text := create("toko", nil); status != http.StatusUnprocessableEntity {
		t.Errorf("no account: %d %s", status, text)
	}
	status, text := create("toko", account)
	if status != http.StatusCreated || strings.Contains(text, meta.Token) || strings.Contains(text, meta.AppSecret) ||
		!strings.Contains(text, `"verify_token"`) {
		t.Fatalf("create: %d %s", status, text)
	}
	awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/toko", s.admin); return text },
		`"status":"WORKING"`, `"number":"6281100000001"`, `"codes_template":"APPROVED"`, proxy.URL+"/network/cloud/toko")

	// Meta is given the address of the app too, or none, on request.
	change := func(field, value string) {
		t.Helper()
		body := map[string]any{"cloud": map[string]string{field: value}}
		if status, text := manage("PUT", "/api/manage/channels/toko/credentials", body); status != http.StatusOK {
			t.Errorf("%s %s: %d %s", field, value, status, text)
		}
	}
	if address := meta.Callback(); address != "" {
		t.Errorf("Meta calls %s for the app", address)
	}
	change("webhook", "app")
	if address := meta.Callback(); address != proxy.URL+"/network/cloud/toko" {
		t.Errorf("Meta calls %s for the app", address)
	}
	change("webhook", "number")
	silent := maps.Clone(account)
	silent["phone_number_id"], silent["webhook"] = meta.AddNumber("6281100000002").ID, "none"
	status, made := create("silent", silent)
	if status != http.StatusCreated || !strings.Contains(made, proxy.URL+"/network/cloud/silent") {
		t.Errorf("create without a webhook: %d %s", status, made)
	}
	awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/silent", s.admin); return text }, `"status":"WORKING"`,
		`"webhook_url":""`, `"reports_since":null`)
	var shown struct {
		Data struct {
			Cloud struct {
				Verify string `json:"verify_token"`
			}
		}
	}
	if err := json.Unmarshal([]byte(made), &shown); err != nil || shown.Data.Cloud.Verify == "" {
		t.Fatalf("the verify token: %v %s", err, made)
	}
	paste := func(token string) int { // what Meta does when somebody gives it the address
		status, _ := r.get(t, "/network/cloud/silent?hub.mode=subscribe&hub.challenge=7&hub.verify_token="+token, "")
		return status
	}
	if status := paste("guessed"); status != http.StatusForbidden {
		t.Errorf("a wrong verify token: %d", status)
	}
	if status := paste(shown.Data.Cloud.Verify); status != http.StatusOK {
		t.Errorf("the verify token: %d", status)
	}
	awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/silent", s.admin); return text }, `"reports_since":"20`)
	if status, text := manage("DELETE", "/api/manage/channels/silent", nil); status/100 != 2 {
		t.Errorf("delete: %d %s", status, text)
	}

	phone := number.Phone(toyPhoneNumber)
	phone.Text("open? 👋")
	received := s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Data.Body == "open? 👋" })
	if id := received[0].Data.ID; !strings.HasPrefix(id, "WA") {
		t.Errorf("the network's own id left the driver: %s", id)
	}
	chats, _ := http.NewRequestWithContext(t.Context(), "GET", r.url+"/api/chat", nil)
	chats.Header = http.Header{"Authorization": {"Bearer " + s.token}, "X-Channel": {"toko"}}
	if status, text := s.do(t, chats); status != http.StatusOK || !strings.Contains(text, `"window_until":"20`) {
		t.Errorf("the chats: %d %s", status, text)
	}
	body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"yes","reply_to":%q}`, toyPhoneNumber, received[0].Data.ID)
	if status, text := s.post(t, "/api/send-message/text", "toko", body); status != http.StatusOK || strings.Contains(text, "wamid") {
		t.Fatalf("send: %d %s", status, text)
	}
	s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Data.Body == "yes" && e.Data.Status == "DELIVERED" })
	if shown := phone.Shows(); len(shown) != 1 || shown[0].Text.Body != "yes" || shown[0].Context == nil {
		t.Errorf("the phone shows %+v", shown)
	}

	// A code goes as a template.
	code := fmt.Sprintf(`{"contact_id":"%s@c.us","name":"Toko"}`, toyPhoneNumber)
	if status, text := s.post(t, "/api/otp/code/request", "toko", code); status != http.StatusOK {
		t.Fatalf("code: %d %s", status, text)
	}
	awaitText(t, func() string { return fmt.Sprint(len(phone.Shows())) }, "2")
	if shown := phone.Shows(); shown[1].Type != "template" || len(shown[1].Template.Components[0].Parameters[0].Text) != 6 {
		t.Errorf("the phone shows %+v", shown)
	}
	for path, body := range map[string]string{
		"/api/send-message/poll": `{"contact_id":"` + toyPhoneNumber + `@c.us","title":"Kopi?","options":["ya","tidak"]}`,
		"/api/groups/create":     `{"name":"Team","participants":["` + toyPhoneNumber + `@c.us"]}`,
	} {
		if status, text := s.post(t, path, "toko", body); status != http.StatusBadRequest || !strings.Contains(text, `"unsupported"`) {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}

	// A picture that Meta does not take is converted. A film is not queued.
	animation := base64.StdEncoding.EncodeToString([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01" +
		"\x00\x01\x00\x00\x02\x02D\x01\x00;"))
	picture := fmt.Sprintf(`{"contact_id":"%s@c.us","file":{"url":"data:image/gif;base64,%s"}}`, toyPhoneNumber, animation)
	if status, text := s.post(t, "/api/send-message/image", "toko", picture); status != http.StatusOK {
		t.Errorf("a GIF: %d %s", status, text)
	}
	awaitText(t, func() string { return fmt.Sprint(len(phone.Shows())) }, "3")
	if shown := phone.Shows()[2]; shown.Image == nil {
		t.Errorf("the phone shows %+v", shown)
	} else if file, kind := meta.File(shown.Image.ID); kind != "image/jpeg" || !strings.HasPrefix(string(file), "\xff\xd8") {
		t.Errorf("the phone shows %s: %q", kind, file)
	}
	film := base64.StdEncoding.EncodeToString([]byte("\x1aE\xdf\xa3\x87B\x82\x84webm V_VP8"))
	film = fmt.Sprintf(`{"contact_id":"%s@c.us","file":{"url":"data:video/webm;base64,%s"}}`, toyPhoneNumber, film)
	if status, text := s.post(t, "/api/send-message/video", "toko", film); status != http.StatusUnprocessableEntity ||
		!strings.Contains(text, `"file.url"`) || !strings.Contains(text, "video/mp4, video/3gpp") {
		t.Errorf("a film: %d %s", status, text)
	}

	// A number is registered with its PIN, which is stored nowhere.
	number.Set(func(n *cloudtest.Number) { n.Status, n.PIN = "PENDING", "123456" })
	register := func(pin string) (int, string) {
		return manage("PUT", "/api/manage/channels/toko/credentials", map[string]any{"cloud": map[string]string{"pin": pin}})
	}
	for _, wrong := range []string{"12345", "654321"} {
		if status, text := register(wrong); status != http.StatusUnprocessableEntity || !strings.Contains(text, `"cloud.pin"`) {
			t.Errorf("the PIN %s: %d %s", wrong, status, text)
		}
	}
	if status, text := register("123456"); status != http.StatusOK || strings.Contains(text, "123456") {
		t.Errorf("register: %d %s", status, text)
	}
	awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/toko", s.admin); return text }, `"status":"WORKING"`,
		`"number_status":"CONNECTED"`)

	// New credentials revive a channel whose token ended, and what waited is sent.
	meta.SetToken("EAAnew")
	later := `{"contact_id":"` + toyPhoneNumber + `@c.us","message":"later"}`
	if status, text := s.post(t, "/api/send-message/text", "toko", later); status/100 != 2 {
		t.Fatalf("send: %d %s", status, text)
	}
	awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/toko", s.admin); return text }, `"status":"FAILED"`,
		"parley channel credentials toko")
	doctor := func() string { _, text := r.get(t, "/api/manage/doctor", s.admin); return text }
	awaitText(t, doctor, `"cloud_token_invalid"`, "Channel toko: Meta does not accept its access token.")
	rotate := map[string]any{"cloud": map[string]string{"access_token": "EAAnew"}}
	status, text = manage("PUT", "/api/manage/channels/toko/credentials", rotate)
	if status != http.StatusOK || strings.Contains(text, "EAAnew") {
		t.Fatalf("rotate: %d %s", status, text)
	}
	s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Data.Body == "later" && e.Data.Status == "DELIVERED" })
	if text := doctor(); strings.Contains(text, "cloud_") {
		t.Errorf("the doctor still finds %s", text)
	}
	if messages, copies := meta.Accepted(); messages != 4 || copies != 0 {
		t.Errorf("Meta accepted %d messages, %d of them again", messages, copies)
	}

	// A stranger is refused, and learns nothing.
	for path, want := range map[string]int{"/network/cloud/toko": http.StatusUnauthorized, "/network/cloud/none": http.StatusNotFound} {
		resp, err := http.Post(r.url+path, "application/json", strings.NewReader(`{"entry":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	if _, log := r.get(t, "/api/manage/audit", s.admin); !strings.Contains(log, "channel.credentials") || strings.Contains(log, "EAAnew") ||
		strings.Contains(log, meta.AppSecret) {
		t.Errorf("the audit log has %s", log)
	}
}

// awaitText waits until a text contains all parts.
func awaitText(t *testing.T, read func() string, parts ...string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text, missing := read(), ""
		for _, part := range parts {
			if !strings.Contains(text, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %s", missing, text)
		}
	}
}

// TestTemplates sends templates on the official network and, simulated, on the sandbox.
func TestTemplates(t *testing.T) {
	meta := cloudtest.Start()
	t.Cleanup(meta.Close)
	number := meta.AddNumber("6281100000001")
	s, c := &toyServers{}, Config{DataDir: Dir(t.TempDir()), AllowPrivateCallers: loopback, AllowPrivate: loopback}
	data := openTest(t, c.DataDir)
	s.fill(t, data, 0)
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	s.servers = append(s.servers, r)
	request := func(method, path, channel, token, body string) (int, string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		if channel != "" {
			req.Header.Set("X-Channel", channel)
		}
		return s.do(t, req)
	}
	account := fmt.Sprintf(`{"phone_number_id":%q,"waba_id":%q,"access_token":%q,"app_secret":%q,"graph_url":%q}`, number.ID,
		cloudtest.BusinessID, meta.Token, meta.AppSecret, meta.URL)
	for _, body := range []string{`{"code":"toko","network":"cloud","cloud":` + account + `}`, `{"code":"try"}`} {
		if status, text := request("POST", "/api/manage/channels", "", s.admin, body); status != http.StatusCreated {
			t.Fatalf("%d %s", status, text)
		}
	}
	const template = `{"name":"order_ready","language":"id","body":"Halo {{1}}, pesanan {{2}} siap.","examples":["Budi","A-1"]}`
	for _, channel := range []string{"toko", "try"} {
		awaitText(t, func() string { _, text := r.get(t, "/api/manage/channels/"+channel, s.admin); return text }, `"status":"WORKING"`)
		if status, text := request("POST", "/api/templates", channel, s.token, template); status != http.StatusCreated {
			t.Fatalf("%s: create: %d %s", channel, status, text)
		}
		meta.SetTemplate(cloudtest.Template{Name: "order_ready", Language: "id", Status: "APPROVED"})
		send := func(parameters string) (int, string) {
			return request("POST", "/api/send-message/template", channel, s.token, `{"contact_id":"`+toyPhoneNumber+
				`@c.us","name":"order_ready","language":"id","parameters":`+parameters+`}`)
		}
		if status, text := send(`["Budi","A-123"]`); status != http.StatusOK {
			t.Errorf("%s: send: %d %s", channel, status, text)
		}
		sent := s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Channel == channel && e.Data.Status == "SENT" })
		if sent[0].Data.Body != "Halo Budi, pesanan A-123 siap." {
			t.Errorf("%s: history shows %q", channel, sent[0].Data.Body)
		}
		send(`["Budi"]`)
		failed := s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Channel == channel && e.Data.Status == "FAILED" })
		if !strings.Contains(failed[0].Data.Error.Message, "parameters") {
			t.Errorf("%s: with a parameter less: %+v", channel, failed[0])
		}
		if _, text := request("GET", "/api/templates", channel, s.token, ""); !strings.Contains(text, `"order_ready"`) {
			t.Errorf("%s: the list is %s", channel, text)
		}
		for _, want := range []int{http.StatusOK, http.StatusNotFound} {
			if status, text := request("DELETE", "/api/templates/order_ready", channel, s.token, ""); status != want {
				t.Errorf("%s: delete: %d %s", channel, status, text)
			}
		}
	}
}
