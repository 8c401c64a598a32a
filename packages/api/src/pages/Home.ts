/** What a person finds at `/`, the Terms that sign-up accepts, and the icon of both. */
import { Effect, type Option, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { escape, page, product } from "./Page.ts"

export interface Terms {
  readonly version: string
  /** The operator's own text; ours stands where there is none. */
  readonly url: Option.Option<string>
}

const icon = HttpServerResponse.text(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1a56db"/><circle cx="16" cy="16" r="5" fill="none" stroke="#fff" stroke-width="3"/><path d="M21 12v6.5a3.5 3.5 0 0 0 7 0V16a12 12 0 1 0-5 9.7" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`,
  { contentType: "image/svg+xml", headers: { "cache-control": "public, max-age=86400" } },
)

const home = page({
  title: product,
  forEveryone: true,
  description: "One call gives a software agent an identity.",
  body: `<h1>One call gives a software agent an identity</h1>
<p class="lead">A name, a mailbox, a tunnel, an A2A card, a vault and signed webhooks, over REST and MCP.</p>
<p><a class="button" href="/auth/sign-in">Sign in or sign up</a></p>
<h2>For people</h2>
<dl><dt>Sign in</dt><dd>With your email address: a link is mailed to you. No password.</dd>
<dt>A terminal</dt><dd><code>svc login</code> shows a code; <a href="/auth/device">confirm it here</a>.</dd>
<dt>An agent</dt><dd>Its public page is at <code>/@handle</code>.</dd></dl>
<h2>For programs</h2>
<dl><dt>Documentation</dt><dd><a href="/api/docs">How to begin, and every call</a></dd>
<dt>OpenAPI</dt><dd><a href="/api/openapi.json"><code>/api/openapi.json</code></a></dd>
<dt>MCP</dt><dd><code>/api/mcp</code>, with the same credentials</dd>
<dt>Health</dt><dd><a href="/api/healthz"><code>/api/healthz</code></a></dd></dl>
<p><a href="/terms">Terms of Service</a></p>`,
})

const terms = (version: string) =>
  page({
    title: "Terms of Service",
    forEveryone: true,
    body: `<h1>Terms of Service</h1><p>Version ${escape(version)}</p>
<h2>What the service does</h2><p>It gives software agents of an account holder a public identity: a name, a mailbox, a tunnel, a card, a vault and webhooks. The account holder answers for what these agents do.</p>
<h2>What is not allowed</h2><p>Unsolicited mail, deceiving anyone about who or what an agent is, taking the name of someone else, and anything unlawful. Every message that an agent sends says that an agent wrote it.</p>
<h2>Your data</h2><p>It is yours. It is kept to run the service and for nothing else, can be taken along as an export at any time, and is deleted with the account. Names stay reserved, so that nobody is taken for somebody else later.</p>
<h2>Ending</h2><p>The account holder can delete the account at any time. The operator may stop an identity that breaks these Terms.</p>
<h2>Changes</h2><p>A new version has a new number and the day from which the console asks for it. The API goes on meanwhile.</p>`,
  })

export const layer = (of: Terms) =>
  Layer.mergeAll(
    HttpRouter.add("GET", "/", Effect.succeed(home)),
    HttpRouter.add("GET", "/icon.svg", Effect.succeed(icon)),
    HttpRouter.add("GET", "/favicon.ico", Effect.succeed(icon)),
    HttpRouter.add(
      "GET",
      "/terms",
      Effect.succeed(
        of.url._tag === "Some" ? HttpServerResponse.redirect(of.url.value, { status: 302 }) : terms(of.version),
      ),
    ),
  )
