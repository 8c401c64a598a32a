/**
 * An Identity as those hold it who may act on it. Its id is branded and nothing makes one of a text: it comes out of the
 * store only, by the policy's judgement of a request or by a query of the cluster's own, so what takes an
 * {@link IdentityId} cannot be handed what a caller wrote.
 */
import { type Brand, Schema } from "effect"

export const IdentityStatus = Schema.Literals(["provisioning", "ready", "failed", "deleting"])
export type IdentityStatus = typeof IdentityStatus.Type

export type IdentityId = Brand.Branded<string, "IdentityId">

export interface IdentityRef {
  readonly id: IdentityId
  readonly handle: string
  readonly canonical: string
  readonly status: IdentityStatus
}
