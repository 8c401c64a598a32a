/**
 * A Bluesky network for tests: the real directory and the real account server ({@link serversOf}) in this process, with replacements for
 * the services behind the account server's proxy.
 */
import crypto from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { AtpAgent } from "@atproto/api"
import { type AppView, bypass, openAppView } from "./AppView.ts"
import { type Chat, openChat } from "./Chat.ts"
import { serversOf } from "./Servers.ts"
import { listening } from "./Service.ts"

/** An account with its own session, through which a test acts as the account's owner. */
export interface Person {
  readonly did: string
  readonly handle: string
  readonly password: string
  /** The signed-in client of `@atproto/api`. */
  readonly agent: AtpAgent
  readonly appPassword: (options?: { readonly dm?: boolean }) => Promise<string>
  /** Posts as the owner's app would, with resolved mentions. */
  readonly post: (
    text: string,
    options?: { readonly reply?: object; readonly at?: Date },
  ) => Promise<{ uri: string; cid: string }>
}

/** Handles a request to the account server; `pass` lets the server process it. */
export type Gate = (intercepted: {
  readonly method: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly pass: () => void
}) => void

/** Processes the request, but closes the connection instead of sending the response. */
export const loseResponse = ({ response }: Parameters<Gate>[0]): void => {
  const cut = () => {
    response.socket?.destroy()
    return response
  }
  response.writeHead = cut as never
  response.write = (() => (cut(), true)) as never
  response.end = cut as never
}

export interface Network {
  readonly plc: string
  readonly pds: string
  readonly appView: AppView
  readonly chat: Chat
  readonly person: (handle: string) => Promise<Person>
  /** Stops the account server; its data are kept. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
  /** Intercepts requests to the account server like a proxy; if undefined, all requests pass. */
  readonly front: { gate: Gate | undefined }
  /** The account server's internal context, for state that no request can produce. */
  readonly context: () => any
  readonly close: () => Promise<void>
}

/**
 * Makes the server's password hashing cheap, which was a third of the CPU time of these tests. Returns a function that restores it. Only
 * calls without explicit cost parameters are affected, as the server makes them.
 */
const cheapPasswords = () => {
  const { scrypt } = crypto
  crypto.scrypt = ((password: string, salt: string, length: number, ...rest: ReadonlyArray<any>) =>
    scrypt(password, salt, length, rest.length > 1 ? rest[0] : { N: 2 }, rest.at(-1))) as typeof scrypt
  return () => {
    crypto.scrypt = scrypt
  }
}

export const openNetwork = async (packages: string, config: object = {}): Promise<Network> => {
  const servers = await serversOf(packages)
  const dearPasswords = cheapPasswords()
  const data = await mkdtemp(path.join(tmpdir(), "bluesky-"))
  const plc = await servers.directory(await freePort())
  const port = await freePort()
  const url = `http://localhost:${port}`
  const people = new Map<string, Person>()
  const appView = await openAppView(() => url)
  const chat = await openChat(async (did) => [...people.values()].find((one) => one.did === did)?.handle ?? did)

  const front: Network["front"] = { gate: undefined }
  const begin = async () => {
    const server = await servers.accounts(data, {
      didPlcUrl: plc.url,
      port,
      rateLimitBypassKey: bypass,
      bskyAppViewUrl: appView.url,
      bskyAppViewDid: appView.did,
      ...config,
    })
    const { listener } = server
    const answers = listener.listeners("request") as ReadonlyArray<RequestListener>
    listener.removeAllListeners("request").on("request", (request: IncomingMessage, response: ServerResponse) => {
      const pass = () => answers.forEach((answer) => answer(request, response))
      const method = new URL(request.url!, "http://localhost").pathname.replace("/xrpc/", "")
      return front.gate === undefined ? pass() : front.gate({ method, request, response, pass })
    })
    return server
  }
  let pds = await begin()
  let running = true

  const person = async (handle: string): Promise<Person> => {
    const agent = new AtpAgent({ service: url })
    const password = `password of ${handle}`
    await agent.createAccount({ email: `${handle.replace(/\W/g, "")}@example.com`, handle, password })
    const made: Person = {
      did: agent.assertDid,
      handle,
      password,
      agent,
      appPassword: async ({ dm = false } = {}) => {
        const name = `connector ${Math.random()}`
        const { data } = await agent.com.atproto.server.createAppPassword({ name, privileged: dm })
        return data.password
      },
      post: async (text, { reply, at = new Date() } = {}) => {
        const facets = [...text.matchAll(/@([\w.-]+\w)/g)].map((match) => ({
          index: { byteStart: match.index, byteEnd: match.index + match[0].length },
          features: [{ $type: "app.bsky.richtext.facet#mention", did: people.get(match[1]!)!.did }],
        }))
        const record = { text, createdAt: at.toISOString(), facets, ...(reply === undefined ? {} : { reply }) }
        const collection = "app.bsky.feed.post"
        const { data } = await agent.com.atproto.repo.createRecord({ repo: agent.assertDid, collection, record })
        return data
      },
    }
    people.set(handle, made)
    return made
  }

  const stop = async () => {
    if (running) await pds.close()
    running = false
  }

  return {
    plc: plc.url,
    pds: url,
    appView,
    chat,
    person,
    front,
    stop,
    start: async () => {
      pds = await begin()
      running = true
    },
    context: () => pds.ctx,
    close: async () => {
      await stop()
      await plc.close()
      await appView.close()
      await chat.close()
      await rm(data, { recursive: true, force: true })
      dearPasswords()
    },
  }
}

const freePort = async () => {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}
