package hostile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Values that no field of their kind may have, as JSON.
var (
	badContacts = []string{`null`, `1`, `6281234567890`, `true`, `[]`, `{}`, `["6281234567890@c.us"]`, `""`, `"x"`, `"6281234567890"`,
		`"6281234567890@g.us"`, `"+6281234567890@c.us"`, `" 6281234567890@c.us"`, `"6281234567890@c.us\n"`, `"6281234567890@c.us "`,
		`"6281234567890@C.US"`, `"6281234567890@cxus"`, `"6281234567890@c.us@c.us"`, `"6281234567890@lid"`, `"1@c.us"`, `"` +
			strings.Repeat("1", 46) + `@c.us"`, `"６２８１２３４５６７８９０@c.us"`, `"-281234567890@c.us"`,
		`"6281234567890@c.us\u200b"`, `"status@broadcast"`}
	badStrings = []string{`1`, `1.5`, `true`, `false`, `[]`, `{}`, `["x"]`, `1e400`, `-0`}
	badAddress = []string{`null`, `1`, `[]`, `{}`, `""`, `"x"`, `"ftp://x.test/a.ogg"`, `"file:///etc/passwd"`, `"gopher://x.test/a.ogg"`,
		`"http://"`, `"http:///a.ogg"`, `"https://u:p@x.test/a.ogg"`, `"https://x.test:0/a.ogg"`, `"https://x.test:99999/a.ogg"`,
		`"https://x.test/\u0001.ogg"`, `"https://x.test/%00.ogg"`, `"\\\\x.test\\a.ogg"`, `"https://x.test/` + strings.Repeat("a", 2048) +
			`.ogg"`, `"javascript:alert(1)"`, `"data:audio/ogg;base64,AAAA.ogg"`, `"https://2130706433/a.ogg"`, `"//x.test/a.ogg"`,
		`" https://x.test/a.ogg"`, `"https://x .test/a.ogg"`, `"https://[::1%25lo]/a.ogg"`}
	badMessages = []string{`null`, `1`, `[]`, `{}`, `""`, `"x_y"`, `"true_6281234567890@c.us_"`, `"true_6281234567890@c.us_3EB0"`,
		`"maybe_6281234567890@c.us_3EB0"`, `"true_x_3EB0"`, `"3EB0 "`, `"3EB0"`, `"` + strings.Repeat("A", 101) + `"`, `"' OR 1=1 --"`,
		`"%s%n"`, `"💩"`, `"true_6281234567890@g.us_3EB0"`}
	badReplies = []string{`1`, `[]`, `{}`, `true`, `""`, `"true_6281234567890@c.us_3EB0"`, `"a b"`, `"é"`, `"3EB0\n"`, `"` +
		strings.Repeat("A", 101) + `"`, `"3EB0000000"`, `"../x"`}
	badFlags    = []string{`2`, `-1`, `1.0`, `"yes"`, `"TRUE"`, `""`, `" true"`, `"01"`, `[]`, `{}`, `[true]`, `1e0`}
	badBooleans = []string{`1`, `0`, `"true"`, `"false"`, `""`, `[]`, `{}`}
	badDegrees  = []string{`null`, `1`, `-6.2`, `[]`, `{}`, `""`, `"x"`, `"181"`, `"-181"`, `"1e1"`, `"+1"`, `" 1"`, `"1 "`, `"1."`, `".5"`,
		`"1,5"`, `"0x10"`, `"NaN"`, `"1.12345678901"`, `"180.1"`, `"１"`}
	badNumbers = []string{`"1"`, `true`, `[]`, `{}`, `1.5`, `0`, `-1`, `1e400`, `-1e400`, `99999999999999999999`, `1e-5`, `""`}
)

// fieldCase is a field of a route with values that it must refuse.
type fieldCase struct {
	path, as string
	body     string // with VALUE in place of the field's value
	field    string // that the answer must name
	values   []string
}

