// Forms: labelled fields, and what is wrong with each, as the server says it.
import { html, useState, useRef, useId, useEffect } from '../view.js';
import { Button } from './button.js';
import { NeedsRole, Note } from './card.js';
import { number } from './who.js';
import { hasRole } from '../state.js';
import { texts } from '../i18n.js';

const t = texts('core');

/**
 * useForm keeps the values of a form and sends them. submit(values) throws ApiError: errors by field land at
 * their fields, other failures above the buttons. {values, set(name, value, path), errors, error, busy, send, reset};
 * paths: what the server calls the fields that are shown now.
 */
export function useForm(initial, submit) {
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState({});
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const there = useRef(true);
  const paths = useRef(new Set()).current;
  useEffect(() => () => { there.current = false; }, []);
  return {
    values, errors, error, busy, paths,
    set(name, value, path = name) {
      setValues((was) => ({ ...was, [name]: value }));
      setErrors(({ [path]: _, ...others }) => others);
    },
    reset(next = initial) { setValues(next); setErrors({}); setError(null); },
    async send(event) {
      event?.preventDefault();
      if (busy) return;
      setBusy(true);
      setErrors({});
      setError(null);
      try { await submit(values); } catch (problem) {
        setErrors(problem.errors || {});
        setError(problem);
      } finally { if (there.current) setBusy(false); }
    },
  };
}

export function Form({ form, children, ...rest }) {
  const box = useRef();
  // The first field that is wrong gets the focus.
  useEffect(() => { if (form.error) box.current.querySelector('[aria-invalid=true]')?.focus(); }, [form.error]);
  // A dialog gives the focus when it opens; a form that comes later, because its code was fetched, takes it.
  useEffect(() => { if (box.current.closest('dialog')?.open) box.current.querySelector('[autofocus]')?.focus(); }, []);
  const keys = (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.send(event); };
  return html`<form class="form" novalidate ref=${box} onSubmit=${form.send} onKeyDown=${keys} ...${rest}>${children}</form>`;
}

/** What is wrong with the whole, or with a field that the form does not show. */
function FormError({ form }) {
  if (!form.error) return null;
  const at = (shown) => Object.entries(form.errors).filter(([path]) => form.paths.has(path) === shown).flatMap(([, list]) => list);
  const said = at(true); // one field may belong to two fields of the server
  const hidden = at(false).filter((sentence) => !said.includes(sentence));
  const text = Object.keys(form.error.errors || {}).length ? hidden.join(' ') : form.error.status === 0 ? t('noAnswer')
    : form.error.message;
  const wait = form.error.retryAfter ? ` ${t('tryIn', { s: form.error.retryAfter })}` : '';
  return text ? html`<${Note} kind="bad">${text}${wait}<//>` : null;
}

/** The button that sends a form. need: the role that may send it; others see which role that is. */
export const Submit = ({ form, kind = 'primary', need, children, ...rest }) =>
  (need && !hasRole(need) ? html`<${NeedsRole} role=${need} />` : html`
  <${FormError} form=${form} />
  <${Button} kind=${kind} type="submit" busy=${form.busy} ...${rest}>${children}<//>`);

/** The contact id of a number in any format. For anything else it throws an error of the field contact_id. */
export function toContact(text) {
  const digits = number(text).replace(/^00/, '');
  if (!/^[1-9]\d{4,14}$/.test(digits) || !/^[\d\s+().\/-]+$/.test(text.split('@')[0])) throw {
    errors: { contact_id: [t('noNumber', { example: '+62 812-3456-7890' })] } };
  return `${digits}@c.us`;
}

/**
 * A field with its label, hint and errors. type: text, number, tel, url, password, textarea, checkbox, and with
 * options ([value, label] or plain values) select or radio. path: its name in the server's errors. as(props, set): another
 * input, which gets the props and calls set(value).
 */
export function Field({ form, name, label, hint, type = 'text', options, path = name, children, as, ...rest }) {
  const id = useId();
  useEffect(() => {
    form.paths?.add(path);
    return () => form.paths?.delete(path);
  }, [path]);
  const wrong = form.errors[path];
  const value = form.values[name];
  const said = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(' ') || undefined;
  const common = { id, name, 'aria-describedby': said, 'aria-invalid': wrong ? 'true' : undefined, ...rest };
  const set = (next) => form.set(name, next, path);
  const change = (event) => set(type === 'number' && event.target.value !== '' ? event.target.valueAsNumber : event.target.value);
  const notes = html`
    ${hint && html`<span class="hint" id="${id}-hint">${hint}</span>`}
    ${wrong && html`<span class="wrong" id="${id}-wrong">${wrong.join(' ')}</span>`}`;

  if (type === 'checkbox') {
    return html`<div class="field check"><input type="checkbox" ...${common} checked=${Boolean(value)}
      onChange=${(event) => set(event.target.checked)} />
      <label for=${id}>${label}</label>${notes}</div>`;
  }
  const choices = options?.map((option) => (Array.isArray(option) ? option : [option, option]));
  if (type === 'radio') {
    return html`<fieldset class="field" aria-describedby=${said}><legend class="label">${label}</legend>
      ${choices.map(([choice, words]) => html`<label key=${choice} class="choice">
        <input type="radio" name="${id}-${name}" checked=${choice === value} onChange=${() => set(choice)} /><span>${words}
        </span></label>`)}
      ${notes}</fieldset>`;
  }
  const input = as ? as(common, set) : type === 'textarea' ? html`<textarea rows="3" ...${common} value=${value} onInput=${change} />`
    : type === 'select' ? html`<select ...${common} value=${value} onChange=${change}>
      ${choices.map(([choice, words]) => html`<option key=${choice} value=${choice} selected=${choice === value}>${words}
        </option>`)}</select>`
      : html`<input type=${type} ...${common} value=${value} onInput=${change} />`;
  return html`<div class="field"><label class="label" for=${id}>${label}
    ${rest.required && html`<span class="muted" aria-hidden="true"> *</span>`}</label>
    ${children ? html`<div class="row">${input}${children}</div>` : input}${notes}</div>`;
}
