package sandbox

import (
	"slices"
	"strings"
	"testing"
)

func TestCodes(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"Halo dari parley 👋", nil},
		{"482913", []string{"482913"}},
		{"Your Toko Ayu code is 482913. It works for 5 minutes.", []string{"482913"}},
		{"*482913* is your Toko Ayu code", []string{"482913"}},
		{"*rp8mv* is your Demo verification code", []string{"rp8mv"}},
		{"*222k* is your Demo verification code", []string{"222k"}},
		{"*25kg* is your Demo verification code", []string{"25kg"}},
		{"Kode Anda: 4829", []string{"4829"}},
		{"kode:482913", []string{"482913"}},
		{"code=482913", []string{"482913"}},
		{"OTP 12345678", []string{"12345678"}},
		{"123", nil},
		{"123456789", nil}, // too long for a code
		{"Order 20261115 confirmed. Your code is 482913.", []string{"482913", "20261115"}},
		{"482913, 482913 and again 482913", []string{"482913"}},
		{"１２３４５６", nil},

		// letters and digits
		{"Login Toko Ayu K7QM3XPBT4W9H", []string{"K7QM3XPBT4W9H"}},
		{"K7QM", []string{"K7QM"}},
		{"code K7QM3XPBT4W9HZ is too long", nil},
		{"Your code is k7qm3x.", []string{"k7qm3x"}},
		{"kqmbx7 is your Toko Ayu code", []string{"kqmbx7"}},
		{"Your code:\nkqmbx7\nDo not share it.", []string{"kqmbx7"}},
		{"the iphone15 has a code", nil},

		// letters alone
		{"Your Toko Ayu code is KXQMBT. Valid for 5 minutes.", []string{"KXQMBT"}},
		{"Kode Toko Ayu Anda adalah kxqmbt.", []string{"kxqmbt"}},
		{"*kxqmbt* is your code", []string{"kxqmbt"}},
		{"kxqmbt is your Toko Ayu code.", []string{"kxqmbt"}},
		{"KXQMBT", nil}, // a word, for all we know
		{"Your code is valid for 5 minutes.", nil},
		{"Never share your code: it is secret", nil},
		{"This is your code: 4829", []string{"4829"}},
		{"here is your code: 4829", []string{"4829"}},
		{"PROMO HARI INI", nil},
		{"Masukkan kode PROMO", nil},

		// not codes
		{"Call +62 812-3456-7890", nil},
		{"Call 0812 3456 7890 or 0812-3456-7890", nil},
		{"6281234567890", nil},
		{"Total Rp 150.000, Rp150000, IDR 250000, $1234, 12,500 or 50000 rupiah", nil},
		{"Diskon 50000 rb, 1500,- dan 2000%", nil},
		{"On 2026-11-15, 15/11/2026 or 15 November 2026 at 12:30", nil},
		{"Pi is 3.1415", nil},
		{"Order #123456 and INV-20261115-0001", nil},
		{"See https://example.com/r/482913?c=K7QM3X", nil},
		{"Mail ayu4711@example.com", nil},
		{"photo_2024.png and report2024.pdf", nil},
		{"500GB and 1200ML", nil},
		{"Kode 482913 berlaku sampai 12:30, hubungi +62 811 0000 0001", []string{"482913"}},
	} {
		if got := Codes(test.text); !slices.Equal(got, test.want) {
			t.Errorf("Codes(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{"Your code is 482913.", "*kxqmbt* is your code", "https://example.com/(a).",
		"+62 812-3456-7890", "\x00#’1234", "é1234\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		codes := Codes(text)
		for i, code := range codes {
			if len(code) < minCode || len(code) > maxCode || !strings.Contains(text, code) || slices.Contains(codes[:i], code) {
				t.Errorf("Codes(%q) = %q", text, codes)
			}
		}
	})
}
