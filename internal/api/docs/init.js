'use strict';

// The frame around Swagger UI: a list of all operations on the left, and the reader's choice of a
// light or a dark page.

const dark = matchMedia('(prefers-color-scheme: dark)');

function followTheme() {
  document.documentElement.classList.toggle('dark-mode', dark.matches);
}

function element(name, className, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text) e.textContent = text;
  return e;
}

// operationsByTag lists the operations in the order of the document, under the document's tags.
function operationsByTag(doc) {
  const groups = new Map(doc.tags.map((tag) => [tag.name, []]));
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
      const operation = item[method];
      if (operation) groups.get(operation.tags[0]).push({ method, path, operation });
    }
  }
  return groups;
}

function drawContents(doc) {
  const contents = document.getElementById('contents');
  for (const [tag, operations] of operationsByTag(doc)) {
    const section = element('section');
    section.append(element('h2', '', tag));
    const list = element('ul');
    for (const { method, path, operation } of operations) {
      const item = element('li');
      const link = element('a');
      link.href = `#/${encodeURIComponent(tag)}/${operation.operationId}`;
      link.title = `${method.toUpperCase()} ${path}`;
      link.append(element('span', `verb ${method}`, method === 'delete' ? 'del' : method), operation.summary);
      link.addEventListener('click', () => show(tag, operation.operationId));
      item.dataset.words = `${method} ${path} ${operation.summary}`.toLowerCase();
      item.append(link);
      list.append(item);
    }
    section.append(list);
    contents.append(section);
  }
}

// show opens an operation and brings it into view. Swagger UI writes blanks in a tag's name as
// underscores in the ids of its elements.
function show(tag, id) {
  const block = document.getElementById(`operations-${tag.replace(/ /g, '_')}-${id}`);
  if (!block) return;
  if (!block.classList.contains('is-open')) block.querySelector('.opblock-summary-control').click();
  block.scrollIntoView({ block: 'start' });
}

function filterContents() {
  const wanted = document.getElementById('filter').value.trim().toLowerCase();
  for (const section of document.querySelectorAll('#contents section')) {
    let any = false;
    for (const item of section.querySelectorAll('li')) {
      item.hidden = !item.dataset.words.includes(wanted);
      any = any || !item.hidden;
    }
    section.hidden = !any;
  }
}

async function start() {
  followTheme();
  dark.addEventListener('change', followTheme);
  const answer = await fetch('/openapi.json');
  if (!answer.ok) throw new Error(`/openapi.json answered ${answer.status}`);
  const doc = await answer.json();
  document.getElementById('version').textContent = `v${doc.info.version}`;
  drawContents(doc);
  document.getElementById('filter').addEventListener('input', filterContents);
  SwaggerUIBundle({
    spec: doc,
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    validatorUrl: null,
  });
}

start().catch((problem) => {
  document.getElementById('reference').replaceChildren(
    element('p', 'notice', `The reference could not be loaded: ${problem.message}`));
});
