/** Documents in which {@link module:Server} describes itself. Old versions and servers like Pleroma have fewer of them. */
import type { Settings } from "./Settings.ts"

const versions: { readonly [K in Settings["kind"]]: string } = {
  mastodon: "3.5.19",
  pleroma: "2.7.2 (compatible; Pleroma 2.6.0)",
  gotosocial: "0.19.1+git-1234567",
  snac: "4.0.0 (not true; really snac/2.75)",
}

export const documents = (
  base: string,
  characters: number,
  { kind, old, streaming }: Pick<Settings, "kind" | "old" | "streaming">,
): Record<string, unknown> => ({
  ...(old === true || kind !== "mastodon"
    ? {}
    : {
        "GET /.well-known/oauth-authorization-server": {
          issuer: `${base}/`,
          authorization_endpoint: `${base}/oauth/authorize`,
          token_endpoint: `${base}/oauth/token`,
          revocation_endpoint: `${base}/oauth/revoke`,
          code_challenge_methods_supported: ["S256"],
        },
      }),
  ...(old === true || kind === "pleroma" || kind === "snac"
    ? {}
    : {
        "GET /api/v2/instance": {
          domain: new URL(base).host,
          version: kind === "mastodon" ? "4.5.0" : versions[kind],
          configuration: {
            urls: streaming === undefined ? {} : { streaming: base.replace("http", "ws") },
            statuses: { max_characters: characters, max_media_attachments: 4, characters_reserved_per_url: 23 },
            media_attachments: { supported_mime_types: ["image/png", "image/jpeg"], image_size_limit: 16_777_216 },
          },
        },
      }),
  "GET /api/v1/instance": {
    uri: new URL(base).host,
    version: versions[kind],
    max_toot_chars: characters,
    urls: streaming === undefined ? {} : { streaming_api: base.replace("http", "ws") },
  },
  "GET /api/v1/instance/rules": [
    { id: "1", text: "Be kind", hint: "" },
    { id: "2", text: "Say that you are a machine", hint: "In the profile" },
  ],
})
