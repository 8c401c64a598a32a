/** Planted bugs in the end of what a credential made when the credential ends. */
import type { Mutants } from "./Mutant.ts"

export const creators: Mutants = {
  "webhook-outlasts-its-creator": {
    file: "cluster/src/webhooks/DeliveryQueue.ts",
    from: "if (error !== undefined) {",
    to: "if (error === ('none' as string)) {",
    bug: "a Webhook goes on delivering after the key or app that made it was revoked, has expired or was narrowed",
    tests: ["webhooks/creators"],
  },
  "webhook-stops-with-a-rotation": {
    file: "cluster/src/credentials/Creator.ts",
    from: "from successor s join api_key k on k.id = s.replaced_by",
    to: "from successor s join api_key k on k.id = s.replaced_by and false",
    bug: "a Webhook stops when the key that made it is rotated",
    tests: ["webhooks/creators"],
  },
  "webhook-ignores-revoked-successor": {
    file: "cluster/src/credentials/Creator.ts",
    from: "from successor where replaced_by is null",
    to: "from successor where id = ${made.id} and replaced_by is null",
    bug: "the end of a rotated key is not looked for at the key that replaced it",
    tests: ["webhooks/creators"],
  },
  "narrowed-grant-keeps-its-identities": {
    file: "cluster/src/credentials/Creator.ts",
    from: "when not (${made.identity} = any(g.identities)) then 'creator_narrowed' end",
    to: "end",
    bug: "a Webhook of an app goes on for an Identity that the app may no longer act on",
    tests: ["webhooks/creators"],
  },
  "identity-key-rotation-stops-webhooks": {
    file: "cluster/src/credentials/IdentityKeys.ts",
    from: "${revokeAll(write, key.id)}",
    to: "${revokeAll(write)}",
    bug: "a rotation of the Identity Key stops the Webhooks that the former one made",
    tests: ["webhooks/creators"],
  },
  "identity-key-rotation-widens": {
    file: "cluster/src/credentials/CredentialMint.ts",
    from: "case when scopes = ${everything} and expires_at is null and networks is null",
    to: "case when scopes is not null",
    bug: "a rotation of the Identity Key replaces keys with fewer rights by one with all rights, so their Webhooks go on",
    tests: ["webhooks/creators"],
  },
  "webhook-adopted-by-any-change": {
    file: "cluster/src/webhooks/Webhooks.ts",
    from: "const adopter = adopts(change.patch)",
    to: "const adopter = adopts({ status: 'active', ...change.patch })",
    bug: "a change of the description adopts a Webhook without a look at what its creator may read",
    tests: ["webhooks/creators"],
  },
  "webhook-redirected-without-adoption": {
    file: "cluster/src/webhooks/Webhooks.ts",
    from: "status = ${after.status}, version = version + 1${adopter}",
    to: "status = ${after.status}, version = version + 1",
    bug: "a key redirects a Webhook of the account holder, which goes on after the key was revoked",
    tests: ["webhooks/creators"],
  },
  "device-key-of-a-revoked-approver": {
    file: "cluster/src/account/Devices.ts",
    from: "if (endOf(minted) !== null) {",
    to: "if (minted.id === 'none') {",
    bug: "a device login that a revoked key approved still hands out its key",
    tests: ["account/devices"],
  },
  "webhook-adopted-by-nobody": {
    file: "cluster/src/webhooks/Webhooks.ts",
    from: "creator_kind = ${by.kind}::text, creator_id = ${by.credentialId}::uuid`\n    : sql``",
    to: "creator_kind = ${by.kind}::text`\n    : sql``",
    bug: "A Webhook stops as soon as a key redirects it",
    tests: ["webhooks/creators"],
  },
}
