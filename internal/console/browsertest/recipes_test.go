package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestEveryRecipe runs each recipe unchanged.
func TestEveryRecipe(t *testing.T) {
	t.Parallel()
	c := start(t)
	url := parleytest.Files(t)
	files := map[string]map[string]string{
		"Image":      {"Image address": url + "/dot.png"},
		"Voice note": {"Audio address": url + "/hello.ogg"},
		"Pool":       {"Image addresses": url + "/dot.png"},
	}
	p := c.open("/api-recipes")
	recipes := eval[[]string](p, `[...document.querySelectorAll('nav.chips a')].map((a) => a.innerText)`)
	if len(recipes) != 12 {
		t.Errorf("there are %d recipes: %q", len(recipes), recipes)
	}
	for _, name := range recipes {
		p.click("link", name)
		p.until("recipe "+name+" is shown",
			`document.querySelector('main .card h2').innerText === `+quote(name)+` && !document.querySelector('[data-t=answer]')`)
		for label, file := range files[name] {
			p.fill(label, file)
		}
		p.until("there is something to answer", `!document.querySelector('input[list]') || document.querySelector('input[list]').placeholder`)
		p.click("button", "Run")
		p.until("recipe "+name+" has an answer", `document.querySelector('[data-t=answer]')`)
		if answer := eval[string](p, `document.querySelector('[data-t=answer]').innerText`); eval[string](p,
			`document.querySelector('[data-t=answer] .badge').innerText`) != "200" {
			t.Errorf("%s is answered with %s", name, answer)
		}
	}
	c.Phone(ayu).Expect("Halo dari Parley")
	c.Phone(ayu).Expect("Bisa diambil")
}

// TestRecipe shows an answer whole, the request as a program, and what is wrong with a field at the field.
func TestRecipe(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/api-recipes/text")
	p.allow("422")
	p.fill("To", "12")
	p.press(kb.Enter, input.ModifierCtrl)
	p.until("the field is wrong and has the focus",
		`document.activeElement.name === 'contact_id' && document.activeElement.ariaInvalid === 'true'`)
	p.see(`"errors": {`)
	p.fill("To", ayu)
	p.fill("Text", "Rp 5.000, 'murah' <b>")
	p.press(kb.Enter, input.ModifierCtrl)
	p.see(`"success": true`)
	p.click("tab", "curl")
	p.see(`'\''murah'\'' <b>`)
	for _, language := range []string{"JavaScript", "PHP", "Python", "Go"} {
		p.click("tab", language)
		p.see("murah")
	}
	eval[any](p, `document.querySelector('[data-t=answer] summary').click(), null`)
	p.see("x-request-id: ")
	p.accessible()
	p.click("link", "View its timeline")
	p.find("dialog", "")
}
