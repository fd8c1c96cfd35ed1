// The table of pages: address, file, icon, and the key after "g" that goes there. A page of a cluster is offered
// only by its nodes, and one that is apart not to support. Imports are written out for the check of the sources.
export const pages = [
  { name: 'overview', path: '/', load: () => import('./pages/overview.js'), icon: 'overview', key: 'o', rail: true },
  { name: 'channels', path: '/channels', load: () => import('./pages/channels.js'), icon: 'channels', key: 'c', rail: true },
  { name: 'channel', path: '/channels/:code/:tab?', load: () => import('./pages/channel.js'), within: 'channels' },
  { name: 'conversations', path: '/conversations/:code?/:chat?', load: () => import('./pages/conversations.js'), icon: 'conversations',
    key: 'v', rail: true },
  { name: 'contact', path: '/contacts/:contact', load: () => import('./pages/contact.js'), within: 'conversations' },
  { name: 'messages', path: '/messages', load: () => import('./pages/messages.js'), icon: 'messages', key: 'm', rail: true },
  { name: 'phone', path: '/phone/:number?', load: () => import('./pages/phone.js'), icon: 'phone', key: 'p', rail: true },
  { name: 'otp', path: '/otp', load: () => import('./pages/otp.js'), icon: 'otp', key: 't', rail: true },
  { name: 'webhooks', path: '/webhooks/:id?', load: () => import('./pages/webhooks.js'), icon: 'webhooks', key: 'w', rail: true,
    apart: true },
  { name: 'alerts', path: '/alerts', load: () => import('./pages/alerts.js'), icon: 'bell', key: 'l', rail: true, apart: true },
  { name: 'tokens', path: '/tokens', load: () => import('./pages/tokens.js'), icon: 'tokens', key: 'k', rail: true, apart: true },
  { name: 'access', path: '/access/:tab?', load: () => import('./pages/access.js'), icon: 'access', key: 'x', rail: true, apart: true },
  { name: 'recipes', path: '/api-recipes/:recipe?', load: () => import('./pages/recipes.js'), icon: 'api', key: 'a', rail: true,
    apart: true },
  { name: 'nodes', path: '/nodes', load: () => import('./pages/nodes.js'), icon: 'nodes', key: 'n', rail: true, cluster: true,
    apart: true },
  { name: 'settings', path: '/settings', load: () => import('./pages/settings.js'), icon: 'settings', key: 's', apart: true },
  { name: 'login', path: '/login', load: () => import('./pages/login.js'), bare: true },
  { name: 'notfound', path: '', load: () => import('./pages/notfound.js') }, // every other address
];
