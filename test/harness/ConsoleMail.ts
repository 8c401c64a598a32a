/** Real SMTP for console tests: a sender that writes to an agent, and a relay that receives what it sends. */
import { randomUUID } from "node:crypto"
import type { Page } from "playwright-core"
import { call, makeIdentity, signUp } from "./Client.ts"
import { closeContexts } from "./Browser.ts"
import { heading, type Look, openContext, startConsole } from "./Console.ts"
import { send } from "./Mail.ts"
import { freePort } from "./Ports.ts"
import { startRelay } from "./Relay.ts"
import { share } from "./Shared.ts"
import { eventually } from "./Service.ts"

const startWithRelay = async () => {
  const port = await freePort()
  const relay = await startRelay(port)
  const site = await startConsole({
    env: {
      SVC_SMTP_RELAY_URL: `smtp://user:secret@127.0.0.1:${port}`,
      SVC_SYSTEM_FROM: "no-reply@mail.localhost",
    },
  })
  return {
    ...site,
    relay,
    stop: async () => {
      await site.stop()
      await relay.stop()
    },
  }
}

/** Files share the service and the relay, and each has an account of its own. */
export const startConsoleMail = async () => {
  const { service, browser, relay } = await share("mail", startWithRelay)
  const before = relay.taken.length
  const taken = () => relay.taken.slice(before)
  const { session } = await signUp(service.base)
  // A busy machine can answer 503 for a moment. As clients do, the call is repeated with its key.
  const api = (method: string, path: string, body?: unknown, token = session) => {
    const headers: Record<string, string> = method === "POST" ? { "idempotency-key": randomUUID() } : {}
    return eventually(
      () => call(service.base, method, `/api/${path}`, { token, headers, ...(body === undefined ? {} : { body }) }),
      ({ status }) => status !== 503,
    )
  }
  const ofIdentities: typeof api = (method, path, ...rest) => api(method, `identities/${path}`, ...rest)
  return {
    service,
    browser,
    /** Returns what the relay accepted since this file began. */
    taken,
    /** Calls the API below the Identities, as the account holder or with an agent's key. */
    api: ofIdentities,
    /** Calls the API. */
    call: api,
    agent: () => makeIdentity(service.base, session),
    /** Sends a message and returns once it is in the Mailbox. */
    arrives: async (handle: string, mail: Parameters<typeof send>[1]) => {
      await send(service.smtpPort, { from: "Grace <grace@example.org>", to: `${handle}@mail.localhost`, ...mail })
      const { body } = await eventually(
        () => ofIdentities("GET", `${handle}/messages`),
        ({ body }) => body.messages[0]?.subject === mail.subject,
      )
      return body.messages[0]
    },
    /** Returns what the relay accepted for an address. */
    delivered: async (address: string) =>
      (await eventually(
        () => Promise.resolve(taken().find(({ to }) => to.includes(address))),
        (found) => found !== undefined,
      ))!,
    /** Opens a page below those of the Identities. */
    open: async (path: string, look: Look = {}) => {
      const { context, seen } = await openContext(browser, service.base, look, session)
      const page = await context.newPage()
      await page.goto(`${service.base}/console/identities/${path}`)
      await heading(page).waitFor()
      return { context, page, seen }
    },
    stop: closeContexts,
  }
}

export const draftKept = (page: Page) => page.getByText("Draft saved").waitFor()
