import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import type {
  CodeAnswer, ErrorCode, Event, EventType, Operations, SendAnswer, SendError, UploadAnswer, ValidationError,
} from "./types.js";

export type * from "./types.js";

/** An error that the server returned. Decide by `code`; `message` is for people and may change. */
export class ParleyError extends Error {
  override name = "ParleyError";
  constructor(
    readonly status: number,
    /** `http` if the response is not one of the server's own, for example that of a proxy. */
    readonly code: ErrorCode | "http",
    message: string,
    /** What is wrong, by field, if `code` is `invalid`. */
    readonly errors: ValidationError["errors"],
    readonly requestId: string,
    /** After how many seconds to try again, if the server said so. */
    readonly retryAfter: number | undefined,
  ) {
    super(message);
  }
}

/** A message that the network refused. The server stored it as FAILED. */
export class SendFailed extends Error {
  override name = "SendFailed";
  readonly code: SendError["code"];
  constructor(readonly data: SendAnswer["data"], error: SendError) {
    super(error.message);
    this.code = error.code;
  }
}

/** A webhook call that Parley did not make, or made too long ago. */
export class WebhookError extends Error {
  override name = "WebhookError";
}

export interface Options {
  /** The address of the server. By default PARLEY_URL. */
  url?: string;
  /** By default PARLEY_TOKEN. */
  token?: string;
  /** The channel, for a Global token. */
  channel?: string;
  /** How often a request is repeated. By default 4 times. */
  retries?: number;
  /** The longest wait for one attempt, in milliseconds. By default a minute. A longer Retry-After ends the retries. */
  timeout?: number;
}

export interface RequestOptions {
  /** The same key never does the same work twice. By default, each call has its own, which its retries share. */
  idempotencyKey?: string;
  channel?: string;
  signal?: AbortSignal;
}

type Name = keyof Operations;
type Input<N extends Name> = Operations[N]["input"];
type Answer<N extends Name> = Operations[N]["answer"];
type Sent = { data: { message_id: string } };
type Sends = { [N in Name as N extends `POST /api/send-message/${infer K}` ? (Answer<N> extends Sent ? K : never) : never]: N };
type Body<N extends Name> = Input<N> extends { body: infer B } ? B : never;
type Lists = { [N in Name as N extends `GET ${infer P}` ? (Answer<N> extends { data: unknown[] } ? P : never) : never]: N };
type Arguments<N extends Name> = {} extends Input<N> ? [Input<N>?, RequestOptions?] : [Input<N>, RequestOptions?];
type ListItem<P extends keyof Lists> = Answer<Lists[P]> extends { data: Array<infer T> } ? T : never;
type Anything = { path?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown };

export interface StreamOptions {
  types?: EventType[];
  channel?: string;
  signal?: AbortSignal;
}

/** What one part of an event stream contains. */
interface Field {
  id?: string;
  data?: string;
  retry?: number;
}

export interface File {
  data: Uint8Array;
  type: string;
  /** Empty if it has no name. */
  filename: string;
}

/** A client of one server. It needs no closing. */
export class Parley {
  readonly #url: string;
  readonly #token: string;
  readonly #channel: string | undefined;
  readonly #retries: number;
  readonly #timeout: number;

  constructor(options: Options = {}) {
    const url = options.url ?? process.env["PARLEY_URL"];
    const token = options.token ?? process.env["PARLEY_TOKEN"];
    if (!url || !token) throw new TypeError("Parley needs url and token, or PARLEY_URL and PARLEY_TOKEN in the environment.");
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#channel = options.channel;
    this.#retries = options.retries ?? 4;
    this.#timeout = options.timeout ?? 60_000;
  }

  /** Calls any operation of the API, for example `call("GET /api/otp/link/{id}", { path: { id } })`. */
  call<N extends Name>(name: N, ...rest: Arguments<N>): Promise<Answer<N>> {
    const [method, path] = name.split(" ") as [string, string];
    return this.request(method, path, rest[0] as Anything, rest[1]) as Promise<Answer<N>>;
  }

  /** Sends a message and returns it. If the network refuses it, this throws SendFailed. */
  async send<K extends keyof Sends>(kind: K, message: Body<Sends[K]>, options?: RequestOptions):
    Promise<Extract<Answer<Sends[K]>, Sent>["data"]> {
    const answer = await this.request("POST", `/api/send-message/${kind}`, { body: message }, options) as SendAnswer;
    if (answer.data.error) throw new SendFailed(answer.data, answer.data.error);
    return answer.data as never;
  }