func badFields() (cases []hostile) {
	long := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	text := func(n int) []string { return append(slices.Clone(badStrings), `null`, `""`, long(n+1)) }
	optional := func(n int) []string { return append(slices.Clone(badStrings), `""`, long(n+1)) }
	const to = `{"contact_id":"6281234567890@c.us",`
	const send, phones, manage = "POST /api/send-message/", "POST /api/sandbox/phones", "POST /api/manage/"
	table := []fieldCase{
		{send + "text", "", to + `"message":VALUE}`, "message", text(4096)},
		{send + "text", "", to + `"MESSAGE":VALUE}`, "message", []string{`"another case is another field"`}},
		{send + "text", "", `{"Contact_id":VALUE,"message":"x"}`, "contact_id", []string{`"6281234567890@c.us"`}},
		{send + "text", "", to + `"message":"x","reply_to":VALUE}`, "reply_to", badReplies},
		{send + "text", "", to + `"message":"x","linkPreview":VALUE}`, "linkPreview", badFlags},
		{send + "text", "", to + `"message":"x","linkPreviewHighQuality":VALUE}`, "linkPreviewHighQuality", badFlags},
		{send + "image", "", to + `"file":{"url":VALUE}}`, "file.url", badAddress},
		{send + "image", "", to + `"file":VALUE}`, "file", []string{`1`, `"x"`, `[]`, `true`}},
		{send + "image", "", to + `"file":VALUE}`, "file.url", []string{`null`, `{}`, `{"URL":"https://x.test/a.png"}`}},
		{send + "image", "", to + `"file":{"url":"x"},"caption":VALUE}`, "caption", optional(1024)},
		{send + "image", "", to + `"file":{"url":"x","mimeType":VALUE}}`, "file.mimeType", []string{`1`, `[]`, `"x y"`, `"/"`, `"image/"`,
			`"image/png;;"`, `"image/png\r\nX: y"`, long(256)}},
		{send + "image", "", to + `"file":{"url":"x","filename":VALUE}}`, "file.filename", []string{`1`, `[]`, `{}`, long(256)}},
		{send + "file", "", to + `"file":{"url":VALUE}}`, "file.url", badAddress},
		{send + "sticker", "", to + `"file":{"url":VALUE}}`, "file.url", badAddress},
		{send + "sticker", "", to + `"file":VALUE}`, "file", []string{`1`, `"x"`, `[]`, `true`}},
		{send + "video", "", to + `"file":{"url":VALUE}}`, "file.url", badAddress},
		{send + "video", "", to + `"videoUrl":VALUE}`, "videoUrl", badAddress[1:]},
		{send + "voice", "", to + `"audioUrl":VALUE}`, "audioUrl", append(slices.Clone(badAddress), `"https://x.test/a"`,
			`"https://x.test/a.exe"`, `"https://x.test/a.OGG"`, `"https://x.test/a.ogg?x=1"`, `"https://x.test/a.ogg\n"`)},
		{send + "location", "", to + `"latitude":VALUE,"longitude":"1"}`, "latitude", append(slices.Clone(badDegrees), `"90.1"`, `"91"`)},
		{send + "location", "", to + `"latitude":"1","longitude":VALUE}`, "longitude", badDegrees},
		{send + "location", "", to + `"latitude":"x","longitude":"1","title":VALUE}`, "title", optional(100)},
		{send + "poll", "", to + `"title":VALUE,"options":["a","b"]}`, "title", text(255)},
		{send + "poll", "", to + `"title":"x","options":VALUE}`, "options", []string{`null`, `1`, `"a,b"`, `{}`, `[]`, `["a"]`,
			`["1","2","3","4","5","6","7","8","9","10","11","12","13"]`}},
		{send + "poll", "", to + `"title":"x","options":["a",VALUE]}`, "options.1", []string{`1`, `null`, `[]`, `{}`, `""`, `"a"`, long(101)}},
		{send + "poll", "", to + `"title":"x","options":["a","b"],"is_multiple_answer":VALUE}`, "is_multiple_answer", badBooleans},
		{send + "pool", "global", to + `"pools":VALUE}`, "pools", []string{`null`, `1`, `"x"`, `{}`, `[]`, `[` +
			strings.Repeat(`{"type":"text","data":["x"]},`, 30) + `{"type":"text","data":["x"]}]`, `[` +
			strings.Repeat(`{"type":"text","data":["1","2","3","4","5","6"]},`, 16) + `{"type":"text","data":["1","2","3","4","5"]}]`}},
		{send + "pool", "global", to + `"pools":[VALUE]}`, "pools.0", []string{`1`, `null`, `"x"`, `[]`}},
		{send + "pool", "global", to + `"pools":[{"type":VALUE,"data":["x"]}]}`, "pools.0.type", []string{`null`, `1`, `"TEXT"`, `"location"`,
			`"poll"`, `""`, `[]`}},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":VALUE}]}`, "pools.0.data", []string{`null`, `1`, `"x"`, `[]`, `true`,
			`["1","2","3","4","5","6","7","8","9","10","11"]`}},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":["never sent",VALUE]}]}`, "pools.0.data.1", []string{`1`, `null`, `""`,
			`[]`, `{}`, long(4097)}},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":["never sent"]},{"type":"text","data":{"message":VALUE}}]}`,
			"pools.1.data.message", text(4096)},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":["never sent"]},{"type":"image","data":[VALUE]}]}`, "pools.1.data.0",
			badAddress},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":["never sent"]},{"type":"file","data":{"file":{"url":VALUE}}}]}`,
			"pools.1.data.file.url", badAddress},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":["never sent"]},{"type":"voice","data":{"audioUrl":VALUE}}]}`,
			"pools.1.data.audioUrl", badAddress},
		{send + "pool", "global", to + `"pools":[{"type":"text","data":{"message":"never sent","reply_to":VALUE}}]}`, "pools.0.data.reply_to",
			badReplies},
		{"POST /api/otp/link/request", "", `{"contact_id":VALUE,"expires":60}`, "contact_id", badContacts},
		{"POST /api/otp/link/request", "", to + `"expires":VALUE}`, "expires", append(slices.Clone(badNumbers), `null`, `59`, `86401`, `60.5`)},
		{"POST /api/otp/link/request", "", to + `"expires":60,"name":VALUE}`, "name", append(optional(60), `"a\u0007"`, `"a\u202e"`,
			`"https://x.test"`, `"12345"`)},
		{"POST /api/otp/link/request", "", to + `"expires":60,"message":VALUE}`, "message", []string{`1`, `"x"`, `[]`, `true`}},
		{"POST /api/otp/link/request", "", to + `"expires":60,"message":{"prompt":VALUE,"success":"s","failed":"f","expired":"e"}}`,
			"message.prompt", append(text(1024), `"\u001b[31m"`, `"\u2066"`)},
		{"POST /api/otp/link/global", "global", to + `"expires":60,"message":{"prompt":"p","success":"s","failed":"f","expired":VALUE}}`,
			"message.expired", text(1024)},
		{"POST /api/otp/link/request", "", to + `"expires":60,"callback":{"success":VALUE,"failed":"https://x.test"}}`, "callback.success",
			badAddress},
		{"POST /api/otp/link/global", "global", to + `"expires":60,"callback":{"success":"https://x.test","failed":VALUE}}`, "callback.failed",
			badAddress},
		{"PUT /api/send-message/reaction", "", `{"message_id":VALUE,"reaction":"👍"}`, "message_id", badMessages},
		{"PUT /api/send-message/reaction", "", `{"message_id":"3EB0","reaction":VALUE}`, "reaction", []string{`null`, `1`, `[]`, `{}`, `"x"`,
			`"👍👍"`, `"👍x"`, `" "`, `":)"`, `"1"`, `"\u200d"`, `"e\u0301"`, `"👍 "`}},
		{send + "seen", "", `{"message_id":VALUE}`, "message_id", badMessages},
		{"PUT /api/send-message/star", "", `{"message_id":VALUE,"starred":true}`, "message_id", badMessages},
		{"PUT /api/send-message/star", "", `{"message_id":"3EB0","starred":VALUE}`, "starred", append(slices.Clone(badBooleans), `null`)},
		{"POST /api/groups/create", "", `{"name":VALUE,"participants":[{"id":"6281234567890@c.us"}]}`, "name", text(100)},
		{"POST /api/groups/create", "", `{"name":"x","participants":VALUE}`, "participants", []string{`null`, `1`, `{}`, `[]`, `"x"`, `[` +
			strings.Repeat(`1,`, 1024) + `1]`}},
		{"POST /api/groups/create", "", `{"name":"x","participants":[VALUE]}`, "participants.0", []string{`1`, `null`, `"6281234567890"`,
			`"6281234567890@g.us"`, `[]`}},
		{"POST /api/groups/create", "", `{"name":"x","participants":[{"id":VALUE}]}`, "participants.0.id", badContacts},
		{phones, "", `{"number":VALUE}`, "number", []string{`1`, `[]`, `{}`, `""`, `"x"`, `"0"`, `"++62"`, `"` + strings.Repeat("1", 51) + `"`}},
		{phones, "", `{"name":VALUE}`, "name", optional(100)},
		{phones + "/6281234567890/send", "", `{"type":VALUE,"message":"never said"}`, "type", []string{`null`, `1`, `""`, `"TEXT"`, `"poll"`,
			`[]`}},
		{phones + "/6281234567890/send", "", `{"type":"text","message":VALUE}`, "message", text(4096)},
		{phones + "/6281234567890/send", "", `{"type":"reaction","message_id":VALUE,"reaction":"👍"}`, "message_id", badMessages},
		{phones + "/6281234567890/send", "", `{"type":"delete","message_id":VALUE}`, "message_id", badMessages},
		{phones + "/6281234567890/send", "", `{"type":"vote","message_id":VALUE,"options":["a"]}`, "message_id", badMessages},
		{phones + "/6281234567890/send", "", `{"type":"vote","message_id":"3EB0","options":VALUE}`, "options", []string{`null`, `1`, `"a"`,
			`{}`}},
		{phones + "/6281234567890/send", "", `{"type":"image","file":{"url":VALUE}}`, "file.url", badAddress},
		{phones + "/6281234567890/read", "", `{"message_id":VALUE}`, "message_id", badMessages[1:]},
		{phones + "/6281234567890/open", "", `{"link":VALUE}`, "link", append(slices.Clone(badStrings), `null`, `""`, `"x"`,
			`"https://wa.me/1"`, `"%zz"`, `"https://wa.me/1?text="`, long(8193))},
		{"PATCH /api/sandbox/phones/6281234567890", "", `{"online":VALUE}`, "online", badBooleans},
		{"PATCH /api/sandbox/phones/6281234567890", "", `{"reads":VALUE}`, "reads", []string{`1`, `""`, `"NEVER"`, `[]`, `true`}},
		{"PATCH /api/sandbox/phones/6281234567890", "", `{"delay_ms":VALUE}`, "delay_ms", []string{`"1"`, `-1`, `60001`, `1.5`, `1e400`, `[]`}},
		{"PATCH /api/sandbox/phones/6281234567890", "", `{"name":VALUE}`, "name", append(slices.Clone(badStrings), long(101))},
		{"POST /api/sandbox/faults", "", `{"fault":VALUE}`, "fault", []string{`null`, `1`, `""`, `"REFUSE"`, `"explode"`, `[]`, long(51)}},
		{"POST /api/sandbox/faults", "", `{"fault":"refuse","times":VALUE}`, "times", append(slices.Clone(badNumbers), `1001`)},
		{"POST /api/sandbox/faults", "", `{"fault":"refuse","to":VALUE}`, "to", []string{`1`, `""`, `"x"`, `[]`, long(51)}},
		{"POST /api/sandbox/faults", "", `{"fault":"refuse","type":VALUE}`, "type", []string{`1`, `""`, `"x"`, `[]`, long(51)}},
		{"POST /api/sandbox/faults", "", `{"fault":"refuse","reason":VALUE}`, "reason", optional(200)},
		{"POST /api/sandbox/clock", "", `{"advance":VALUE}`, "advance", append(slices.Clone(badNumbers), `null`, `31622401`)},
		{manage + "channels", "admin", `{"code":VALUE}`, "code", append(slices.Clone(badStrings), `null`, `""`, `"demo"`, `"A"`, `"-a"`,
			`"a b"`, `"é"`, `"a/b"`, `".."`, `"a\n"`, `"*global"`, `"`+strings.Repeat("a", 33)+`"`)},
		{manage + "channels", "admin", `{"code":"mallory","network":VALUE}`, "network", []string{`1`, `""`, `"SANDBOX"`, `"telegram"`, `[]`}},
		{manage + "channels", "admin", `{"code":"mallory","name":VALUE}`, "name", optional(60)},
		{manage + "channels", "admin", `{"code":"mallory","settings":VALUE}`, "settings", []string{`1`, `"x"`, `[]`, `true`}},
		{manage + "channels", "admin", `{"code":"mallory","settings":{"ttl":VALUE}}`, "settings.ttl", []string{`1`, `""`, `"x"`, `"0s"`,
			`"-1h"`, `"721h"`, `"1"`, `"99999999999999h"`, `[]`}},
		{manage + "channels", "admin", `{"code":"mallory","settings":{"pace":VALUE}}`, "settings.pace", []string{`1`, `""`, `"x"`, `"-1s"`,
			`"2h"`}},
		{manage + "channels", "admin", `{"code":"mallory","settings":{"retention":VALUE}}`, "settings.retention", []string{`1`, `""`, `"x"`,
			`"-1s"`, `"9999999h"`}},
		{manage + "channels", "admin", `{"code":"mallory","settings":{"allow_only":VALUE}}`, "settings.allow_only", []string{`1`, `"x"`, `{}`,
			`[` + strings.Repeat(`1,`, 1000) + `1]`}},
		{manage + "channels", "admin", `{"code":"mallory","settings":{"allow_only":[VALUE]}}`, "settings.allow_only.0",
			slices.DeleteFunc(slices.Clone(badContacts), func(bad string) bool { return bad == `"6281234567890@g.us"` })}, // groups too
		{"PATCH /api/manage/channels/demo", "admin", `{"name":VALUE}`, "name", optional(60)},
		{"PATCH /api/manage/channels/demo", "admin", `{"name":"Mallory","settings":{"ttl":VALUE}}`, "settings.ttl", []string{`1`, `"x"`}},
		{manage + "tokens", "admin", `{"kind":VALUE}`, "kind", []string{`null`, `1`, `""`, `"ADMIN"`, `"root"`, `[]`}},
		{manage + "tokens", "admin", `{"kind":"channel","channel":VALUE}`, "channel", append(slices.Clone(badStrings), `null`, `""`, `"nope"`,
			`"DEMO"`, `"demo "`, long(33))},
		{manage + "tokens", "admin", `{"kind":"admin","channel":VALUE}`, "channel", []string{`"demo"`, `1`}},
		{manage + "tokens", "admin", `{"kind":"admin","name":VALUE}`, "name", optional(100)},
		{manage + "tokens", "admin", `{"kind":"admin","expires_at":VALUE}`, "expires_at", []string{`1`, `""`, `"x"`, `"tomorrow"`,
			`"2020-01-01T00:00:00Z"`, `"2999-13-01T00:00:00Z"`, `"2999-01-01"`, `4102444800`, `[]`}},
	}
	for path, rest := range map[string]string{
		send + "text": `"message":"x"`, send + "image": `"file":{"url":"https://parley.invalid/a.png"}`, send +
			"video": `"videoUrl":"https://parley.invalid/a.mp4"`, send + "file": `"file":{"url":"https://parley.invalid/a"}`,
		send + "sticker": `"file":{"url":"https://parley.invalid/a"}`,
		send + "voice":   `"audioUrl":"https://parley.invalid/a.ogg"`, send + "location": `"latitude":"1","longitude":"1"`, send +
			"poll": `"title":"x","options":["a","b"]`, send + "typing": `"x":1`, send + "stop-typing": `"x":1`,
		"POST /api/chat/archive": `"x":1`, "POST /api/chat/un-archive": `"x":1`,
	} {
		table = append(table, fieldCase{path, "", `{"contact_id":VALUE,` + rest + `}`, "contact_id", append(slices.Clone(badContacts),
			map[bool][]string{true: {`"6289999999999@c.us"`}}[strings.Contains(path, "/chat/")]...)})
	}
	table = append(table, fieldCase{send + "pool", "global", `{"contact_id":VALUE,"pools":[{"type":"text","data":["never sent"]}]}`,
		"contact_id", badContacts})
	for _, c := range table {
		method, path, _ := strings.Cut(c.path, " ")
		for _, value := range c.values {
			cases = append(cases, hostile{name: fmt.Sprintf("field %s = %.60s", c.field, value), method: method, path: path, as: c.as,
				header: []string{asJSON},
				body:   strings.ReplaceAll(c.body, "VALUE", value), want: 422, field: c.field})
		}
	}
	return append(cases, everythingWrong()...)
}

