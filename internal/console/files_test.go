package console

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWhatPagesLoad: every page of the table is found, and all that it names is there.
func TestWhatPagesLoad(t *testing.T) {
	t.Parallel()
	f, err := newFiles(embedded)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := embedded.ReadFile("ui/routes.js")
	if err != nil {
		t.Fatal(err)
	}
	if listed := bytes.Count(routes, []byte("import(")); len(f.pages) != listed {
		t.Errorf("%d pages of %d are known", len(f.pages), listed)
	}
	for _, p := range f.pages {
		names := append(append([]string{}, p.imports...), p.sheets...)
		for _, table := range p.texts {
			for _, language := range languages {
				names = append(names, "i18n/"+language+"/"+table+".json")
			}
		}
		for _, name := range names {
			if f.byPath[name] == nil {
				t.Errorf("the page at %q loads %s, which is not there", p.address, name)
			}
		}
	}
	for address, want := range map[string]string{
		"": "overview", "channels": "channels", "channels/demo": "channel", "channels/demo/pair": "channel", "phone": "phone",
		"phone/6281234567890": "phone", "webhooks/x": "webhooks", "login": "login", "tokens/x": "", "nothing": "", "channels/a/b/c": "",
	} {
		p, found := f.pageAt(address)
		if want == "" {
			want = "notfound"
		} else if !found {
			t.Errorf("there is no page at %q", address)
		}
		if p.entry != "pages/"+want+".js" {
			t.Errorf("at %q there is %s", address, p.entry)
		}
	}
}

// BenchmarkFiles is what the first visitor of a server waits for, if it is asked for everything.
func BenchmarkFiles(b *testing.B) {
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			if _, err := newFiles(embedded); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("made and compressed", func(b *testing.B) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		for b.Loop() {
			f, err := newFiles(embedded)
			if err != nil {
				b.Fatal(err)
			}
			for _, file := range f.byPath {
				file.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	})
}
