/** The client: one method per call of the API, with pages, waiting and the live stream. */
import { streamEvents, type EventStreamOptions } from "./Events.ts"
import { type Calls, calls, type Event, type Message, type MessageSummary } from "./generated.ts"
import { signedFetch } from "./SignedFetch.ts"
import {
  type CallOptions,
  type ClientOptions,
  makeTransport,
  type Outgoing,
  pause,
  type Transport,
} from "./Transport.ts"
import { openTunnel, type OpenTunnel, type TunnelHandler, type TunnelOptions } from "./Tunnel.ts"

interface Flags {
  /** The member with the entries, and the member with the cursor of the next page. */
  readonly list?: string
  readonly cursor?: string
  /** Members that are in the query although the call has a body. */
  readonly query?: ReadonlyArray<string>
  /** The call takes an `Idempotency-Key`. */
  readonly key?: boolean
  /** The response is not JSON. */
  readonly raw?: boolean
}
type Entry = readonly [method: string, path: string, flags?: Flags]
type Table = typeof calls

/** Members that an Identity's client fills in. */
type Bound = "handle" | "identity"

type Arguments<Input> =
  Record<never, never> extends Input ? [input?: Input, options?: CallOptions] : [input: Input, options?: CallOptions]

/** The entries of a list. */
type EntryOf<Output, Spec> = Spec extends readonly [string, string, { readonly list: infer Name }]
  ? Name extends keyof Output
    ? Output[Name] extends ReadonlyArray<infer One>
      ? One
      : never
    : never
  : never

type Method<Input, Output, Spec> = ((...given: Arguments<Input>) => Promise<Output>) &
  (Spec extends readonly [string, string, { readonly list: string }]
    ? {
        /** Iterates over all entries, page by page. */
        readonly all: (...given: Arguments<Omit<Input, "cursor">>) => AsyncGenerator<EntryOf<Output, Spec>, void>
      }
    : unknown)

type CallOf<G extends keyof Calls, M extends keyof Calls[G]> = Calls[G][M] extends {
  readonly input: infer Input
  readonly output: infer Output
}
  ? { readonly input: Input; readonly output: Output }
  : never

type SpecOf<G extends keyof Calls, M extends keyof Calls[G]> = G extends keyof Table
  ? M extends keyof Table[G]
    ? Table[G][M]
    : never
  : never

/** Every call of the API by group. */
export type Api = {
  readonly [G in keyof Calls]: {
    readonly [M in keyof Calls[G]]: Method<CallOf<G, M>["input"], CallOf<G, M>["output"], SpecOf<G, M>>
  }
}

/** Whether a call is about an Identity that exists: its Handle is in the path, or `identity` names it. */
type IsOfIdentity<Input, Spec> = Spec extends readonly [string, `${string}{handle}${string}`, ...ReadonlyArray<unknown>]
  ? true
  : "identity" extends keyof Input
    ? true
    : false

/** The calls about one Identity, without its Handle. */
export type IdentityApi = {
  readonly [G in keyof Calls]: {
    readonly [
      M in keyof Calls[G] as IsOfIdentity<CallOf<G, M>["input"], SpecOf<G, M>> extends true ? M : never
    ]: Method<Omit<CallOf<G, M>["input"], Bound>, CallOf<G, M>["output"], SpecOf<G, M>>
  }
}

export interface WaitOptions extends Omit<Calls["messages"]["wait"]["input"], "handle" | "seconds"> {
  /** Seconds to wait in all. Default 300. */
  readonly timeoutSeconds?: number
  readonly signal?: AbortSignal
}

type NewMail = Omit<Calls["sending"]["send"]["input"], "handle">

/** One Identity. */
export interface Identity extends IdentityApi {
  readonly handle: string
  /** Sends a message. */
  readonly send: (mail: NewMail, options?: CallOptions) => Promise<Calls["sending"]["send"]["output"]>
  /** Replies to a message: recipients, subject and thread are those of the message. */
  readonly reply: (
    message: Pick<MessageSummary, "id">,
    mail: Omit<NewMail, "reply_to_message">,
    options?: CallOptions,
  ) => Promise<Calls["sending"]["send"]["output"]>
  /** Sends a web request that is signed as this Identity, so that the site knows the agent (Web Bot Auth). */
  readonly fetch: typeof fetch
  /** Waits for a message and returns it whole, or undefined if none arrived in time. */
  readonly waitForMessage: (options?: WaitOptions) => Promise<Message | undefined>
  /** Yields the Identity's Events as they happen. */
  readonly stream: (options?: EventStreamOptions) => AsyncGenerator<Event, void>
  /**
   * Gives a local port or a handler the public address of the Identity, and returns when the address works. Needs the package
   * `@agent-identity/tunnel` and a runtime with sockets: Node, Deno or Bun.
   */
  readonly tunnel: (target: number | TunnelHandler, options?: TunnelOptions) => Promise<OpenTunnel>
}

