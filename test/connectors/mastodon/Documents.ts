/** What {@link module:Server} says of itself; an old one, or one of Pleroma's kind, says less. */
export const documents = (base: string, characters: number, old: boolean): Record<string, unknown> => ({
  ...(old
    ? {}
    : {
        "GET /.well-known/oauth-authorization-server": {
          issuer: `${base}/`,
          authorization_endpoint: `${base}/oauth/authorize`,
          token_endpoint: `${base}/oauth/token`,
          revocation_endpoint: `${base}/oauth/revoke`,
          code_challenge_methods_supported: ["S256"],
        },
        "GET /api/v2/instance": {
          domain: new URL(base).host,
          version: "4.5.0",
          configuration: {
            statuses: { max_characters: characters, max_media_attachments: 4, characters_reserved_per_url: 23 },
            media_attachments: { supported_mime_types: ["image/png", "image/jpeg"], image_size_limit: 16_777_216 },
          },
        },
      }),
  "GET /api/v1/instance": {
    uri: new URL(base).host,
    version: "2.7.2 (compatible; Pleroma 2.6.0)",
    max_toot_chars: characters,
  },
  "GET /api/v1/instance/rules": [
    { id: "1", text: "Be kind", hint: "" },
    { id: "2", text: "Say that you are a machine", hint: "In the profile" },
  ],
})