  /** Iterates over all pages of a list, for example `list("/api/messages", { query: { limit: 100 } })`. */
  async *list<P extends keyof Lists>(path: P, input?: Input<Lists[P]>): AsyncGenerator<ListItem<P>, void, undefined> {
    const { query, ...rest } = (input ?? {}) as Anything;
    const next: Record<string, unknown> = { ...query };
    for (let seen = Number(next["offset"] ?? 0); ; ) {
      const { data, meta } = await this.request("GET", path, { ...rest, query: next }) as
        { data: ListItem<P>[]; meta?: { next_cursor?: string | null; has_next_page?: boolean } };
      yield* data;
      if (meta?.next_cursor) {
        next["cursor"] = meta.next_cursor;
        delete next["offset"];
      } else if (meta?.next_cursor === undefined && meta?.has_next_page) {
        next["offset"] = seen += data.length;
      } else return;
    }
  }

  /** Stores a file for later messages, which name its `id` in `file.url`. */
  async upload(data: Uint8Array | string, options: { filename?: string; type?: string } & RequestOptions = {}):
    Promise<UploadAnswer["data"]> {
    const headers: Record<string, string> = { "Content-Type": options.type ?? "application/octet-stream" };
    if (options.filename) headers["Content-Disposition"] = `attachment; filename*=UTF-8''${encodeName(options.filename)}`;
    const response = await this.#fetch("POST", "/api/media", { body: data as NonNullable<RequestInit["body"]>, headers }, options);
    return (await response.json() as UploadAnswer).data;
  }

