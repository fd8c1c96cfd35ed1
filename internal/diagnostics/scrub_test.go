package diagnostics

import "testing"

func TestScrub(t *testing.T) {
	for sentence, want := range map[string]string{
		"":                                  "",
		"WORKING since 2026-11-15 08:30:00": "WORKING since 2026-11-15 08:30:00",
		"sqlite /var/lib/parley/parley.db 1.2 MB, free disk 5.3 GB":       "sqlite /var/lib/parley/parley.db 1.2 MB, free disk 5.3 GB",
		"http://127.0.0.1:7275 is ready, pid 4711":                        "http://127.0.0.1:7275 is ready, pid 4711",
		"https://ayu:s3cret@hooks.example.com/T0/B1?k=v  off since 12:00": "https://hooks.example.com  off since 12:00",
		"See https://example.com/a, then https://example.com/b.":          "See https://example.com, then https://example.com.",
		"socks5://u:p@10.0.0.1:1080":                                      "socks5://10.0.0.1:1080",
		"an address: https://exa mple and ://":                            "an address: https://exa mple and ://",
		"https://%zz/":                                                    "https://unknown",
		"+62 812-3456-7890 wrote":                                         "…890 wrote",
		"true_6281234567890@c.us_3EB0":                                    "true_…890@c.us_3EB0",
		"channel 6281234567890":                                           "channel …890",
		"parley deliveries list --webhook whk_12345678901234567890":       "parley deliveries list --webhook whk_12345678901234567890",
		"eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJkZW1vIn0.c2lnbmF0dXJl is wrong":  "[secret] is wrong",
		"signed with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw":              "signed with [secret]",
	} {
		if got := scrub(sentence); got != want {
			t.Errorf("%q\n became %q,\n want   %q", sentence, got, want)
		}
	}
}

func TestProblemKind(t *testing.T) {
	for problem, want := range map[string]string{
		"": "", "dns: The host name could not be looked up.": "dns", "http_status: The server answered 500.": "http_status",
		"Something else: here": "other", "gone": "other", "https://example.com": "other",
	} {
		if got := problemKind(problem); got != want {
			t.Errorf("%q is %q, want %q", problem, got, want)
		}
	}
}
