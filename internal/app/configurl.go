package app

import (
	"cmp"
	"net/url"
	"strings"
)

// PublicURL checks the address at which everybody reaches the server, and takes the slash off its end. It
// has no path: pages and links stand at the root of their host.
func PublicURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", strings.HasSuffix(u.Host, ":"):
		return "", configErrorf("--public-url must be a whole address, such as https://chat.example.com.")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, strings.Contains(text, "#"):
		return "", configErrorf("--public-url must end after the host and its port, as https://chat.example.com does: no user, no query, no " +
			"fragment.")
	case strings.Trim(u.Path, "/") != "":
		return "", configErrorf("--public-url cannot have a path: the console and the pages of links stand at the root of their host. Give " +
			"parley a host of its own, such as https://chat.example.com.")
	}
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme]) // browsers leave it out too
	return u.Scheme + "://" + host, nil
}

// address is where links lead: to where everybody reaches the server if that was said, else to where this
// machine does.
func (s *server) address() string { return cmp.Or(s.cfg.PublicURL, s.url) }
