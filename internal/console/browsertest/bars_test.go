package browsertest

import "testing"

// TestFocusIsNotBehindTheBars moves the focus over pages in a hand: what has it must be seen, and not be hidden
// by the bars at the top and the bottom.
func TestFocusIsNotBehindTheBars(t *testing.T) {
	t.Parallel()
	p := startPairer(t).on(screen{"low", "light", 390, 520, 2})
	for _, path := range []string{"/channels/toko/pair", "/channels/toko", "/settings"} {
		p.visit(path)
		p.live()
		p.rest()
		for _, from := range []string{"0", "document.body.scrollHeight"} {
			hidden := eval[[]string](p, `(() => {
				const hidden = [];
				for (const e of document.querySelectorAll('main a[href], main button, main input, main select, main textarea')) {
					scrollTo(0, `+from+`);
					e.focus();
					if (document.activeElement !== e) continue; // it cannot have the focus
					const { x, y, width, height } = e.getClientRects()[0];
					const front = document.elementFromPoint(x + width / 2, y + height / 2);
					if (front?.closest('.top, .band, .bottom-bar')) hidden.push(e.outerHTML.slice(0, 80));
				}
				return hidden;
			})()`)
			if len(hidden) > 0 {
				t.Errorf("%s, from %s: behind a bar are %q", path, from, hidden)
			}
		}
	}
}
