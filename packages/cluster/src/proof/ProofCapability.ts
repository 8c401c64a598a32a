/** The keys with which others verify Identities. */
import { Addresses } from "@svc/domain/Addresses"
import { Effect } from "effect"
import { type Capability, cascades, exportedRows } from "../Capability.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { IdentityTokens } from "./IdentityTokens.ts"
import { IssuerKeys } from "./IssuerKeys.ts"
import * as KeyHandlers from "./KeyHandlers.ts"
import { RequestSignatures } from "./RequestSignatures.ts"
import { SigningKeys } from "./SigningKeys.ts"

const member = "signing-keys.jsonl"
const settings = "proof.jsonl"

export const proof = {
  name: "proof",
  handlers: ({ handling }) =>
    Effect.map(Effect.all({ book: Addresses, sealing: Sealing }), (signer) => KeyHandlers.handlers(handling, signer)),
  work: { identity: [], org: [] },
  queries: [SigningKeys.layer, IssuerKeys.layer, IdentityTokens.layer, RequestSignatures.layer],
  exports: [
    exportedRows(
      settings,
      Effect.fnUntraced(function* ({ id }) {
        return [yield* (yield* IdentityTokens).settings(id)]
      }),
    ),
    exportedRows(
      member,
      Effect.fnUntraced(function* ({ id }) {
        return yield* (yield* SigningKeys).list(id)
      }),
    ),
  ],
  tables: { signing_key: cascades(member), proof_setting: cascades(settings) },
} satisfies Capability
