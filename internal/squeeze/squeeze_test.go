package squeeze_test

import (
	"bytes"
	"testing"

	"parley/internal/squeeze"
)

func TestJS(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"nothing":                 {"", ""},
		"only a comment":          {"// nothing here\n", ""},
		"comments":                {"/** What it is. */\nconst a = 1; // one\nconst b /* two */ = 2;\n", "const a=1;\nconst b=2;"},
		"a comment between words": {"typeof/**/x; return/*\n*/x", "typeof x;return\nx"},
		"indentation":             {"function f() {\n  a();\n\n  b();\n}\n", "function f(){\na();\nb();}"},
		"imports":                 {"import { a, b } from './x.js';\nimport c from './y.js';", "import{a,b}from'./x.js';\nimport c from'./y.js';"},
		"lines that go on":        {"const a = [\n  b,\n  c,\n];\nx = y\n  ? z\n  : w\n  || v;", "const a=[b,c,];\nx=y?z:w||v;"},
		"chains":                  {"a\n  .b()\n  ?.c();", "a.b()?.c();"},
		"carriage returns":        {"a;\r\n  b;\r\n", "a;\nb;"},

		"a line break that ends a statement": {"a = b\n(c)\nd\n[e]\n`f`\n", "a=b\n(c)\nd\n[e]\n`f`"},
		"a line break after return":          {"return\nx\nbreak\ny", "return\nx\nbreak\ny"},
		"a line break before ++":             {"a\n++\nb", "a\n++\nb"},
		"a line break before a fraction":     {"a\n.5.toFixed()", "a\n.5.toFixed()"},
		"a line break in a comment":          {"a = b /* \n */ c = d", "a=b\nc=d"},
		"a class without semicolons":         {"class A {\n  x\n  *y() {}\n  static\n  z\n}", "class A{\nx\n*y(){}\nstatic\nz}"},

		"words":             {"const  x = a  in  b;\nnew  X", "const x=a in b;\nnew X"},
		"signs that double": {"a + +b - -c + ++d - --e; a++ + b", "a+ +b- -c+ ++d- --e;a++ +b"},
		"numbers":           {"1 .toFixed(); 1.5.toFixed(); 1_000 / 2e-3 / .5", "1 .toFixed();1.5.toFixed();1_000/2e-3/.5"},
		"a closing comment": {"a < !--b", "a< !--b"},

		"strings":                       {`a = 'x // y  "' + "/* '  */" + '\'  \\' ;`, `a='x // y  "'+"/* '  */"+'\'  \\';`},
		"a string of two lines":         {"a = 'x \\\n  y'  ;", "a='x \\\n  y';"},
		"an expression after a bracket": {"f( /[/'\"  ]  /g , /\\/  /u )", "f(/[/'\"  ]  /g,/\\/  /u)"},
		"an expression after a word":    {"return /  '/ ; case /  '/ : x = y  of /  '/", "return/  '/;case/  '/:x=y of/  '/"},
		"an expression after a head":    {"if (a) /  '/.test(b)", "if(a)/  '/.test(b)"},
		"an expression and a word":      {"/a/g  in  b", "/a/g in b"},
		"a division":                    {"a / b / c; (a) / b / c; a[0] / b / c; a++ / b / c", "a/b/c;(a)/b/c;a[0]/b/c;a++/b/c"},
		"a division after a property":   {"a.return / b / c; a.if(b) / c / d", "a.return/b/c;a.if(b)/c/d"},
		"a division of an expression":   {"a / /  b/.length", "a/ /  b/.length"},

		"templates":           {"a = `x  // ${ b  +  `y  ${ { c : 1 }.c }` }\n  z`  ;", "a=`x  // ${b+`y  ${{c:1}.c}`}\n  z`;"},
		"a backquote":         {"a = `x \\`  \\${  y `  ;", "a=`x \\`  \\${  y `;"},
		"a dollar":            {"a = `$  $$ ${ b }$`", "a=`$  $$ ${b}$`"},
		"a tag of others":     {"x.html`\n  <a>`", "x.html`\n  <a>`"},
		"no tag":              {"return `\n  <a>`", "return`\n  <a>`"},
		"what it cannot read": {"a  =  'x", "a  =  'x"},
		"brackets that cross": {"( a  ]", "( a  ]"},
		"an open template":    {"a  =  `x ${ b", "a  =  `x ${ b"},
		"an open comment":     {"a  /* b", "a  /* b"},
		"a decorator":         {"@x  class  A {}", "@x  class  A {}"},
		"another line break":  {"a // b\u2028  c", "a // b\u2028  c"},
	} {
		t.Run(name, func(t *testing.T) { same(t, squeeze.JS, c.src, c.want) })
	}
}

