package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// hostile are texts that strangers could send so that a careless page runs them, loads something for
// them, or comes apart. Each that runs sets pwned.
var hostile = []string{
	`<script>pwned=1</script>`,
	`<script src=//127.0.0.1:1/x.js></script>`,
	`<img src=x onerror=pwned=1>`,
	`<img src=x onerror="window.pwned=1">`,
	`<IMG SRC=x ONERROR=pwned=1>`,
	`<svg onload=pwned=1>`,
	`<svg><script>pwned=1</script></svg>`,
	`<svg/onload=pwned=1//`,
	`<math><mtext></table><img src=x onerror=pwned=1>`,
	`<iframe srcdoc="<script>parent.pwned=1</script>">`,
	`<iframe src="javascript:parent.pwned=1">`,
	`<object data="javascript:pwned=1">`,
	`<embed src="javascript:pwned=1">`,
	`<a href="javascript:pwned=1">klik</a>`,
	`javascript:pwned=1`,
	`[klik](javascript:pwned=1)`,
	`<form action="javascript:pwned=1"><button>OK</button></form>`,
	`<button onclick=pwned=1>OK</button>`,
	`<input autofocus onfocus=pwned=1>`,
	`<details open ontoggle=pwned=1>`,
	`<video><source onerror=pwned=1></video>`,
	`<audio src=x onerror=pwned=1>`,
	`<body onload=pwned=1>`,
	`<marquee onstart=pwned=1>`,
	`<style>*{background:url(//127.0.0.1:1/x)}</style>`,
	`<style>@import "//127.0.0.1:1/x.css"</style>`,
	`<link rel=stylesheet href=//127.0.0.1:1/x.css>`,
	`<base href=//127.0.0.1:1/>`,
	`<meta http-equiv=refresh content="0;url=//127.0.0.1:1/">`,
	`<div style="position:fixed;inset:0;background:red">`,
	`<template><script>pwned=1</script></template>`,
	`<noscript><p title="</noscript><img src=x onerror=pwned=1>">`,
	`<!--><img src=x onerror=pwned=1>-->`,
	`<![CDATA[<img src=x onerror=pwned=1>]]>`,
	`"><script>pwned=1</script>`,
	`'><script>pwned=1</script>`,
	`</title><script>pwned=1</script>`,
	`</textarea><script>pwned=1</script>`,
	`</script><script>pwned=1</script>`,
	`" onmouseover="pwned=1`,
	`' onfocus='pwned=1' autofocus='`,
	"`${pwned=1}`",
	`${pwned=1}`,
	`{{pwned=1}}`,
	`{{constructor.constructor('pwned=1')()}}`,
	`<${pwned=1} />`,
	`#{pwned=1}`,
	`<%= pwned=1 %>`,
	`');pwned=1;//`,
	`\";pwned=1;//`,
	`\u003cscript\u003epwned=1\u003c/script\u003e`,
	`&lt;script&gt;pwned=1&lt;/script&gt;`,
	`&#60;img src=x onerror=pwned=1&#62;`,
	`%3Cscript%3Epwned=1%3C/script%3E`,
	`{"type":"script","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=pwned=1>"}}}`,
	`hasOwnProperty`,
	`constructor`,
	"\u202Egnp.tnemyap\u202C <b>tebal</b>",
	"\u2066\u2067\u2068 hilang \u2069",
	"a\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308 <i>miring</i> 👩‍👩‍👧‍👦",
}

// TestHostileTexts has strangers write, and call themselves, what would be code. Every page shows it as
// the text that it is. That no page broke its policy is held against it at the end of every test.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	if len(hostile) < 60 {
		t.Fatalf("there are %d texts", len(hostile))
	}
	c := start(t)
	admin := parleytest.As(c.Admin)
	for i, name := range []string{hostile[2], hostile[36], hostile[57]} {
		c.Post("/api/manage/channels", fmt.Sprintf(`{"code":"h%d","name":%s,"network":"sandbox"}`, i, quote(name)), admin).
			Expect(http.StatusCreated)
		c.Post("/api/sandbox/phones", fmt.Sprintf(`{"number":"62812900100%02d","name":%s}`, i, quote(name)))
		c.Phone(fmt.Sprintf("62812900100%02d", i)).Types("Halo")
		c.Post("/api/manage/tokens", `{"kind":"global","name":`+quote(name)+`}`, admin).Expect(http.StatusCreated)
	}
	for _, text := range hostile {
		c.Phone(ayu).Sends(`{"type":"text","message":` + quote(text) + `}`).Expect(http.StatusOK)
	}
	message := c.say("text", ayu, `"message":`+quote(hostile[3]))

	p := c.open("/phone/" + ayu + "?channel=demo")
	p.click("button", "Show earlier messages")
	for _, text := range hostile {
		p.until(text+" is shown as text", "document.querySelector('[role=log]').textContent.includes("+quote(text)+")")
	}
	p.harmless()
	for _, path := range []string{"/", "/channels", "/channels/h0", "/channels/h1", "/channels/h2", "/messages", "/messages?open=" +
		message + "&channel=demo", "/messages?q=" + "%3Cimg+src%3Dx+onerror%3Dpwned%3D1%3E",
		"/conversations", "/conversations/demo/" + ayu + "@c.us", "/contacts/" + ayu,
		"/phone", "/otp", "/webhooks", "/tokens", "/api-recipes", "/settings", "/%3Cimg%20src=x%20onerror=pwned=1%3E",
		"/login?next=javascript:pwned=1"} {
		p.allow("404")
		p.visit(path)
		p.rest()
		p.harmless()
	}
}

// harmless makes sure that nothing of what strangers wrote became a part of the page.
func (p *tab) harmless() {
	p.t.Helper()
	if eval[bool](p, `'pwned' in window`) {
		p.fail("a text was run")
	}
	if found := eval[string](p, `[...document.body.querySelectorAll('script:not([src]), img[src="x"], iframe, object, embed, marquee, `+
		`base, style, [onerror], [onload], [href^="javascript:"]')].map((e) => e.outerHTML).join()`); found != "" {
		p.fail("a text became %s", found)
	}
}
