/** The keys with which others verify Identities, and what Identities prove with them. */
import { Addresses } from "@svc/domain/Addresses"
import { Effect } from "effect"
import { type Capability, cascades, exportedRows } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { IdentityTokens } from "./IdentityTokens.ts"
import { IssuerKeys } from "./IssuerKeys.ts"
import * as KeyHandlers from "./KeyHandlers.ts"
import { RequestSignatures } from "./RequestSignatures.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { SignIns } from "./SignIns.ts"
import { SignInTokens } from "./SignInTokens.ts"

const member = "signing-keys.jsonl"
const settings = "proof.jsonl"
const signIns = "sign-ins.jsonl"

export const proof = {
  name: "proof",
  handlers: ({ handling }) =>
    Effect.map(Effect.all({ book: Addresses, sealing: Sealing }), (signer) => KeyHandlers.handlers(handling, signer)),
  work: { identity: [], org: [] },
  queries: [
    SigningKeys.layer,
    IssuerKeys.layer,
    IdentityTokens.layer,
    RequestSignatures.layer,
    SignIns.layer,
    SignInTokens.layer,
  ],
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
    exportedRows(
      signIns,
      Effect.fnUntraced(function* ({ id }) {
        const { list } = yield* SignIns
        return yield* Cursors.all((request) => list(id, request))
      }),
    ),
  ],
  tables: {
    signing_key: cascades(member),
    proof_setting: cascades(settings),
    agent_sign_in: cascades(signIns),
  },
} satisfies Capability
