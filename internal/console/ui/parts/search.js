// A field that filters a list by a word of the address.
import { html, useEffect, useRef, useState } from '../view.js';
import { query, setQuery } from '../router.js';

/**
 * name: of the word in the address. What is typed stays while the list loads again; Enter or leaving the field filters,
 * Escape leaves it.
 */
export function SearchWord({ name, label, ...rest }) {
  const given = query.value[name] || '';
  const [text, setText] = useState(given);
  const sent = useRef(given);
  useEffect(() => { if (given !== sent.current) { sent.current = given; setText(given); } }, [given]);
  const find = ({ target }) => { sent.current = target.value.trim(); setQuery({ [name]: sent.current || null }); };
  const leave = (event) => { if (event.key === 'Escape') { event.preventDefault(); event.target.blur(); } };
  return html`<input type="search" class="pick-one" aria-label=${label} placeholder=${label} ...${rest} value=${text}
    onInput=${({ target }) => setText(target.value)} onChange=${find} onKeyDown=${leave} />`;
}
