package asset

import "testing"

func TestFill(t *testing.T) {
	page := Page(`<a title="{{.Title}}">{{.Text}}{{.Empty}}</a>`)
	values := map[string]string{"Title": `a "quoted" <b>`, "Text": "{{.Title}} & 'more'", "Empty": ""}
	got, err := page.Fill(values)
	want := `<a title="a &#34;quoted&#34; &lt;b&gt;">{{.Title}} &amp; &#39;more&#39;</a>`
	if err != nil || string(got) != want {
		t.Errorf("filled: %s, %v", got, err)
	}
	delete(values, "Text")
	if got, err := page.Fill(values); err == nil {
		t.Errorf("without a value: %s", got)
	}
}
