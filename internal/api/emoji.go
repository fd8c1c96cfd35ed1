package api

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxEmoji is more than any emoji that people can choose has: a family with skin tones takes 41
// bytes.
const maxEmoji = 64

// isEmoji reports whether s is one emoji: a single character as people see it, made of nothing but
// what emojis are made of.
func isEmoji(s string) bool {
	if s == "" || len(s) > maxEmoji {
		return false
	}
	if first, rest, _, _ := uniseg.FirstGraphemeClusterInString(s, -1); first == "" || rest != "" {
		return false
	}
	first, size := utf8.DecodeRuneInString(s)
	switch {
	case first >= '0' && first <= '9', first == '#', first == '*':
		return s[size:] == "\u20e3" || s[size:] == "\ufe0f\u20e3" // a keycap
	case isRegional(first):
		second, n := utf8.DecodeRuneInString(s[size:])
		return isRegional(second) && size+n == len(s) // a flag
	case !unicode.Is(pictographs, first):
		return false
	}
	for _, r := range s[size:] {
		if !unicode.Is(pictographs, r) && !isPart(r) {
			return false
		}
	}
	return true
}

func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// isPart reports whether r only occurs inside of an emoji: joiner, variation selectors and tags.
func isPart(r rune) bool {
	return r == 0x200D || r == 0xFE0F || r == 0xFE0E || r >= 0xE0020 && r <= 0xE007F
}

// pictographs are the characters with the Unicode property Extended_Pictographic, and the five skin
// tones. The property reserves room for emojis to come, so the table does not age.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00A9, 0x00A9, 1}, {0x00AE, 0x00AE, 1}, {0x203C, 0x203C, 1}, {0x2049, 0x2049, 1},
		{0x2122, 0x2122, 1}, {0x2139, 0x2139, 1}, {0x2194, 0x2199, 1}, {0x21A9, 0x21AA, 1},
		{0x231A, 0x231B, 1}, {0x2328, 0x2328, 1}, {0x2388, 0x2388, 1}, {0x23CF, 0x23CF, 1},
		{0x23E9, 0x23F3, 1}, {0x23F8, 0x23FA, 1}, {0x24C2, 0x24C2, 1}, {0x25AA, 0x25AB, 1},
		{0x25B6, 0x25B6, 1}, {0x25C0, 0x25C0, 1}, {0x25FB, 0x25FE, 1}, {0x2600, 0x2605, 1},
		{0x2607, 0x2612, 1}, {0x2614, 0x2685, 1}, {0x2690, 0x2705, 1}, {0x2708, 0x2712, 1},
		{0x2714, 0x2714, 1}, {0x2716, 0x2716, 1}, {0x271D, 0x271D, 1}, {0x2721, 0x2721, 1},
		{0x2728, 0x2728, 1}, {0x2733, 0x2734, 1}, {0x2744, 0x2744, 1}, {0x2747, 0x2747, 1},
		{0x274C, 0x274C, 1}, {0x274E, 0x274E, 1}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1},
		{0x2763, 0x2767, 1}, {0x2795, 0x2797, 1}, {0x27A1, 0x27A1, 1}, {0x27B0, 0x27B0, 1},
		{0x27BF, 0x27BF, 1}, {0x2934, 0x2935, 1}, {0x2B05, 0x2B07, 1}, {0x2B1B, 0x2B1C, 1},
		{0x2B50, 0x2B50, 1}, {0x2B55, 0x2B55, 1}, {0x3030, 0x3030, 1}, {0x303D, 0x303D, 1},
		{0x3297, 0x3297, 1}, {0x3299, 0x3299, 1},
	},
	R32: []unicode.Range32{
		{0x1F000, 0x1F0FF, 1}, {0x1F10D, 0x1F10F, 1}, {0x1F12F, 0x1F12F, 1}, {0x1F16C, 0x1F171, 1},
		{0x1F17E, 0x1F17F, 1}, {0x1F18E, 0x1F18E, 1}, {0x1F191, 0x1F19A, 1}, {0x1F1AD, 0x1F1E5, 1},
		{0x1F201, 0x1F20F, 1}, {0x1F21A, 0x1F21A, 1}, {0x1F22F, 0x1F22F, 1}, {0x1F232, 0x1F23A, 1},
		{0x1F23C, 0x1F23F, 1}, {0x1F249, 0x1F53D, 1}, {0x1F546, 0x1F64F, 1}, {0x1F680, 0x1F6FF, 1},
		{0x1F774, 0x1F77F, 1}, {0x1F7D5, 0x1F7FF, 1}, {0x1F80C, 0x1F80F, 1}, {0x1F848, 0x1F84F, 1},
		{0x1F85A, 0x1F85F, 1}, {0x1F888, 0x1F88F, 1}, {0x1F8AE, 0x1F8FF, 1}, {0x1F90C, 0x1F93A, 1},
		{0x1F93C, 0x1F945, 1}, {0x1F947, 0x1FAFF, 1}, {0x1FC00, 0x1FFFD, 1},
	},
	LatinOffset: 2,
}
