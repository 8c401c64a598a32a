/** The data of Events about the keys of an Identity. */
import { Schema } from "effect"

const Key = Schema.Struct({ kid: Schema.String, name: Schema.NullOr(Schema.String) })

export const proofEvents = {
  "signing_key.added": Key.annotate({ description: "The agent registered a public key." }),
  "signing_key.removed": Key.annotate({ description: "A public key was removed." }),
  "signing_key.rotated": Schema.Struct({ kid: Schema.String, replaces: Schema.NullOr(Schema.String) }).annotate({
    description: "The key with which the service signs for the Identity was replaced.",
  }),
  "token.refused": Schema.Struct({ audience: Schema.String }).annotate({
    description:
      "A token was refused because the Identity may not have one for this audience. Raised at most once an hour for an audience, and at most ten times an hour; the audit log has every refusal.",
  }),
} as const
