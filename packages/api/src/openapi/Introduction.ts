/** What the document begins with: how to get from nothing to a first message, and what holds for every call. */
export const introduction = `An identity for every software agent: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks.

## Getting started

1. **Sign up.** Ask for a magic link and exchange its token for a session. In Development the answer carries the link (\`dev_magic_link\`), elsewhere it comes by mail.

\`\`\`sh
curl -s $BASE/api/auth/magic-link -H 'content-type: application/json' \\
  -d '{"email":"you@example.org","tos_accepted":true}'
curl -s $BASE/api/auth/magic-link/consume -H 'content-type: application/json' -d '{"token":"…"}'
\`\`\`

2. **Make an Admin Key** for your programs, with the \`session_token\` of that answer.

\`\`\`sh
curl -s $BASE/api/keys -H "authorization: Bearer $SESSION" -H 'content-type: application/json' -d '{"name":"laptop"}'
\`\`\`

3. **Create an Identity**, and read it until its \`status\` is \`ready\`. Then its own key and mailbox password can be read, for an hour or until they are acknowledged.

\`\`\`sh
curl -s $BASE/api/identities -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '{"handle":"ada"}'
curl -s $BASE/api/identities/ada -H "authorization: Bearer $KEY"
curl -s $BASE/api/identities/ada/identity-key -H "authorization: Bearer $KEY"
\`\`\`

4. **Wait for mail** to \`ada@…\`, or register a Webhook and be told.

\`\`\`sh
curl -s "$BASE/api/identities/ada/messages?wait=60" -H "authorization: Bearer $KEY"
\`\`\`

## What holds for every call

- The credential goes into \`Authorization: Bearer …\`: a console session, an Admin Key, or an Identity Key, which may act on its own Identity only. The Org is in no address.
- Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`, a \`doc_url\` and an \`agent_hint\`: \`fix_call\`, \`wait\` or \`stop\`.
- The body of a request has at most 1 MiB; one that sends a message or keeps a draft 10 MiB, one that posts or sends a direct message through a Connector 8 MiB, a tool's call over MCP what its endpoint takes, one without a credential 64 KiB. More is 413 \`payload_too_large\`.
- Unknown members of a request are refused. Answers may gain members: take no notice of those you do not know.
- A request other than GET with an \`Idempotency-Key\` can be repeated safely; a repeat's answer carries \`Idempotent-Replayed: true\`.
- Every answer carries \`request-id\`. Timestamps are RFC 3339 in UTC.`
