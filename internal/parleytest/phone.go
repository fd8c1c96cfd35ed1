package parleytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Phone is a simulated phone that talks with a channel.
type Phone struct {
	env    *Env
	number string
	as     []Option
}

// Phone returns a phone of channel demo.
func (e *Env) Phone(number string) *Phone { return &Phone{env: e, number: number} }

// PhoneFor returns a phone of another channel, by its token.
func (e *Env) PhoneFor(token, number string) *Phone {
	return &Phone{env: e, number: number, as: []Option{As(token)}}
}

// Contact is the phone's contact id.
func (p *Phone) Contact() string { return p.number + "@c.us" }

// Arrived is what reached a phone.
type Arrived struct {
	MessageID string   `json:"message_id"`
	Type      string   `json:"type"`
	Body      string   `json:"body"`
	Codes     []string `json:"codes"`
	Links     []string `json:"links"`
	ReplyTo   string   `json:"reply_to"`
	Status    string   `json:"status"`
	EditedAt  string   `json:"edited_at"`
	Copies    int      `json:"copies"`
	Cursor    string   `json:"cursor"`
}

// Messages lists what reached the phone, oldest first: the newest hundred at most.
func (p *Phone) Messages() []Arrived {
	p.env.T.Helper()
	return arrivals(p.env.Get("/api/sandbox/phones/"+p.number+"/messages?limit=100", p.as...))
}

// Expect waits for a message that contains a text, and returns it.
func (p *Phone) Expect(text string) Arrived {
	p.env.T.Helper()
	path := "/api/sandbox/phones/" + p.number + "/messages?wait=30&contains=" + url.QueryEscape(text)
	var answer *Response
	p.env.Eventually(p.number+" has "+text, func() bool {
		answer = p.env.Get(path, p.as...)
		return answer.Status != http.StatusNotFound // which says that no such message came in 30 s
	})
	return arrivals(answer)[0]
}

func arrivals(answer *Response) []Arrived {
	answer.T.Helper()
	answer.Expect(http.StatusOK)
	var page struct{ Data []Arrived }
	if err := json.Unmarshal(answer.Body, &page); err != nil {
		answer.T.Fatal(err)
	}
	return page.Data
}

// Types sends a text to the channel.
func (p *Phone) Types(text string) *Response {
	p.env.T.Helper()
	return p.Sends(fmt.Sprintf(`{"type":"text","message":%q}`, text))
}

// Sends acts as the phone with a body of the sandbox API.
func (p *Phone) Sends(body string) *Response {
	p.env.T.Helper()
	return p.env.Post("/api/sandbox/phones/"+p.number+"/send", body, p.as...).Expect(http.StatusOK)
}

// Reads opens the chat: everything in it is read.
func (p *Phone) Reads() {
	p.env.T.Helper()
	p.env.Post("/api/sandbox/phones/"+p.number+"/read", `{}`, p.as...).Expect(http.StatusOK)
}

// Becomes changes the phone, with a body of the sandbox API.
func (p *Phone) Becomes(body string) {
	p.env.T.Helper()
	p.env.Call("PATCH", "/api/sandbox/phones/"+p.number, body, p.as...).Expect(http.StatusOK)
}

// Received waits until the channel has a record of a text from the phone, and returns its full id.
func (p *Phone) Received(text string) (messageID string) {
	p.env.T.Helper()
	p.env.Eventually("the channel has "+text, func() bool {
		history := p.env.Get("/api/chat/detail?contact_id="+p.Contact(), p.as...).Expect(http.StatusOK)
		for i := range history.Count("data") {
			at := fmt.Sprintf("data.%d.", i)
			if history.Text(at+"body") == text && history.Text(at+"from_me") == "false" {
				messageID = history.Text(at + "message_id")
				return true
			}
		}
		return false
	})
	return messageID
}
