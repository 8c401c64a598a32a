/** The frame of the service's plain pages: readable without script, in light and dark, cached by nobody. */
import { HttpServerResponse } from "effect/http"

export const escape = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")

/** Text with what stands between backticks as code. */
export const withCode = (text: string): string => escape(text).replace(/`([^`]*)`/g, "<code>$1</code>")

export const product = "Agent Identity Service"

const style = `
  :root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --accent: light-dark(#1a56db, #8ab4ff) }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 0 1.25rem 4rem; overflow-wrap: break-word }
  .top { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: center; padding: 1rem 0; margin-bottom: 7vh; border-bottom: 1px solid var(--line) }
  .top a { color: inherit; text-decoration: none } .top a:hover { text-decoration: underline }
  .home { font-weight: 600; display: flex; gap: .5rem; align-items: center; margin-right: auto } .home img { width: 1.4rem; height: 1.4rem }
  h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem }
  code, pre { font: 0.9em ui-monospace, monospace }
  pre { border: 1px solid var(--line); border-radius: 6px; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere }
  dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .35rem 1rem; border-top: 1px solid var(--line); padding-top: 1rem }
  dt { opacity: .7 } dd { margin: 0; min-width: 0 }
  h2 { font-size: 1.15rem; margin: 2rem 0 .75rem } h3 { font-size: 1rem; margin: 0 }
  a { color: var(--accent) }
  input:not([type]), input[type=email] { font: inherit; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: 6px; width: min(22rem, 100%); box-sizing: border-box; background: transparent; color: inherit }
  .profile { display: flex; gap: 1rem; align-items: center; margin-bottom: 1rem } .profile div { min-width: 0 } .profile h1, .profile p { margin: 0 }
  .avatar { flex: none; width: 3.5rem; height: 3.5rem; border-radius: 50%; background: #1a56db; color: #fff; display: grid; place-items: center; font-size: 1.6rem }
  .handle { opacity: .8 } .badge, .tags span { border: 1px solid var(--line); border-radius: 999px; padding: .05rem .55rem; font-size: .8rem }
  .lead { font-size: 1.1rem } .told { border-left: 3px solid var(--accent); padding-left: .75rem }
  .skills { list-style: none; padding: 0; display: grid; gap: .75rem } .skills li { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem } .skills p { margin: .25rem 0 }
  blockquote { margin: .4rem 0 0; padding-left: .75rem; border-left: 3px solid var(--line); font-size: .95em }
  button, .button { font: inherit; padding: .55rem 1.1rem; border-radius: 6px; border: 0; background: #1a56db; color: #fff; cursor: pointer; text-decoration: none; display: inline-block }
  button.quiet { background: transparent; color: inherit; border: 1px solid var(--line) }
  fieldset { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: .5rem 1rem .75rem } legend { font-weight: 600; padding: 0 .35rem }
  fieldset label { display: block; margin: .3rem 0 } .within { margin: .2rem 0 .2rem 1.75rem } .within label { display: inline-block; margin-right: 1rem }
  .receiver { font-size: 1.6rem; font-weight: 700; margin: 0; overflow-wrap: anywhere } .warning { border-left: 3px solid #c2410c; padding-left: .75rem }
  details summary { cursor: pointer } .small { font-size: .9rem; opacity: .8 }
  @media (max-width: 30rem) { dl { grid-template-columns: minmax(0, 1fr); gap: 0 } dd { margin-bottom: .6rem } }
`

const head = `<header class="top"><a class="home" href="/"><img src="/icon.svg" alt="">${product}</a><a href="/api/docs">Documentation</a><a href="/auth/sign-in">Sign in</a></header>`

/** `body` is HTML; whatever came from outside has been through {@link escape}. */
export const page = (options: {
  readonly title: string
  readonly body: string
  readonly status?: number
  readonly lang?: string
  readonly description?: string
  /** Where the browser goes on to, by itself; the page has a link to it as well. */
  readonly onward?: string
  /** What makes no answer of the caller's own may be kept for as long as it is asked for again. */
  readonly forEveryone?: boolean
}) =>
  HttpServerResponse.text(
    `<!doctype html><html lang="${options.lang ?? "en"}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="/icon.svg" type="image/svg+xml">${options.description === undefined || options.description === "" ? "" : `<meta name="description" content="${escape(options.description)}">`}${options.onward === undefined ? "" : `<meta http-equiv="refresh" content="0;url=${escape(options.onward)}">`}<title>${options.title === product ? product : `${escape(options.title)} · ${product}`}</title><style>${style}</style></head><body>${head}<main>${options.body}</main></body></html>`,
    {
      status: options.status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "cache-control": options.forEveryone === true ? "public, max-age=0, must-revalidate" : "no-store",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        // Other sites learn nothing of our addresses; our own forms still say where they come from (`Origin`).
        "referrer-policy": "same-origin",
      },
    },
  )
