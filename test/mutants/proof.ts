/** Planted bugs in `packages/cluster/src/proof` and its callers. */
import type { Mutants } from "./Mutant.ts"

export const proof: Mutants = {
  "rotated-key-kept": {
    file: "cluster/src/proof/KeyHandlers.ts",
    from: "update signing_key set sealed = null, retired_at",
    to: "update signing_key set retired_at",
    bug: "a rotated key can still sign",
    tests: ["proof/keys"],
  },
  "key-of-revoked-registrar": {
    file: "cluster/src/proof/SigningKeys.ts",
    from: "a.id = k.registered_by and a.revoked_at is null",
    to: "a.id = k.registered_by",
    bug: "a registered key stays published after the API key that registered it was revoked",
    tests: ["proof/keys"],
  },
  "possession-for-anybody": {
    file: "cluster/src/proof/Possession.ts",
    from: "        ...wanted,\n",
    to: "",
    bug: "a proof of possession made for another service or Identity is accepted",
    tests: ["proof/keys"],
  },
  "possession-for-ever": {
    file: "cluster/src/proof/Possession.ts",
    from: '        maxTokenAge: "5 minutes",\n',
    to: "",
    bug: "an old proof of possession is accepted",
    tests: ["proof/keys"],
  },
  "narrow-key-registers": {
    file: "api/src/proof/Proof.ts",
    from: "if (fallsShort(caller) !== undefined) {",
    to: "if (false) {",
    bug: "a narrowed key registers a key that has none of its limits",
    tests: ["proof/keys"],
  },
  "issuer-signs-at-once": {
    file: "cluster/src/sealing/KeyGenerations.ts",
    from: "now + settings.waitMillis",
    to: "now",
    bug: "a new key signs before verifiers can know it",
    tests: ["proof/issuer"],
  },
  "card-signed-in-stop": {
    file: "cluster/src/card/Cards.ts",
    from: "and stopped_at is not null) then null",
    to: "and false) then null",
    bug: "a card that is edited during a stop is signed",
    tests: ["proof/cards"],
  },
  "card-of-former-key": {
    file: "cluster/src/proof/KeyHandlers.ts",
    from: "  write.memory.delete(cachedKey)\n",
    to: "",
    bug: "the actor signs with a rotated key",
    tests: ["proof/cards"],
  },
  "card-signature-of-other-version": {
    file: "domain/src/card/CardSignature.ts",
    from: "stored?.basis === basis ?",
    to: "stored !== null ?",
    bug: "a card is served with the signature of another version",
    tests: ["proof/cards"],
  },
  "token-in-stop": {
    file: "cluster/src/proof/IdentityTokens.ts",
    from: "status = 'ready' and not stopped and valid",
    to: "status = 'ready' and valid",
    bug: "a stopped Identity gets tokens",
    tests: ["proof/tokens"],
  },
  "token-outlives-credential": {
    file: "cluster/src/proof/IdentityTokens.ts",
    from: "Math.min(issuedAt + request.seconds, Math.floor((caller.expiresAt?.getTime() ?? Infinity) / 1000))",
    to: "issuedAt + request.seconds",
    bug: "a token is valid after its credential has expired",
    tests: ["proof/tokens"],
  },
  "token-for-us": {
    file: "api/src/proof/Proof.ts",
    from: "if (isOurs(book, audience)) {",
    to: "if (false) {",
    bug: "a token of one service can be used at this one",
    tests: ["proof/tokens"],
  },
}
