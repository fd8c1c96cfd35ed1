package browsertest

import (
	_ "embed"
	"fmt"
	"strings"
)

// axe checks the accessibility of a page. The folder axe has the unchanged original.
//
//go:embed axe/axe.min.js
var axe string

// violation is a rule that a page breaks, and where.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible fails the test where the page as it is now breaks a rule of WCAG 2.2, level AA, or a habit
// that axe knows to be good.
func (p *tab) accessible() {
	p.t.Helper()
	p.obeys(`['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']`)
}

// visible is accessible for the rules about colours, which are all that a theme changes.
func (p *tab) visible() {
	p.t.Helper()
	p.obeys(`{type: 'rule', values: ['color-contrast', 'link-in-text-block']}`)
}

// obeys fails the test where the page as it is now breaks one of the given rules.
func (p *tab) obeys(rules string) {
	p.t.Helper()
	if !eval[bool](p, `'axe' in window`) {
		eval[any](p, axe+"; null")
	}
	// What moves is looked at when it has come to rest: half of a fade has half of the contrast.
	eval[any](p, `Promise.all(document.getAnimations().filter((a) => a.effect?.getComputedTiming().iterations !== Infinity)
		.map((a) => a.finished.catch(() => {}))).then(() => null)`)
	found := eval[[]violation](p,
		`axe.run(document, {resultTypes: ['violations'], runOnly: `+rules+`}).then((r) => r.violations)`)
	for _, v := range found {
		var where []string
		for _, n := range v.Nodes {
			where = append(where, fmt.Sprintf("  %s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    ")))
		}
		p.t.Errorf("%s: %s\n%s", v.ID, v.Help, strings.Join(where, "\n"))
	}
}