// everythingWrong checks that all wrong fields are reported at once.
func everythingWrong() (cases []hostile) {
	bodies := map[string]string{
		"/api/send-message/text":     `{"contact_id":1,"message":2,"reply_to":3,"linkPreview":4,"linkPreviewHighQuality":5}`,
		"/api/send-message/image":    `{"contact_id":1,"caption":2,"file":{"url":3,"filename":4,"mimeType":5},"reply_to":6}`,
		"/api/send-message/location": `{"contact_id":1,"latitude":2,"longitude":3,"title":4,"reply_to":5}`,
		"/api/send-message/poll":     `{"contact_id":1,"title":2,"options":[3,4],"is_multiple_answer":5,"reply_to":6}`,
	}
	fields := map[string][]string{
		"/api/send-message/text":     {"contact_id", "message", "reply_to", "linkPreview", "linkPreviewHighQuality"},
		"/api/send-message/image":    {"contact_id", "caption", "file.url", "file.filename", "file.mimeType", "reply_to"},
		"/api/send-message/location": {"contact_id", "latitude", "longitude", "title", "reply_to"},
		"/api/send-message/poll":     {"contact_id", "title", "options.0", "options.1", "is_multiple_answer", "reply_to"},
	}
	for _, path := range slices.Sorted(maps.Keys(bodies)) {
		for _, field := range fields[path] {
			cases = append(cases, hostile{name: "everything wrong", method: "POST", path: path, header: []string{asJSON}, body: bodies[path],
				want: 422, field: field})
		}
	}
	return cases
}
