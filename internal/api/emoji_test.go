package api

import "testing"

func TestEmoji(t *testing.T) {
	for _, s := range []string{
		"👍", "👍🏽", "❤️", "❤", "😂", "🙏", "🇮🇩", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👨\u200d👩\u200d👧\u200d👦",
		"👩🏻\u200d❤️\u200d💋\u200d👩🏿", "🏳️\u200d🌈", "1️⃣", "#️⃣", "*⃣", "©️", "☺️", "🫠",
		"🧑\u200d💻", "⚽", "🤷🏾\u200d♀️", "🏽",
	} {
		if !isEmoji(s) {
			t.Errorf("%s (%+q) is refused", s, s)
		}
	}
	for _, s := range []string{
		"", "a", "ok", "1", "#", "é", "漢", "👍👍", "👍 ", " 👍", "👍a", "a️", "🇮", "🇮🇩🇮", "\u200d", "️", "👍\n",
		"<b>", "👍\u0301", "→", "1\ufe0f", "٣", "👨\u200da",
	} {
		if isEmoji(s) {
			t.Errorf("%s (%+q) is taken", s, s)
		}
	}
	long := "👨"
	for range 20 {
		long += "\u200d👨"
	}
	if isEmoji(long) {
		t.Error("an endless family is taken")
	}
}