  /** Fetches the file of a message or an upload by its id or `media.url`. It waits while an inbound file is on its way. */
  async download(idOrURL: string, options?: RequestOptions): Promise<File> {
    const path = idOrURL.startsWith("med_") ? `/api/media/${idOrURL}` : new URL(idOrURL, this.#url).pathname;
    const response = await this.#fetch("GET", path, {}, options);
    const named = /filename\*=utf-8''([^;]+)/i.exec(response.headers.get("Content-Disposition") ?? "");
    const plain = /filename="?([^";]+)"?/i.exec(response.headers.get("Content-Disposition") ?? "");
    return {
      data: new Uint8Array(await response.arrayBuffer()),
      type: response.headers.get("Content-Type") ?? "",
      filename: named ? decodeURIComponent(named[1]!) : plain?.[1] ?? "",
    };
  }

  /** Sends a one-time code. Check what the person typed with `call("POST /api/otp/code/validate", …)`. */
  async requestCode(contactId: string, options: { name?: string; expires?: number } & RequestOptions = {}): Promise<CodeAnswer["data"]> {
    const { name, expires, ...rest } = options;
    const body = { contact_id: contactId, ...(name && { name }), ...(expires && { expires }) };
    return (await this.call("POST /api/otp/code/request", { body }, rest)).data;
  }

  /**
   * Follows the events. After a broken connection or a restart it goes on with the next one, without a gap. To begin where an
   * earlier program ended, give the `id` of its last event as `after`.
   */
  async *events(options: StreamOptions & { after?: string } = {}): AsyncGenerator<Event, void, undefined> {
    let last = options.after;
    for (let failures = 0; !options.signal?.aborted; ) {
      let pause = 2000;
      try {
        for await (const field of this.#stream(options, last)) {
          failures = 0;
          if (field.retry !== undefined) pause = field.retry;
          if (field.id) last = field.id;
          if (field.data) yield JSON.parse(field.data) as Event;
        }
      } catch (error) {
        if (options.signal?.aborted) return;
        if (error instanceof ParleyError && error.status < 500 && error.status !== 429) throw error;
        failures++;
        if (error instanceof ParleyError && error.retryAfter) pause = error.retryAfter * 1000;
      }
      await sleep(Math.min(30_000, failures > 1 ? pause * 2 ** (failures - 2) : Math.min(pause, 500)), options.signal);
    }
  }

  async *#stream(options: StreamOptions, last?: string): AsyncGenerator<Field> {
    const silent = new AbortController(); // a comment comes every 15 seconds
    const signal = options.signal ? AbortSignal.any([options.signal, silent.signal]) : silent.signal;
    const response = await this.#attempt("GET", this.#address("/api/events", { types: options.types?.join(",") }),
      { headers: { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) }, signal }, options.channel, false);
    let timer = setTimeout(() => silent.abort(), 45_000);
    try {
      let rest = "", field: Field = {};
      const decoder = new TextDecoder();
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), 45_000);
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          const [name, value] = [line.split(":", 1)[0], line.replace(/^[^:]*:? ?/, "")];
          if (name === "id") field.id = value;
          else if (name === "data") field.data = (field.data ?? "") + value;
          else if (name === "retry") field.retry = Number(value);
          else if (line === "" && Object.keys(field).length > 0) {
            yield field;
            field = {};
          }
        }
      }
    } finally {
      clearTimeout(timer);
      silent.abort();
    }
  }

  /** Calls any address of the server and returns its JSON, for example of the management API. Prefer `call`, which knows the types. */
  async request(method: string, path: string, input: Anything = {}, options?: RequestOptions): Promise<unknown> {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input.path?.[name])));
    const headers = input.body === undefined ? {} : { "Content-Type": "application/json" };
    const body = input.body === undefined ? null : JSON.stringify(input.body);
    const response = await this.#fetch(method, this.#address(filled, input.query), { headers, body }, options);
    const text = await response.text();
    try {
      return JSON.parse(text); // some lists come as a text
    } catch {
      return text;
    }
  }

  #address(path: string, query: Record<string, unknown> = {}): string {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
    const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString();
    return search ? `${path}?${search}` : path;
  }

  /** Repeats a request until it succeeds or it makes no sense any more. All attempts have one idempotency key. */
  async #fetch(method: string, path: string, init: RequestInit, options: RequestOptions = {}): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json, */*", ...(init.headers as Record<string, string>) };
    if (method !== "GET") headers["Idempotency-Key"] = options.idempotencyKey ?? randomUUID();
    for (let tries = 0; ; tries++) {
      let pause = Math.min(8000, 250 * 2 ** tries) * (0.5 + Math.random() / 2);
      try {
        const one = { ...init, headers, ...(options.signal && { signal: options.signal }) };
        return await this.#attempt(method, path, one, options.channel, true);
      } catch (error) {
        if (error instanceof ParleyError) {
          if (![429, 502, 503, 504].includes(error.status)) throw error;
          if (error.retryAfter !== undefined) pause = error.retryAfter * 1000;
        }
        if (tries >= this.#retries || options.signal?.aborted || pause > this.#timeout) throw error;
      }
      await sleep(pause, options.signal);
    }
  }

  async #attempt(method: string, path: string, init: RequestInit, channel: string | undefined, limited: boolean): Promise<Response> {
    const headers: Record<string, string> = { ...(init.headers as Record<string, string>), Authorization: `Bearer ${this.#token}` };
    const named = channel ?? this.#channel;
    if (named) headers["X-Channel"] = named;
    const limit = limited ? [AbortSignal.timeout(this.#timeout)] : [];
    const signal = AbortSignal.any([...(init.signal ? [init.signal] : []), ...limit]);
    const response = await fetch(this.#url + path, { ...init, method, headers, signal, redirect: "error" });
    if (response.ok) return response;
    const text = await response.text();
    const after = response.headers.get("Retry-After");
    let body: Partial<ValidationError> = {};
    try {
      body = JSON.parse(text) as Partial<ValidationError>;
    } catch {
      // not from the server itself
    }
    const message = body.message ?? `${response.status} ${response.statusText}`;
    throw new ParleyError(response.status, body.code ?? "http", message, body.errors ?? {},
      response.headers.get("X-Request-Id") ?? "", after === null ? undefined : Number(after));
  }
}

/**
 * Checks that Parley made a webhook call less than five minutes ago, and returns its event. `headers` are those of the request, and
 * `body` is exactly what arrived. It throws WebhookError. An event can arrive twice: store the ids that you have handled.
 */
export function verifyWebhook(
  secret: string, headers: Record<string, string | string[] | undefined> | Headers, body: Uint8Array | string, tolerance = 300,
): Event {
  const read = (name: string) => (headers instanceof Headers ? headers.get(name) : [headers[name] ?? ""].flat()[0]) ?? "";
  const id = read("webhook-id"), timestamp = read("webhook-timestamp");
  const age = Math.abs(Date.now() / 1000 - Number(timestamp || NaN));
  if (!(age <= tolerance)) throw new WebhookError("The call is too old, or its time is wrong.");
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (key.length === 0) throw new WebhookError("The secret is empty.");
  const want = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  const matches = read("webhook-signature").split(" ").some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ""), "base64");
    return one.startsWith("v1,") && given.length === want.length && timingSafeEqual(given, want);
  });
  if (!matches) throw new WebhookError("The signature does not match.");
  return JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString()) as Event;
}

function encodeName(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
