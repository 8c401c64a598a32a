/** Device login (RFC 8628; interface.md "Device authorization", decisions.md "Resources"). */
import { Schema } from "effect"
import { Line, ShownUrl } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

export const DeviceStart = Schema.Struct({
  /** The name the key will carry. */
  name: Line(100),
  /** What asks, as its user knows it. */
  client: Schema.optionalKey(Schema.NullOr(Line(100))),
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
  status: DeviceStatus,
  created_at: Timestamp,
  expires_at: Timestamp,
}).annotate({ identifier: "DeviceView" })
export type DeviceView = typeof DeviceView.Type

/** Consonants without look-alikes, so that no code is a word. */
export const userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"

/** The eight letters of a user code in any spelling; undefined where it is none. */
export const userCodeOf = (spelling: string): string | undefined => {
  const letters = spelling.toUpperCase().replaceAll("-", "")
  return new RegExp(`^[${userCodeAlphabet}]{8}$`).test(letters) ? letters : undefined
}

/** As people read it: `WDJB-MJHT`. */
export const displayUserCode = (letters: string) => `${letters.slice(0, 4)}-${letters.slice(4)}`

export const deviceMillis = 15 * 60_000
export const pollSeconds = 5
