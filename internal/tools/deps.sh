#!/bin/sh
# Lists the programs that test suites need besides Go, and installs what is missing: as root on Debian, and without starting a
# service. Elsewhere it names the packages; tests without their program are skipped.
#
#	internal/tools/deps.sh [test] [clients] [postgres] [browser] [deploy]
set -eu

# suite | program | Debian | Alpine | Homebrew | what for
needs() {
	cat <<'TABLE'
test|cc|gcc libc6-dev|gcc musl-dev||the race detector
test|ffmpeg|ffmpeg|ffmpeg|ffmpeg|sounds and videos
test|curl|curl|curl|curl|the commands of the README
test|jq|jq|jq|jq|the commands of the docs
test|openssl|openssl|openssl|openssl|the commands of the docs
test|python3|python3|python3|python3|the commands of the docs
clients|npm|nodejs npm|nodejs npm|node|the client for TypeScript
clients|python3|python3|python3|python3|the client for Python
clients|php|php-cli|php84|php|an example
postgres|postgres|postgresql|postgresql|postgresql|nodes and their database
postgres|pgbouncer|pgbouncer|pgbouncer|pgbouncer|a pooler before the database
postgres|ip|iproute2|iproute2||nodes that are cut off
browser|chromium|chromium-headless-shell fonts-liberation|chromium font-liberation|--cask google-chrome|the console
browser|emoji|fontconfig fonts-noto-color-emoji|fontconfig font-noto-emoji||the console's emoji
deploy|buildah|buildah|||images
deploy|mmdebstrap|mmdebstrap|||the Debian of the images
deploy|promtool|prometheus|||the alerts
deploy|caddy|caddy|||a proxy
deploy|nginx|nginx-light|||the other proxy
deploy|systemd-analyze|systemd|||the unit
deploy|strace|strace|||the unit's list of system calls
deploy|ffmpeg|ffmpeg|||sounds in the image
deploy|initdb|postgresql|||the scripts of the databases
TABLE
}

# found tells whether a program is there. Debian has those of PostgreSQL outside the path.
found() {
	case $1 in
	cc) command -v gcc || command -v clang || command -v cc ;;
	postgres | initdb) ls /usr/lib/postgresql/*/bin/"$1" 2>/dev/null || command -v "$1" ;;
	chromium) # on Debian the one without windows, which needs two thirds of the time
		command -v chromium-headless-shell || command -v google-chrome || { [ ! -e /etc/debian_version ] && command -v chromium; } ;;
	emoji) [ -n "$(fc-list :lang=und-zsye 2>/dev/null)" ] || [ "$(uname)" = Darwin ] ;;
	*) command -v "$1" ;;
	esac >/dev/null
}

# install_debian disables services that come with a package, now and for the next start of the machine.
install_debian() {
	policy=/usr/sbin/policy-rc.d # what Debian asks before it starts a service
	if [ ! -e $policy ]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null || return 1
	for package; do
		systemctl disable -q "${package%-light}" 2>/dev/null || true
	done
}

debian='' alpine='' homebrew='' programs=''
while IFS='|' read -r suite program apt apk brew why; do
	case " $* " in *" $suite "*) ;; *) continue ;; esac
	state=found
	if ! found "$program"; then
		state=missing debian="$debian $apt" alpine="$alpine $apk" homebrew="$homebrew $brew" programs="$programs $program"
	fi
	printf '  %-8s %-16s %s\n' "$state" "$program" "for $why"
done <<LIST
$(needs)
LIST
[ -n "$programs" ] || exit 0

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing:$debian"
	# shellcheck disable=SC2086
	install_debian $debian || echo "They could not be installed. Tests that need them are skipped."
	exit 0
fi
echo "Tests that need what is missing are skipped. To install it:"
if command -v apt-get >/dev/null; then
	echo "  sudo apt-get install$debian"
elif command -v apk >/dev/null; then
	echo "  apk add$alpine"
elif command -v brew >/dev/null; then
	echo "  brew install$homebrew"
else
	echo "  these programs, with your package manager:$programs"
fi
