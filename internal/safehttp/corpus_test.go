package safehttp

// hostile lists addresses that lead, or might lead by some reading, to where no caller may send us.
// {p} stands for the port of the canary on loopback.
var hostile = []string{
	// Loopback, as it is written.
	"http://127.0.0.1:{p}/", "http://127.0.0.1:{p}", "HTTP://127.0.0.1:{p}/", "http://127.0.0.2:{p}/", "http://127.255.255.254:{p}/",
	"http://localhost:{p}/", "http://LOCALHOST:{p}/", "http://LocalHost:{p}/", "http://localhost.:{p}/", "http://127.0.0.1.:{p}/",
	"https://127.0.0.1:{p}/", "https://localhost:{p}/", "http://0.0.0.0:{p}/", "http://0.0.0.1:{p}/", "http://0.1.2.3:{p}/",
	// IPv4 in its old spellings, which some resolvers read.
	"http://127.1:{p}/", "http://127.0.1:{p}/", "http://2130706433:{p}/", "http://0x7f000001:{p}/", "http://0X7F000001:{p}/",
	"http://0x7f.1:{p}/", "http://0x7f.0x0.0x0.0x1:{p}/", "http://0177.0.0.1:{p}/", "http://0177.1:{p}/", "http://017700000001:{p}/",
	"http://0:{p}/", "http://0x0:{p}/", "http://00:{p}/", "http://0.0:{p}/", "http://0x7f.0.0.1:{p}/", "http://127.0x0.1:{p}/",
	"http://127.000.000.001:{p}/", "http://127.0.0.01:{p}/", "http://0x07f.0.0.1:{p}/", "http://2130706433.:{p}/",
	"http://127.1.:{p}/", "http://00000000000000000177.0.0.1:{p}/", "http://0x00000000000000007f000001:{p}/", "http://0xa9fea9fe/", "http://2852039166/",
	"http://0251.0376.0251.0376/", "http://025177524776/", "http://0xa9.0xfe.0xa9.0xfe/", "http://169.16689662/", "http://169.254.43518/", "http://169.254.0xa9fe/",
	// Digits and dots of other scripts.
	"http://①②⑦.⓪.⓪.①:{p}/", "http://１２７.０.０.１:{p}/", "http://127。0。0。1:{p}/", "http://127．0．0．1:{p}/", "http://127｡0｡0｡1:{p}/",
	"http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:{p}/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{p}/", "http://ｌｏｃａｌｈｏｓｔ:{p}/", "http://𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽:{p}/", "http://①②⑦.①:{p}/",
	"http://loc\u00adalhost:{p}/", "http://local\u200bhost:{p}/", "http://LOCALHO\u017fT:{p}/", "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/", "http://⑩.⓪.⓪.①/",
	// IPv6.
	"http://[::1]:{p}/", "http://[0:0:0:0:0:0:0:1]:{p}/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/", "http://[::0001]:{p}/", "http://[::]:{p}/",
	"http://[::ffff:127.0.0.1]:{p}/", "http://[::ffff:7f00:1]:{p}/", "http://[::FFFF:127.0.0.1]:{p}/", "http://[0:0:0:0:0:ffff:127.0.0.1]:{p}/", "http://[::ffff:0.0.0.0]:{p}/",
	"http://[::127.0.0.1]:{p}/", "http://[::7f00:1]:{p}/", "http://[::ffff:0:127.0.0.1]:{p}/", "http://[64:ff9b::127.0.0.1]:{p}/", "http://[64:ff9b::7f00:1]:{p}/",
	"http://[64:ff9b:1::7f00:1]:{p}/", "http://[2002:7f00:1::]:{p}/", "http://[2002:7f00:0001::1]:{p}/", "http://[2001:0:7f00:1::]:{p}/", "http://[2001::1]:{p}/",
	"http://[::1%25lo]:{p}/", "http://[::1%lo]:{p}/", "http://[fe80::1%25lo]:{p}/", "http://[fe80::1%25eth0]/", "http://[::ffff:127.0.0.1%25lo]:{p}/", "http://[fe80::1]/",
	"http://[fc00::1]/", "http://[fd00::1]/", "http://[fd00:ec2::254]/", "http://[fd00:ec2:0::254]/latest/", "http://[fd20:ce::254]/", "http://[fd00:42::42]/",
	"http://[ff02::1]/", "http://[fec0::1]/", "http://[100::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/",
	"http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/", "http://[::ffff:10.0.0.1]/", "http://[5f00::1]/", "http://[4000::1]/",
	// Private and reserved IPv4.
	"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/", "http://192.168.255.255/",
	"http://100.64.0.1/", "http://100.127.255.255/", "http://100.100.100.200/", "http://169.254.0.1/", "http://169.254.169.254/latest/meta-data/", "http://169.254.169.254:80/", "https://169.254.169.254/",
	"http://169.254.170.2/", "http://169.254.42.42/", "http://168.63.129.16/", "http://192.0.0.1/", "http://192.0.0.192/", "http://192.0.2.1/", "http://192.88.99.1/",
	"http://198.18.0.1/", "http://198.19.255.255/", "http://198.51.100.1/", "http://203.0.113.1/", "http://224.0.0.1/", "http://239.255.255.250:1900/", "http://240.0.0.1/", "http://255.255.255.255/",
	// Tricks on whoever reads the address.
	"http://example.com@127.0.0.1:{p}/", "http://127.0.0.1:{p}@example.com@127.0.0.1:{p}/", "http://user:pass@127.0.0.1:{p}/", "http://@127.0.0.1:{p}/", "http://:@127.0.0.1:{p}/",
	"http://127.0.0.1:{p}#@example.com/", "http://127.0.0.1:{p}?@example.com/", `http://127.0.0.1:{p}\@example.com/`, `http://example.com\@127.0.0.1:{p}/`,
	`http:\\127.0.0.1:{p}\`, `http:/\127.0.0.1:{p}/`, "http:///127.0.0.1:{p}/", "http:/127.0.0.1:{p}/", "http:127.0.0.1:{p}/", "//127.0.0.1:{p}/", "127.0.0.1:{p}/",
	"http://127.0.0.1:{p}%20.example.com/", "http://127.0.0.1%00.example.com:{p}/", "http://127.0.0.1%2eexample.com:{p}/", "http://127.0.0.1%09:{p}/", "http://%31%32%37.0.0.1:{p}/", "http://127%2e0%2e0%2e1:{p}/",
	"http://127.0.0.1\t:{p}/", "http://127.0.0.1\n:{p}/", "http://127.0.0.1\r\nHost: x:{p}/", "http://127.0.0.1\x00:{p}/", " http://127.0.0.1:{p}/", "http://127.0.0.1 :{p}/", "http://127.0.0.1:{p} /",
	"http://127.0.0.1:{p}:80/", "http://127.0.0.1:0{p}/", "http://127.0.0.1:+{p}/", "http://127.0.0.1:99999/", "http://127.0.0.1:0/", "http://127.0.0.1:-1/", "http://127.0.0.1:x/", "http://127.0.0.1:/",
	"http://[127.0.0.1]:{p}/", "http://[::1/", "http://::1:{p}/", "http://[::1]{p}/", "http://[[::1]]:{p}/", "http://{127.0.0.1}:{p}/", "http://(127.0.0.1):{p}/", "http://127.0.0.1,example.com:{p}/", "http://127..0.0.1:{p}/", "http://.127.0.0.1:{p}/",
	// Other schemes.
	"gopher://127.0.0.1:{p}/_GET", "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1:{p}/", "dict://127.0.0.1:{p}/", "ldap://127.0.0.1:{p}/", "tftp://127.0.0.1:{p}/",
	"ws://127.0.0.1:{p}/", "unix:///var/run/docker.sock", "data:text/html,hello", "javascript:alert(1)", "jar:http://127.0.0.1:{p}!/", "view-source:http://127.0.0.1:{p}/", "netdoc:///etc/passwd", "",
}

// hostileNames resolve to where no caller may send us. The test's own name server answers them.
var hostileNames = map[string][]string{
	"loop.test.":      {"127.0.0.1"},
	"six.test.":       {"::1"},
	"mapped.test.":    {"::ffff:127.0.0.1"},
	"both.test.":      {"127.0.0.1", "::1"},
	"zero.test.":      {"0.0.0.0"},
	"ten.test.":       {"10.0.0.1"},
	"metadata.test.":  {"169.254.169.254"},
	"azure.test.":     {"168.63.129.16"},
	"ula.test.":       {"fd00:ec2::254"},
	"nat64.test.":     {"64:ff9b::7f00:1"},
	"many.test.":      {"10.0.0.1", "127.0.0.1", "192.168.1.1", "::1"},
	"xn--caf-dma.de.": {"127.0.0.1"},
}