export interface Client extends Api {
  readonly baseUrl: string
  /** The client of one Identity. */
  readonly identity: (handle: string) => Identity
  /** Creates an Identity and returns when it is ready. */
  readonly createIdentity: (handle: string, options?: CallOptions) => Promise<Identity>
  /** Yields the account's Events as they happen. */
  readonly stream: (options?: EventStreamOptions) => AsyncGenerator<Event, void>
}

type Values = Readonly<Record<string, unknown>>

/** Returns the request of a call: members of the path, of the query, and of the body. */
const requestOf = ([method, path, flags = {}]: Entry, input: Values): Outgoing => {
  const rest: Record<string, unknown> = { ...input }
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name]
    delete rest[name]
    return encodeURIComponent(String(value))
  })
  const hasBody = method !== "GET" && method !== "DELETE"
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) delete rest[name]
    else if (!hasBody || flags.query?.includes(name) === true) {
      query.set(name, String(value))
      delete rest[name]
    }
  }
  const seconds = Number(input["seconds"] ?? input["wait"] ?? 0)
  return {
    method,
    path: query.size === 0 ? target : `${target}?${query}`,
    takesKey: flags.key === true,
    waitSeconds: Number.isFinite(seconds) ? seconds : 0,
    ...(hasBody && Object.keys(rest).length > 0 ? { body: rest } : {}),
  }
}

const methodOf = (transport: Transport, entry: Entry, bound: Values) => {
  const [, , flags = {}] = entry
  const once = async (input: Values = {}, options?: CallOptions): Promise<unknown> => {
    const response = await transport.send(requestOf(entry, { ...bound, ...input }), options)
    if (flags.raw === true) return response
    return response.status === 204 ? undefined : response.json()
  }
  const { list, cursor } = flags
  if (list === undefined || cursor === undefined) return once
  const all = async function* (input: Values = {}, options?: CallOptions) {
    for (let next: unknown = undefined; next !== null;) {
      const page = (await once({ ...input, cursor: next }, options)) as Values
      yield* page[list] as ReadonlyArray<unknown>
      next = page[cursor] ?? null
    }
  }
  return Object.assign(once, { all })
}

/** Returns the groups of calls; of an Identity, those that concern it. */
const groupsOf = (transport: Transport, handle?: string): Record<string, Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(calls as Readonly<Record<string, Readonly<Record<string, Entry>>>>).map(([group, entries]) => [
      group,
      Object.fromEntries(
        Object.entries(entries).map(([name, entry]) => {
          const isInPath = entry[1].includes("{handle}")
          const bound = handle === undefined ? {} : isInPath ? { handle } : { identity: handle }
          return [name, methodOf(transport, entry, bound)]
        }),
      ),
    ]),
  )

const pollMillis = 250

/** The longest wait of one call, in seconds. */
const longestWait = 60

const identityOf = (transport: Transport, handle: string): Identity => {
  const own = groupsOf(transport, handle) as unknown as IdentityApi
  const send: Identity["send"] = (mail, options) => own.sending.send(mail, options)
  return {
    ...own,
    handle,
    send,
    reply: ({ id }, mail, options) => send({ ...mail, reply_to_message: id }, options),
    fetch: signedFetch((request, options) => own.proof.createSignature(request, options), transport.request),
    waitForMessage: async ({ timeoutSeconds = 300, signal, ...filter } = {}) => {
      const deadline = Date.now() + timeoutSeconds * 1000
      let { after } = filter
      while (true) {
        const left = Math.ceil((deadline - Date.now()) / 1000)
        if (left <= 0) return undefined
        const given = { ...filter, seconds: Math.min(left, longestWait), ...(after === undefined ? {} : { after }) }
        const found = await own.messages.wait(given, signal === undefined ? {} : { signal })
        const [message] = found.messages
        if (message !== undefined) return own.messages.read({ id: message.id })
        after = found.after ?? after
      }
    },
    stream: (options) =>
      streamEvents(transport, `/api/identities/${encodeURIComponent(handle)}/events/stream`, options),
    tunnel: async (target, options) => {
      const { tunnel } = await own.identities.read()
      return openTunnel(target, { key: transport.key ?? "", handle, address: tunnel }, options)
    },
  }
}

/** Creates a client. Nothing is sent before the first call. */
export const createClient = (options: ClientOptions = {}): Client => {
  const transport = makeTransport(options)
  const api = groupsOf(transport) as unknown as Api
  return {
    ...api,
    baseUrl: transport.baseUrl,
    identity: (handle) => identityOf(transport, handle),
    createIdentity: async (handle, given) => {
      await api.identities.create({ handle }, given)
      while (true) {
        const { status } = await api.identities.read(
          { handle },
          given?.signal === undefined ? {} : { signal: given.signal },
        )
        if (status === "ready") return identityOf(transport, handle)
        if (status === "failed") throw new Error(`The Identity ${handle} could not be provisioned`)
        await pause(pollMillis, given?.signal)
      }
    },
    stream: (given) => streamEvents(transport, "/api/events/stream", given),
  }
}
