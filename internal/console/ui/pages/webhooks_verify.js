// Programs that check the signature of one delivery, in five languages: what was signed, with what, and whether it fits.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { CodeTabs } from '../parts/snippet.js';

const t = texts('deliveries');

/** What is signed: of a webhook its id, time and body; of a callback its parameters, sorted, a line each. */
function toSigned({ webhook, body, request: { url, headers } }) {
  if (webhook) return `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const ours = ['contact_id', 'event_id', 'id', 'reason', 'status', 'timestamp'];
  // The address may have parameters of the same names before ours.
  return ours.map((name) => [name, new URL(url).searchParams.getAll(name).at(-1)]).filter(([, value]) => value != null)
    .map((pair) => pair.join('=')).join('\n');
}

const quoted = JSON.stringify;
const single = (text) => `'${text.replace(/[\\']/g, '\\$&')}'`;
const shell = (text) => `'${text.replace(/'/g, "'\\''")}'`;

const writers = {
  curl: (signed, given) => `key=$(printf %s "\${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
signed=${shell(signed)}
want=v1,$(printf %s "$signed" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
for given in ${given}; do
  [ "$want" = "$given" ] && echo valid
done`,

  js: (signed, given) => `import { createHmac } from 'node:crypto';

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const signed = ${quoted(signed)};
const want = 'v1,' + createHmac('sha256', key).update(signed).digest('base64');
console.log('${given}'.split(' ').includes(want) ? 'valid' : 'not valid');`,

  php: (signed, given) => `<?php
$key = base64_decode(preg_replace('/^whsec_/', '', getenv('WEBHOOK_SECRET')));
$signed = ${single(signed)};
$want = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
echo in_array($want, explode(' ', '${given}'), true) ? 'valid' : 'not valid';`,

  python: (signed, given) => `import base64, hashlib, hmac, os

key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
signed = ${quoted(signed)}
want = "v1," + base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
print("valid" if want in "${given}".split() else "not valid")`,

  go: (signed, given) => `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil {
		panic(err)
	}
	signed := ${quoted(signed)}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	fmt.Println("valid:", slices.Contains(strings.Fields("${given}"), want))
}`,
};

/** The programs for a delivery, as the server shows it. */
export const Verify = ({ of: d }) => html`<${CodeTabs} shell="Shell"
  write=${(language) => writers[language](toSigned(d), d.request.headers['webhook-signature'])}
  hint=${t(d.webhook ? 'verifyHint' : 'verifyCallback',
    { name: html`<code>$WEBHOOK_SECRET</code>`, channel: html`<code>parley channel secret ${d.channel}</code>` })} />`;
