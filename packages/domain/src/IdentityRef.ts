/**
 * A reference to an Identity that the holder may act on. Its id is branded and cannot be constructed from text: only
 * the policy check of a request and the cluster's own queries return one. A function that takes an {@link IdentityId}
 * can therefore not receive unchecked input.
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