// TestMarkup: in a template for htm white space goes where htm drops it, and nowhere else.
func TestMarkup(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"between tags":            {"\n  <a>\n    <b></b>\n  </a>\n", "<a><b></b></a>"},
		"around a text":           {"<a>\n  one two\n  </a>", "<a>one two</a>"},
		"in a text":               {"<a> one\n  two </a>", "<a> one\n  two </a>"},
		"blanks on a line":        {"<a> <b/> ${x} ${y}  </a>", "<a> <b/> ${x} ${y}  </a>"},
		"around what is inserted": {"<a>\n  ${x}\n  and ${y}\n</a>", "<a>${x}and ${y}</a>"},
		"nothing but space":       {"\n  ", ""},
		"in a tag":                {"<a\n    b=${x}   c\n    ...${y}\n  >", "<a b=${x} c ...${y}>"},
		"at the end of a tag":     {"<a b />\n<${C} d=${x} /><e f=g /><h i=\"j\" />", "<a b/><${C} d=${x}/><e f=g/><h i=\"j\"/>"},
		"in a value":              {"<a b=\"c  >\n  d ${x}  e\"   f='  \"  '>", "<a b=\"c  >\n  d ${x}  e\" f='  \"  '>"},
		"a slash in a value":      {"<a b=/c/d  e >", "<a b=/c/d e>"},
		"a bracket in a text":     {"<a>1 > 0  '  </a  >", "<a>1 > 0  '  </a>"},
		"in a nested one":         {"<a>\n  ${x.map((y) => html`\n    <b>${ y }</b>`)}\n</a>", "<a>${x.map((y)=>html`<b>${y}</b>`)}</a>"},
		"no name":                 {"< />", "< />"},
		"a space of others":       {"<a>\n  \u00a0b·\n  <b>…\n</b></a>", "<a>\n\u00a0b·\n<b>…\n</b></a>"},
		"an escape":               {"<a\n  b>${x}\n  \\t${y}\n  <b  c></a>", "<a b>${x}\n  \\t${y}\n  <b  c></a>"},
		"a comment":               {"<a>\n  <!-- b  > \" -->\n  c</a>", "<a>\n  <!-- b  > \" -->\n  c</a>"},
	} {
		t.Run(name, func(t *testing.T) { same(t, squeeze.JS, "html`"+c.src+"`", "html`"+c.want+"`") })
	}
}

func TestCSS(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"nothing":          {"", ""},
		"rules":            {"/* What it is. */\na {\n  color: red;\n  margin: 0 1px\n}\n\nb , c > d { }\n", "a{color:red;margin:0 1px}b,c>d{}"},
		"selectors":        {"a :hover, a:not( .b ) .c + d ~ e [f]  {}", "a :hover,a:not(.b) .c + d ~ e [f]{}"},
		"sums":             {"a { width: calc( 1px + ( 2px - 3px ) * 4 ) !important; }", "a{width:calc(1px + (2px - 3px) * 4)!important;}"},
		"strings":          {`a::after { content: "/*  \"  ;" ; }`, `a::after{content:"/*  \"  ;";}`},
		"media":            {"@media (width > 1px) and (hover: hover) { a { b: c } }", "@media (width>1px) and (hover:hover){a{b:c}}"},
		"a comment inside": {"a/* x */.b, a /* x */ .b, a/* x */{}", "a/**/.b,a .b,a{}"},
		"an open comment":  {"a  {} /* b", "a  {} /* b"},
		"an open string":   {"a  { b: 'c\n' }", "a  { b: 'c\n' }"},
		"an escape":        {`.a\31  b  {}`, `.a\31  b  {}`},
	} {
		t.Run(name, func(t *testing.T) { same(t, squeeze.CSS, c.src, c.want) })
	}
}

// same checks that a file is squeezed as wanted, and that nothing more comes of squeezing that.
func same(t *testing.T, by func([]byte) []byte, src, want string) {
	t.Helper()
	if got := by([]byte(src)); string(got) != want {
		t.Errorf("%q becomes\n%q, want\n%q", src, got, want)
	}
	if again := by([]byte(want)); string(again) != want {
		t.Errorf("then it becomes\n%q", again)
	}
}

func FuzzJS(f *testing.F) {
	for _, seed := range []string{"a = b / c // d\n", "html`\n <a b=${`${c}`} /> `", "if (a) /[/]/.test('\\'')", "a\n.5 + + 1 .b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) { settles(t, squeeze.JS, src) })
}

func FuzzCSS(f *testing.F) {
	for _, seed := range []string{"a /* b */ > c { d: e(f) ; }", "a{b:'c'}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) { settles(t, squeeze.CSS, src) })
}

// settles checks that squeezing makes nothing longer, and changes nothing when it is done twice.
func settles(t *testing.T, by func([]byte) []byte, src []byte) {
	t.Helper()
	once := by(bytes.Clone(src))
	if len(once) > len(src) {
		t.Errorf("%q becomes longer: %q", src, once)
	}
	if twice := by(bytes.Clone(once)); !bytes.Equal(once, twice) {
		t.Errorf("%q becomes %q, then %q", src, once, twice)
	}
}
