package api

import "testing"

func TestEmoji(t *testing.T) {
	for _, s := range []string{
		"👍", "👍🏽", "❤️", "❤", "😂", "🙏", "🇮🇩", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👨‍👩‍👧‍👦", "👩🏻‍❤️‍💋‍👩🏿", "🏳️‍🌈", "1️⃣", "#️⃣", "*⃣", "©️", "☺️", "🫠", "🧑‍💻", "⚽", "🤷🏾‍♀️", "🏽",
	} {
		if !isEmoji(s) {
			t.Errorf("%s (%+q) is refused", s, s)
		}
	}
	for _, s := range []string{
		"", "a", "ok", "1", "#", "é", "漢", "👍👍", "👍 ", " 👍", "👍a", "a️", "🇮", "🇮🇩🇮", "‍", "️", "👍\n", "<b>", "👍\u0301", "→", "1\ufe0f", "٣", "👨‍a",
	} {
		if isEmoji(s) {
			t.Errorf("%s (%+q) is taken", s, s)
		}
	}
	long := "👨"
	for range 20 {
		long += "‍👨"
	}
	if isEmoji(long) {
		t.Error("an endless family is taken")
	}
}
