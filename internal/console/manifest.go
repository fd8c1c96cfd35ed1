package console

import (
	"encoding/json"
	"fmt"
	"net/http"

	"parley/internal/asset"
)

// manifestPath is where browsers learn how to install the console as an app. It stays the same from
// version to version, as the app does.
const manifestPath = "manifest.webmanifest"

// manifest is what a browser must know of an app, by the W3C's Web Application Manifest.
type manifest struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Lang        string     `json:"lang"`
	StartURL    string     `json:"start_url"`
	Scope       string     `json:"scope"`
	Display     string     `json:"display"`
	ThemeColour string     `json:"theme_color"`
	Background  string     `json:"background_color"`
	Icons       []icon     `json:"icons"`
	Shortcuts   []shortcut `json:"shortcuts"`
}

type icon struct {
	Src   string `json:"src"`
	Sizes string `json:"sizes"`
	Type  string `json:"type"`
}

// shortcut is a page that the app's menu on the desktop opens at once.
type shortcut struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Icons []icon `json:"icons"`
}

// colours are those of the bands in style.css, so that the frame of an app's window shows too whether
// messages leave this machine.
var colours = map[string]string{"sandbox": "#f5b83d", "live": "#0b5e52"}

const background = "#f5f6f8" // of the pages, while the first is loaded

// serveManifest serves the manifest to whoever asks: browsers do so without cookies.
func (c *Console) serveManifest(w http.ResponseWriter, hr *http.Request) {
	v, err := c.viewFor(hr)
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	words, err := wordsOf(v.Lang)
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	icons := []icon{{Src: "/console/" + v.Build + "/icon-" + v.Band + ".svg", Sizes: "any", Type: contentTypes[".svg"]}}
	body, err := json.Marshal(manifest{
		ID: "/console/", Name: "Parley", Lang: v.Lang, StartURL: "/console/", Scope: "/console/", Display: "standalone",
		ThemeColour: v.Colour, Background: background, Icons: icons,
		// The simulated phone alone, to put beside the program under test.
		Shortcuts: []shortcut{{Name: words["page.phone"], URL: "/console/phone?window=1", Icons: icons}},
	})
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	asset.New("application/manifest+json", asset.Asked, body).ServeHTTP(w, hr)
}

// wordsOf reads the texts that all pages share.
func wordsOf(language string) (map[string]string, error) {
	body, err := embedded.ReadFile("ui/i18n/" + language + "/core.json")
	if err != nil {
		return nil, err
	}
	var words map[string]string
	if err := json.Unmarshal(body, &words); err != nil {
		return nil, fmt.Errorf("read texts in %s: %w", language, err)
	}
	return words, nil
}
