// The documentation as a static site: the pages as they are, with search and the API reference. make docs-site copies them to
// dist/site-src first. BASE is the path of the site on its host, REPOSITORY the address of the source.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { defineConfig } from 'vitepress'

const pages = resolve(import.meta.dirname, '../../../../dist/site-src')
const repository = process.env.REPOSITORY

// GitHub's anchors, which the links between the pages use.
const slugify = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')

// Links to files that are no pages lead to the repository. Without an address they become text.
function repositoryLinks (md) {
  md.core.ruler.push('repository_links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let plain = false
      for (const token of children ?? []) {
        if (token.type === 'code_inline') token.attrSet('v-pre', '') // or Vue would evaluate {{ }} in it
        if (token.type === 'link_open') {
          const href = token.attrGet('href')
          const path = /^([a-z]+:|#|\/)/.test(href) ? '' : join(dirname(env.relativePath), href.split('#')[0])
          if (path === '' || (path.endsWith('.md') && existsSync(join(pages, path)))) continue
          if (repository) {
            token.attrSet('href', `${repository}/blob/main/${path}`)
            continue
          }
          plain = true
        }
        if (!plain) continue
        if (token.type === 'link_open' || token.type === 'link_close') {
          token.tag = 'span'
          token.attrs = null
          plain = token.type === 'link_open'
        }
      }
    }
  })
}

// The sidebar is the index by task: its headings, and the pages that they list.
function sidebar () {
  const text = readFileSync(join(pages, 'docs/README.md'), 'utf8')
  return text.split(/^## /m).slice(1).map((section) => ({
    text: section.split('\n')[0],
    items: [...section.matchAll(/\[([^\]]+)\]\((?!\.\.\/README)([^)#]+\.md)\)/g)].map(([, title, page]) => ({
      text: title[0].toUpperCase() + title.slice(1), link: '/' + join('docs', page).replace(/\.md$/, '')
    })),
  }))
}

export default defineConfig({
  title: 'Parley',
  description: 'A self-hosted WhatsApp gateway in one binary',
  base: process.env.BASE ?? '/',
  srcDir: pages,
  outDir: resolve(pages, '../site'),
  cacheDir: resolve(pages, '../site-cache'),
  lang: 'en',
  markdown: { anchor: { slugify }, config: repositoryLinks },
  themeConfig: {
    nav: [
      { text: 'Documentation', link: '/docs/README' },
      { text: 'API reference', link: '/reference/index.html', target: '_self' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
