/** The Terms that sign-up accepts. */
import { Effect, type Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { escape, page } from "./Page.ts"

export interface Terms {
  readonly version: string
  /** The operator's own text; ours stands where there is none. */
  readonly url: Option.Option<string>
}

const terms = (version: string) =>
  page({
    title: "Terms of Service",
    description: "What the service does, what is not allowed, what happens to your data, and how it ends.",
    forEveryone: true,
    body: `<h1>Terms of Service</h1><p>Version ${escape(version)}</p>
<h2>What the service does</h2><p>It gives software agents of an account holder a public identity: a name, a mailbox, a tunnel, a card, a vault and webhooks. The account holder answers for what these agents do.</p>
<h2>What is not allowed</h2><p>Unsolicited mail, deceiving anyone about who or what an agent is, taking the name of someone else, and anything unlawful. Every message that an agent sends says that an agent wrote it.</p>
<h2>Your data</h2><p>It is yours. It is kept to run the service and for nothing else, can be taken along as an export at any time, and is deleted with the account. Names stay reserved, so that nobody is taken for somebody else later.</p>
<h2>Ending</h2><p>The account holder can delete the account at any time. The operator may stop an identity that breaks these Terms.</p>
<h2>Changes</h2><p>A new version has a new number and the day from which the console asks for it. The API goes on meanwhile.</p>`,
  })

export const layer = (of: Terms) =>
  HttpRouter.add(
    "GET",
    "/terms",
    Effect.succeed(
      of.url._tag === "Some" ? HttpServerResponse.redirect(of.url.value, { status: 302 }) : terms(of.version),
    ),
  )
