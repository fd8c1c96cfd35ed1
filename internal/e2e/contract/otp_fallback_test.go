package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

// TestContractCodeChannels holds the field channels of requests for codes to what is promised of it.
func TestContractCodeChannels(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	as := parleytest.As(e.Global)
	tokens := map[string]string{}
	for _, code := range []string{"a", "b", "c"} {
		tokens[code] = e.CreateChannel(code)
	}
	ask := func(path, number string, more ...parleytest.Option) *parleytest.Response {
		t.Helper()
		return e.Post(path, toJSON(t, object{"contact_id": number + "@c.us", "channels": []string{"a", "b", "c"}}), append(more, as)...)
	}
	for _, path := range []string{codeRequest, "/api/otp/code/global"} {
		for name, bad := range map[string]any{
			"none": []string{}, "too many": []string{"a", "b", "c", "a", "b", "c"}, "no list": "a",
		} {
			t.Run(name, func(t *testing.T) {
				expectInvalid(within(t, e).Post(path, toJSON(t, object{"contact_id": newBuyer() + "@c.us", "channels": bad}), as), "channels")
			})
		}
		body := func(channels ...string) string {
			return toJSON(t, object{"contact_id": newBuyer() + "@c.us", "channels": channels})
		}
		expectInvalid(e.Post(path, body("a", "nobody"), as), "channels.1")
		expectInvalid(e.Post(path, body("a", "b", "a"), as), "channels.2")
		expectInvalid(e.Post(path, body("a"), as, parleytest.On("a")), "channels")
		expectInvalid(e.Post(path, `{"channels":["nobody"],"length":99}`, as), "channels.0", "contact_id", "length")
		if path == codeRequest {
			expectInvalid(e.Post(path, body("a"), parleytest.As(tokens["a"])), "channels")
		}
		testCodeOnNext(t, e, tokens, func(number string, more ...parleytest.Option) *parleytest.Response { return ask(path, number, more...) })
	}
	e.Post("/api/manage/channels", `{"code":"real","network":"whatsapp"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	mixed := e.Post(codeRequest, toJSON(t, object{"contact_id": newBuyer() + "@c.us", "channels": []string{"a", "real"}}), as)
	expectInvalid(mixed, "channels")

	for _, code := range []string{"a", "b", "c"} {
		e.Post("/api/manage/channels/"+code+"/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	}
	got := ask(codeRequest, newBuyer()).ExpectError(http.StatusBadRequest, "Channel a is STOPPED").Text("code")
	if got != "channel_not_ready" {
		t.Errorf("without a channel the code of the error is %s", got)
	}
}

// testCodeOnNext has the first channel refuse a code. The second one carries it, and it counts once.
func testCodeOnNext(
	t *testing.T, e *parleytest.Env, tokens map[string]string, ask func(string, ...parleytest.Option) *parleytest.Response,
) {
	t.Helper()
	as, number := parleytest.As(e.Global), newBuyer()
	order(e, toJSON(t, object{"fault": "refuse", "times": 1, "to": number, "reason": "restricted"}), parleytest.As(tokens["a"]))
	key := parleytest.With("Idempotency-Key", number)
	answer := ask(number, key).Expect(http.StatusOK)
	if again := ask(number, key).Expect(http.StatusOK); string(again.Body) != string(answer.Body) {
		t.Errorf("%s is replayed as %s", answer.Body, again.Body)
	}
	if answer.Text("data.channel") != "a" || answer.Text("data.status") != "PENDING" {
		t.Errorf("the answer is %s", answer.Body)
	}
	phone := e.PhoneFor(tokens["b"], number)
	e.Eventually("the second channel carries the code", func() bool { return len(phone.Messages()) > 0 })
	code := phone.Messages()[0].Codes[0]
	if got := e.PhoneFor(tokens["a"], number).Messages(); len(got) != 0 {
		t.Errorf("the first channel sent %+v", got)
	}
	try := func(channel, code string) *parleytest.Response {
		return e.Post(codeValidate, toJSON(t, object{"contact_id": number + "@c.us", "code": code}), as, parleytest.On(channel)).Expect(200)
	}
	if got := try("b", code); got.Text("data.status") != "INVALID" {
		t.Errorf("on the channel that carried it: %s", got.Body)
	}
	const tried = `"channels_tried":["a","b"]`
	if got := try("a", "wrong"); got.Text("data.status") != "INVALID" || !strings.Contains(string(got.Body), tried) {
		t.Errorf("a wrong code: %s", got.Body)
	}
	if got := try("a", code); got.Text("data.status") != "APPROVED" || !strings.Contains(string(got.Body), tried) {
		t.Errorf("the code: %s", got.Body)
	}
	list := e.Get("/api/manage/otp?channel=a", parleytest.As(e.Admin)).Expect(http.StatusOK)
	if !strings.Contains(string(list.Body), tried) {
		t.Errorf("the list is %s", list.Body)
	}
	ends := string(e.Get("/api/events/recent?type=otp.approved,otp.failed&limit=1", parleytest.As(tokens["a"])).Expect(http.StatusOK).Body)
	if !strings.Contains(ends, "otp.approved") || !strings.Contains(ends, tried) || !strings.Contains(ends, number) {
		t.Errorf("published %s", ends)
	}
	ask(number).ExpectError(http.StatusTooManyRequests, "one code in 20 seconds")
}

// TestFallbackOnNodes has codes go from channel to channel over two nodes.
func TestFallbackOnNodes(t *testing.T) {
	if postgrestest.Running() {
		t.Skip("it has a database for two nodes of its own")
	}
	address := postgrestest.Start(t).Schema(t)
	first := parleytest.Start(t, node(t, address, nil))
	second := parleytest.Start(t, node(t, address, first))
	nodes := []*parleytest.Env{first, second}
	first.Eventually("both have half of the shards", func() bool {
		list := listNodes(first)
		return len(list) == 2 && list[0].Shards == 64 && list[1].Shards == 64
	})
	tokens := map[string]string{}
	var codes []string
	for i := range 6 {
		code := fmt.Sprintf("hop%d", i)
		codes, tokens[code] = append(codes, code), first.CreateChannel(code)
	}
	for i, from := range codes {
		to := codes[(i+1)%len(codes)]
		e, number := nodes[i%2], newBuyer()
		e.Post(faults, toJSON(t, object{"fault": "refuse", "times": 1, "to": number}), parleytest.As(tokens[from])).Expect(200)
		ask := toJSON(t, object{"contact_id": number + "@c.us", "channels": []string{from, to}})
		e.Post(codeRequest, ask, parleytest.As(first.Global)).Expect(200)
		phone := e.PhoneFor(tokens[to], number)
		e.Eventually("the next channel carries the code", func() bool { return len(phone.Messages()) > 0 })
		body := toJSON(t, object{"contact_id": number + "@c.us", "code": phone.Messages()[0].Codes[0]})
		got := nodes[(i+1)%2].Post(codeValidate, body, parleytest.As(first.Global), parleytest.On(from)).Expect(200)
		if got.Text("data.status") != "APPROVED" {
			t.Errorf("from %s to %s: %s", from, to, got.Body)
		}
	}
}
