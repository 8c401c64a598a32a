/** The introduction of the document: from sign-up to the first message, and the conventions of every call. */
export const introduction = `An identity for every software agent: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks.

## Getting started

1. **Sign up.** Request a magic link and exchange its token for a session. In development the response contains the link (\`dev_magic_link\`); in production it is sent by mail.

\`\`\`sh
curl -s $BASE/api/auth/magic-link -H 'content-type: application/json' \\
  -d '{"email":"you@example.org","tos_accepted":true}'
curl -s $BASE/api/auth/magic-link/consume -H 'content-type: application/json' -d '{"token":"…"}'
\`\`\`

2. **Create an Admin Key** for your programs, with the \`session_token\` of the response.

\`\`\`sh
curl -s $BASE/api/keys -H "authorization: Bearer $SESSION" -H 'content-type: application/json' -d '{"name":"laptop"}'
\`\`\`

3. **Create an Identity**, and poll it until its \`status\` is \`ready\`. Its key and mailbox password can then be read for an hour, or until you acknowledge them.

\`\`\`sh
curl -s $BASE/api/identities -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '{"handle":"ada"}'
curl -s $BASE/api/identities/ada -H "authorization: Bearer $KEY"
curl -s $BASE/api/identities/ada/identity-key -H "authorization: Bearer $KEY"
\`\`\`

4. **Wait for mail** to \`ada@…\`, or register a Webhook.

\`\`\`sh
curl -s "$BASE/api/identities/ada/messages?wait=60" -H "authorization: Bearer $KEY"
\`\`\`

## Conventions

- Send the credential as \`Authorization: Bearer …\`: a console session, an Admin Key, or an Identity Key, which may only act on its own Identity. URLs do not contain the Org.
- Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`, a \`doc_url\` and an \`agent_hint\`: \`fix_call\`, \`wait\` or \`stop\`.
- A request body may have up to 1 MiB: 10 MiB to send a message or store a draft, 8 MiB to post or send a direct message through a Connector, 64 KiB without a credential. A tool call over MCP has the limit of its endpoint. Larger bodies fail with 413 \`payload_too_large\`.
- Unknown members of a request are rejected. Responses may gain new members; ignore unknown ones.
- A request other than GET is safe to repeat with the same \`Idempotency-Key\`. The response to a repeat has \`Idempotent-Replayed: true\`.
- Every response has a \`request-id\` header. Timestamps are RFC 3339 in UTC.`
