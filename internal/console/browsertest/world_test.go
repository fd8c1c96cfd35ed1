package browsertest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"net/http/httptest"

	"parley/internal/parleytest"
)

const (
	ayu  = "6281234567890"
	budi = "6281290004711"
)

// populate fills a gateway with a shop's morning, so that every page has something to show: chats of all
// kinds, what went wrong, one-time passwords, webhooks that work and that do not, tokens. It returns a message's id.
func (c *console) populate() (message string) {
	c.t.Helper()
	admin := parleytest.As(c.Admin)
	for _, channel := range []string{
		`{"code":"toko","name":"Toko Ayu","network":"sandbox"}`,
		`{"code":"kasir","name":"Kasir","network":"sandbox"}`,
		`{"code":"cabang-surabaya-timur","name":"Toko Ayu cabang Surabaya Timur, layanan pelanggan & aduan","network":"sandbox"}`,
		`{"code":"haifa","name":"متجر حيفا","network":"sandbox"}`,
	} {
		c.Post("/api/manage/channels", channel, admin).Expect(http.StatusCreated)
	}
	c.Post("/api/manage/channels/kasir/stop", "", admin).Expect(http.StatusOK)
	c.hooks()
	for _, template := range []string{
		`{"name":"order_ready","language":"id","header":"Toko Ayu","body":"Halo {{1}}, pesanan {{2}} siap diambil.","examples":["Budi","A-17"]}`,
		`{"name":"promo_lebaran","language":"id","category":"MARKETING","body":"Diskon {{1}} % untuk semua kue!","status":"REJECTED"}`,
		`{"name":"payment_reminder","language":"en_US","body":"Your invoice {{1}} is due on {{2}}.","status":"PENDING"}`,
	} {
		c.Post("/api/templates", template).Expect(http.StatusCreated)
	}

	files := c.files()
	c.say("text", ayu, `"message":"Selamat pagi Kak Ayu 👋 Pesanan #1042 sudah kami terima."`)
	c.Phone(ayu).Types("Pagi! Kapan dikirim?")
	first := c.say("text", ayu, `"message":"Hari ini sebelum jam 14.00. Ini fotonya:"`)
	c.say("image", ayu, fmt.Sprintf(`"file":{"url":"%s/kue.jpg"},"caption":"Kue lapis, 2 loyang"`, files))
	c.say("location", ayu, `"latitude":"-6.2","longitude":"106.816666"`)
	c.say("poll", ayu, `"title":"Jam berapa Kakak di rumah?","options":["10–12","12–14","Sesudah 16.00"]`)
	c.Phone(ayu).Sends(fmt.Sprintf(`{"type":"reaction","message_id":"%s","reaction":"❤️"}`, first))
	c.Phone(ayu).Types("makasih!")
	c.say("text", budi, `"message":"Halo Kak Budi, promo hari ini: diskon 20 % untuk semua kue."`)
	c.Phone(budi).Types("مرحبا، هل لديكم توصيل؟")
	c.Post("/api/sandbox/faults", `{"fault":"refuse","times":1}`).Expect(http.StatusOK)
	c.Post("/api/send-message/text", `{"contact_id":"6281377700011@c.us","message":"Kak, pesanannya siap diambil."}`)

	c.Post("/api/otp/code/request", `{"contact_id":"`+ayu+`@c.us","name":"Toko Ayu"}`).Expect(http.StatusOK)
	if codes := c.Phone(ayu).Expect("Toko Ayu").Codes; len(codes) > 0 {
		c.Post("/api/otp/code/validate", `{"contact_id":"`+ayu+`@c.us","code":"`+codes[0]+`"}`).Expect(http.StatusOK)
	}
	c.Post("/api/otp/link/request",
		fmt.Sprintf(`{"contact_id":"%s@c.us","expires":300,"name":"Toko Ayu","callback":{"success":"%[2]s/ok","failed":"%[2]s/no"}}`, budi,
			files)).Expect(http.StatusOK)

	for _, token := range []string{`{"kind":"channel","channel":"toko","name":"Kasir di depan"}`, `{"kind":"global","name":"CRM"}`,
		`{"kind":"admin","name":"Terraform"}`} {
		c.Post("/api/manage/tokens", token, admin).Expect(http.StatusCreated)
	}
	return first
}

// say sends something to a phone on channel demo and returns its id.
func (c *console) say(kind, to, fields string) (messageID string) {
	c.t.Helper()
	return c.Post("/api/send-message/"+kind, `{"contact_id":"`+to+`@c.us",`+fields+`}`).Expect(http.StatusOK).Text("data.message_id")
}

// hooks adds a webhook that takes everything and one that takes nothing.
func (c *console) hooks() {
	c.t.Helper()
	for path, status := range map[string]int{"/crm": http.StatusNoContent, "/old": http.StatusInternalServerError} {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		c.t.Cleanup(receiver.Close)
		c.Post("/api/manage/webhooks", `{"url":"`+receiver.URL+path+`"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	}
}

// files serves a picture, as a shop's own server would.
func (c *console) files() (url string) {
	c.t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 480, 320))
	for y := range 320 {
		for x := range 480 {
			layer := uint8(y / 32 * 24)
			picture.Set(x, y, color.RGBA{220 - layer/2, 120 + layer/3, 60 + layer/2, 255})
		}
	}
	var packed bytes.Buffer
	if err := jpeg.Encode(&packed, picture, nil); err != nil {
		c.t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/jpeg")
		w.Write(packed.Bytes())
	}))
	c.t.Cleanup(server.Close)
	return server.URL
}
