/** The DKIM keys in the store. */
import { DkimKeys, type ListedKey } from "@svc/cluster/mail/dkim/DkimKeys"
import { Effect } from "effect"
import type { Settings } from "../serve/Settings.ts"
import { withStored } from "../serve/StoredKeys.ts"

/** Lists the keys, and creates them if necessary. */
export const listed = (settings: Settings, rotate: boolean) =>
  withStored(
    settings,
    DkimKeys.layer,
    Effect.flatMap(DkimKeys, (keys) =>
      rotate
        ? keys.rotate(settings.mailDomain)
        : Effect.andThen(keys.ensure(settings.mailDomain), keys.list(settings.mailDomain)),
    ),
  )

/** Splits a value into TXT strings of at most 255 bytes (RFC 1035 section 3.3.14). */
const strings = (text: string) =>
  text
    .match(/.{1,250}/g)!
    .map((one) => `"${one}"`)
    .join(" ")

const day = (date: Date) => date.toISOString().slice(0, 10)

const saying = ({ state, at }: ListedKey): string =>
  ({
    waiting: `publish it now: used for signing once it is visible, by ${day(at)} at the latest`,
    signing: "signs",
    retired: `no longer used for signing; keep it until ${day(at)}`,
    past: "can be removed",
  })[state]

/** Formats the records as lines of a zone file. */
export const printed = (keys: ReadonlyArray<ListedKey>): string =>
  keys.map((key) => `; ${key.selector}: ${saying(key)}\n${key.name}.  TXT  (${strings(key.record)})\n`).join("\n")
