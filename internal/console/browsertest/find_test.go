package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inputs are the roles of what can be filled in.
var inputs = []string{"textbox", "searchbox", "combobox", "spinbutton", "checkbox", "radio", "switch", "slider", "listbox"}

// find waits for something of a role and a name, as a screen reader would call it, and returns it. A
// name that ends in … is only how it begins; the empty one is any.
func (p *tab) find(role, name string) cdp.BackendNodeID {
	p.t.Helper()
	return p.findAny([]string{role}, name)
}

func (p *tab) findAny(roles []string, name string) cdp.BackendNodeID {
	p.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		found, err := p.query(roles, name)
		if len(found) > 0 {
			return found[0]
		}
		if time.Now().After(deadline) {
			p.fail("there is no %s called %q (%v). There are:\n%s", strings.Join(roles, " or "), name, err, p.outline(roles))
		}
		p.breathe()
	}
}

// count returns how many things of a role and a name there are now.
func (p *tab) count(role, name string) int {
	p.t.Helper()
	found, err := p.query([]string{role}, name)
	p.must(err)
	return len(found)
}

// lost waits until there is nothing of a role and a name any more.
func (p *tab) lost(role, name string) {
	p.t.Helper()
	for deadline := time.Now().Add(waitLimit); p.count(role, name) > 0; p.breathe() {
		if time.Now().After(deadline) {
			p.fail("there still is a %s called %q", role, name)
		}
	}
}

// query looks once.
func (p *tab) query(roles []string, name string) ([]cdp.BackendNodeID, error) {
	nodes, err := p.nodes()
	if err != nil {
		return nil, err
	}
	var found []cdp.BackendNodeID
	for _, n := range nodes {
		if slices.Contains(roles, text(n.Role)) && called(text(n.Name), name) {
			found = append(found, n.BackendDOMNodeID)
		}
	}
	return found, nil
}

func called(has, want string) bool {
	if begin, cut := strings.CutSuffix(want, "…"); cut {
		return strings.HasPrefix(has, begin)
	}
	return want == "" || has == want
}

// nodes is what a screen reader knows of the page.
func (p *tab) nodes() ([]*accessibility.Node, error) {
	var nodes []*accessibility.Node
	err := do(p.ctx, func(ctx context.Context) error {
		document, _, err := runtime.Evaluate("document").Do(ctx)
		if err != nil {
			return err
		}
		all, err := accessibility.QueryAXTree().WithObjectID(document.ObjectID).Do(ctx)
		for _, n := range all {
			if !n.Ignored {
				nodes = append(nodes, n)
			}
		}
		return err
	})
	return nodes, err
}

// outline lists the elements of some roles, for the message of a failed test.
func (p *tab) outline(roles []string) string {
	nodes, err := p.nodes()
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, n := range nodes {
		if slices.Contains(roles, text(n.Role)) {
			lines = append(lines, fmt.Sprintf("  %s %q", text(n.Role), text(n.Name)))
		}
	}
	return strings.Join(lines, "\n")
}

func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(v.Value, &s) // other kinds of values are no text
	return s
}

// click presses the mouse in the middle of something, once it is at rest and nothing covers it.
func (p *tab) click(role, name string) {
	p.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		at, err := p.middle(p.find(role, name))
		if err == nil {
			p.must(chromedp.Run(p.ctx, chromedp.MouseClickXY(at.X, at.Y)))
			return
		}
		if time.Now().After(deadline) {
			p.fail("the %s called %q cannot be clicked: %v", role, name, err)
		}
		p.breathe()
	}
}

// middle scrolls to something and says where its middle is. It is an error while the page still moves it,
// as a chat does that shows its newest message, or while something else is in front of it.
func (p *tab) middle(node cdp.BackendNodeID) (at struct{ X, Y float64 }, err error) {
	const look = `async function () {
		const frame = () => new Promise(requestAnimationFrame);
		const middle = () => {
			const { x, y, width, height } = [...this.getClientRects()][0] || this.getBoundingClientRect();
			return { X: x + width / 2, Y: y + height / 2 };
		};
		this.scrollIntoViewIfNeeded();
		const was = middle();
		await frame();
		await frame();
		const is = middle();
		if (was.X !== is.X || was.Y !== is.Y) throw new Error('it moves');
		const front = document.elementFromPoint(is.X, is.Y);
		if (!front || !(this.contains(front) || front.contains(this))) throw new Error('behind ' + front?.outerHTML.slice(0, 100));
		return is;
	}`
	err = do(p.ctx, func(ctx context.Context) error {
		object, err := dom.ResolveNode().WithBackendNodeID(node).Do(ctx)
		if err != nil {
			return err
		}
		result, exception, err := runtime.CallFunctionOn(look).WithObjectID(object.ObjectID).WithAwaitPromise(true).WithReturnByValue(true).
			Do(ctx)
		switch {
		case err != nil:
			return err
		case exception != nil:
			return exception
		}
		return json.Unmarshal(result.Value, &at)
	})
	return at, err
}

// fill replaces the content of the field with a label.
func (p *tab) fill(label, content string) {
	p.t.Helper()
	p.focus(p.findAny(inputs, label))
	p.press("a", input.ModifierCtrl)
	p.press(kb.Delete)
	p.typed(content)
}

// typed writes with the keyboard, wherever the focus is.
func (p *tab) typed(content string) {
	p.t.Helper()
	p.must(do(p.ctx, func(ctx context.Context) error { return input.InsertText(content).Do(ctx) }))
}

// press presses a key, of those in package kb or a letter.
func (p *tab) press(key string, held ...input.Modifier) {
	p.t.Helper()
	p.must(chromedp.Run(p.ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(held...))))
}

func (p *tab) focus(node cdp.BackendNodeID) {
	p.t.Helper()
	p.must(do(p.ctx, func(ctx context.Context) error { return dom.Focus().WithBackendNodeID(node).Do(ctx) }))
}

// on runs a JavaScript function with something as its this, and returns what it returns.
func on[T any](p *tab, role, name, function string) T {
	p.t.Helper()
	node := p.find(role, name)
	var value T
	p.must(do(p.ctx, func(ctx context.Context) error {
		object, err := dom.ResolveNode().WithBackendNodeID(node).Do(ctx)
		if err != nil {
			return err
		}
		result, thrown, err := runtime.CallFunctionOn(function).WithObjectID(object.ObjectID).WithReturnByValue(true).Do(ctx)
		if err != nil {
			return err
		}
		if thrown != nil {
			return thrown
		}
		return json.Unmarshal(result.Value, &value)
	}))
	return value
}

// textOf is what is written in something.
func (p *tab) textOf(role, name string) string {
	p.t.Helper()
	return on[string](p, role, name, `function() { return this.value ?? this.innerText; }`)
}
