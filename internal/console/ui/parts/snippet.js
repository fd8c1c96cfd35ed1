// A request as a program, in five languages.
import { html } from '../view.js';
import { stored } from '../state.js';
import { texts } from '../i18n.js';
import { Code } from './code.js';
import { Tabs, TabPanel } from './tabs.js';

const t = texts('core');

const languages = { curl: 'curl', js: 'JavaScript', php: 'PHP', python: 'Python', go: 'Go' };
const picked = stored('code', 'curl'); // people write in one language

/** Which of the tokens of dev.env a request needs. */
const tokenFor = ({ path, headers }) =>
  (path.startsWith('/api/manage') ? 'PARLEY_ADMIN_TOKEN' : headers?.['X-Channel'] || path.endsWith('/pool') ? 'PARLEY_GLOBAL_TOKEN'
    : 'PARLEY_TOKEN');

const indent = (text, by) => text.replace(/\n/g, '\n' + by);
const shell = (text) => `'${text.replace(/'/g, "'\\''")}'`;
const quoted = JSON.stringify; // also a string of JavaScript, Python and Go
const single = (text) => `'${text.replace(/[\\']/g, '\\$&')}'`;

function python(value, by = '') {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return quoted(value);
  const inner = by + '    ';
  const [open, close, items] = Array.isArray(value)
    ? ['[', ']', value.map((item) => python(item, inner))]
    : ['{', '}', Object.entries(value).map(([key, item]) => `${quoted(key)}: ${python(item, inner)}`)];
  return items.length ? `${open}\n${inner}${items.join(`,\n${inner}`)},\n${by}${close}` : open + close;
}

const writers = {
  curl: ({ method, path, headers, body, token }) => [
    `curl -sS${method === 'GET' || (method === 'POST' && body) ? '' : ` -X ${method}`} "$PARLEY_URL${path}"`,
    `-H "Authorization: Bearer $${token}"`,
    ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    ...(body ? [`-d ${shell(JSON.stringify(body))}`] : []),
  ].join(' \\\n  '),

  js: ({ method, path, headers, body, token }) => `const answer = await fetch(process.env.PARLEY_URL + ${single(path)}, {
  method: '${method}',
  headers: {
    Authorization: 'Bearer ' + process.env.${token},${headers.map(([name, value]) => `\n    '${name}': ${single(value)},`).join('')}
  },${body ? `\n  body: JSON.stringify(${indent(JSON.stringify(body, null, 2), '  ')}),` : ''}
});
console.log(answer.status, await answer.json());`,

  php: ({ method, path, headers, body, token }) => `<?php
$request = curl_init(getenv('PARLEY_URL') . ${single(path)});
curl_setopt_array($request, [
    CURLOPT_CUSTOMREQUEST => '${method}',
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => [
        'Authorization: Bearer ' . getenv('${token}'),${headers.map(([name, value]) =>
          `\n        ${single(`${name}: ${value}`)},`).join('')}
    ],${body ? `\n    CURLOPT_POSTFIELDS => <<<'JSON'\n${JSON.stringify(body, null, 4)}\nJSON,` : ''}
]);
echo curl_exec($request);`,

  python: ({ method, path, headers, body, token }) => `import json, os, urllib.request

request = urllib.request.Request(
    os.environ["PARLEY_URL"] + ${quoted(path)},
    method="${method}",
    headers={
        "Authorization": "Bearer " + os.environ["${token}"],${headers.map(([name, value]) =>
          `\n        ${quoted(name)}: ${quoted(value)},`).join('')}
    },${body ? `\n    data=json.dumps(${python(body, '    ')}).encode(),` : ''}
)
print(json.load(urllib.request.urlopen(request)))`,

  go: ({ method, path, headers, body, token }) => {
    const text = body && JSON.stringify(body, null, 2);
    return `package main

import (
	"io"
	"log"
	"net/http"
	"os"${body ? '\n\t"strings"' : ''}
)

func main() {
	${body ? `body := strings.NewReader(${text.includes('`') ? quoted(JSON.stringify(body)) : '`' + text + '`'})\n\t`
   : ''}request, err := http.NewRequest("${method}", os.Getenv("PARLEY_URL")+${quoted(path)}, ${body ? 'body' : 'nil'})
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("${token}"))${headers.map(([name, value]) =>
   `\n\trequest.Header.Set(${quoted(name)}, ${quoted(value)})`).join('')}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
}`;
  },
};

/** A request {method, path, headers, body} as a program. path begins with /api. */
export function snippet(language, request) {
  const body = request.body && Object.keys(request.body).length ? request.body : undefined;
  const headers = Object.entries({ ...(body && { 'Content-Type': 'application/json' }), ...request.headers });
  return writers[language]({ method: 'GET', ...request, body, headers, token: tokenFor(request) });
}

/**
 * The request in the reader's language, with tabs for the others; or what write(language) makes, where shell is what the
 * first one is called.
 */
export function CodeTabs({ request, write = (language) => snippet(language, request), shell = 'curl', hint }) {
  const language = writers[picked.value] ? picked.value : 'curl';
  const names = { ...languages, curl: shell };
  return html`<div class="stack">
    <${Tabs} small label=${t('asCode')} current=${language} onPick=${(id) => { picked.value = id; }}
      tabs=${Object.entries(names).map(([id, label]) => ({ id, label }))} />
    <${TabPanel} label=${names[language]}><${Code} text=${write(language)} what=${names[language]} /><//>
    <p class="hint">${hint || t('asCodeHint', { vars: html`<code>$PARLEY_URL</code>, <code>$${tokenFor(request)}</code>` })}</p>
  </div>`;
}

/** The request for a shell. base: the address of the server in it. */
export const Curl = ({ request, base = '$PARLEY_URL' }) =>
  html`<${Code} wrap text=${snippet('curl', request).replace('$PARLEY_URL', base)} what="curl" />`;
