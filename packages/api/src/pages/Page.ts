/** The frame of the service's plain pages: readable without script, in light and dark, cached by nobody. */
import { HttpServerResponse } from "effect/http"

export const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const style = `
  :root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent) }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 42rem; margin: 12vh auto; padding: 0 1.25rem }
  h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem }
  code, pre { font: 0.9em ui-monospace, monospace }
  pre { border: 1px solid var(--line); border-radius: 6px; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1rem; border-top: 1px solid var(--line); padding-top: 1rem }
  dt { opacity: .7 } dd { margin: 0 }
  button { font: inherit; padding: .55rem 1.1rem; border-radius: 6px; border: 0; background: #1a56db; color: #fff; cursor: pointer }
`

/** `body` is HTML; whatever came from outside has been through {@link escape}. */
export const page = (options: {
  readonly title: string
  readonly body: string
  readonly status?: number
  readonly lang?: string
}) =>
  HttpServerResponse.text(
    `<!doctype html><html lang="${options.lang ?? "en"}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escape(options.title)}</title><style>${style}</style></head><body><main>${options.body}</main></body></html>`,
    {
      status: options.status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "cache-control": "no-store",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
      },
    },
  )
