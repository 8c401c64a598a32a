/** Device authorization (RFC 8628; interface.md "Device authorization", decisions.md "Resources"). */
import { Schema } from "effect"
import { Line, ShownUrl } from "../Text.ts"
import { RequestedScopes, ExpiresInDays } from "./KeyRights.ts"
import { Timestamp } from "../Timestamp.ts"

export const DeviceStart = Schema.Struct({
  /** Name of the new key. */
  name: Line(100),
  /** The client that starts the login, under a name that its user knows. */
  client: Schema.optionalKey(Schema.NullOr(Line(100))),
  /** Requested scopes; defaults to all scopes of the credential that approves. */
  scopes: Schema.optionalKey(RequestedScopes),
  /** Requested lifetime from approval on; the key does not expire if it is omitted. */
  expires_in_days: Schema.optionalKey(ExpiresInDays),
})
export type DeviceStart = typeof DeviceStart.Type

export const DeviceStarted = Schema.Struct({
  device_code: Schema.String,
  user_code: Schema.String,
  verification_uri: ShownUrl,
  verification_uri_complete: ShownUrl,
  expires_at: Timestamp,
  interval_seconds: Schema.Int,
}).annotate({ identifier: "DeviceStarted" })

export const DeviceStatus = Schema.Literals(["pending", "approved", "denied", "collected", "expired"])
export type DeviceStatus = typeof DeviceStatus.Type

export const DeviceView = Schema.Struct({
  user_code: Schema.String,
  name: Schema.String,
  client: Schema.NullOr(Schema.String),
  /** Requested scopes, or `*`. */
  scopes: Schema.Array(Schema.String),
  /** Requested lifetime; null for no expiry. */
  expires_in_days: Schema.NullOr(Schema.Int),
  status: DeviceStatus,
  created_at: Timestamp,
  expires_at: Timestamp,
}).annotate({ identifier: "DeviceView" })
export type DeviceView = typeof DeviceView.Type

/** Restrictions that the approver adds to the request. */
export const DeviceApproval = Schema.Struct({
  scopes: Schema.optionalKey(RequestedScopes),
  expires_in_days: Schema.optionalKey(ExpiresInDays),
})
export type DeviceApproval = typeof DeviceApproval.Type

/** Consonants without look-alikes, so that codes form no words. */
export const userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"

/** Normalizes a user code to its eight letters; returns undefined if it is not valid. */
export const userCodeOf = (spelling: string): string | undefined => {
  const letters = spelling.toUpperCase().replaceAll("-", "")
  return new RegExp(`^[${userCodeAlphabet}]{8}$`).test(letters) ? letters : undefined
}

/** Formats a user code for people: `WDJB-MJHT`. */
export const displayUserCode = (letters: string) => `${letters.slice(0, 4)}-${letters.slice(4)}`

export const deviceMillis = 15 * 60_000
export const pollSeconds = 5
