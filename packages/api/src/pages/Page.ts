/** The frame of the service's plain pages: readable without script, in light and dark, cached by nobody. */
import { HttpServerResponse } from "effect/http"

export const escape = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")

const style = `
  :root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent) }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 42rem; margin: 12vh auto; padding: 0 1.25rem }
  h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem }
  code, pre { font: 0.9em ui-monospace, monospace }
  pre { border: 1px solid var(--line); border-radius: 6px; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1rem; border-top: 1px solid var(--line); padding-top: 1rem }
  dt { opacity: .7 } dd { margin: 0 }
  h2 { font-size: 1.15rem; margin: 2rem 0 .75rem } h3 { font-size: 1rem; margin: 0 }
  a { color: light-dark(#1a56db, #8ab4ff) }
  input:not([type]), input[type=email] { font: inherit; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: 6px; width: min(22rem, 100%); background: transparent; color: inherit }
  .profile { display: flex; gap: 1rem; align-items: center; margin-bottom: 1rem } .profile h1, .profile p { margin: 0; overflow-wrap: anywhere }
  .avatar { flex: none; width: 3.5rem; height: 3.5rem; border-radius: 50%; background: #1a56db; color: #fff; display: grid; place-items: center; font-size: 1.6rem }
  .handle { opacity: .8 } .badge, .tags span { border: 1px solid var(--line); border-radius: 999px; padding: .05rem .55rem; font-size: .8rem; white-space: nowrap }
  .lead { font-size: 1.1rem } dd { overflow-wrap: anywhere; min-width: 0 }
  .skills { list-style: none; padding: 0; display: grid; gap: .75rem } .skills li { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem } .skills p { margin: .25rem 0 }
  blockquote { margin: .4rem 0 0; padding-left: .75rem; border-left: 3px solid var(--line); font-size: .95em }
  button.quiet { background: transparent; color: inherit; border: 1px solid var(--line) }
  button { font: inherit; padding: .55rem 1.1rem; border-radius: 6px; border: 0; background: #1a56db; color: #fff; cursor: pointer }
`

/** `body` is HTML; whatever came from outside has been through {@link escape}. */
export const page = (options: {
  readonly title: string
  readonly body: string
  readonly status?: number
  readonly lang?: string
  readonly description?: string
}) =>
  HttpServerResponse.text(
    `<!doctype html><html lang="${options.lang ?? "en"}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${options.description === undefined || options.description === "" ? "" : `<meta name="description" content="${escape(options.description)}">`}<title>${escape(options.title)}</title><style>${style}</style></head><body><main>${options.body}</main></body></html>`,
    {
      status: options.status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "cache-control": "no-store",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        // Other sites learn nothing of our addresses; our own forms still say where they come from (`Origin`).
        "referrer-policy": "same-origin",
      },
    },
  )
