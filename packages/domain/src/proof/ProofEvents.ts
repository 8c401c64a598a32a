/** The data of Events about the keys and the sign-ins of an Identity. */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"

const Key = Schema.Struct({ kid: Schema.String, name: Schema.NullOr(Schema.String) })

const SignIn = { sign_in_id: Schema.String, site: Schema.String, client_name: Schema.String }
const Decided = Schema.Struct({ ...SignIn, by: Schema.Union([CredentialKind, Schema.Literal("system")]) })

export const proofEvents = {
  "proof.key_added": Key.annotate({ description: "The agent registered a public key." }),
  "proof.key_removed": Key.annotate({ description: "A public key was removed." }),
  "proof.key_rotated": Schema.Struct({ kid: Schema.String, replaces: Schema.NullOr(Schema.String) }).annotate({
    description: "The key with which the service signs for the Identity was replaced.",
  }),
  "proof.token_refused": Schema.Struct({ audience: Schema.String }).annotate({
    description:
      "A token was refused because the Identity may not have one for this audience. Raised at most once an hour for an audience, and at most ten times an hour; the audit log has every refusal.",
  }),
  "identity.sign_in_requested": Schema.Struct(SignIn).annotate({
    description: "The agent wants to sign in at a site that needs approval.",
  }),
  "identity.sign_in_approved": Decided.annotate({
    description: "A sign-in was approved. The agent can post it again.",
  }),
  "identity.sign_in_refused": Decided.annotate({ description: "A sign-in was refused." }),
  "identity.signed_in": Schema.Struct({ ...SignIn, scopes: Schema.Array(Schema.String) }).annotate({
    description: "The agent signed in at a site.",
  }),
} as const
