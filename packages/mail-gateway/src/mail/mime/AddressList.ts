/**
 * Parses address fields with the library, and caches recent short ones: a message's fields are parsed several times
 * (display, verdict, IMAP), and those of a sender repeat from message to message.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import addressparser from "nodemailer/lib/addressparser"

type Parsed = ReturnType<typeof addressparser>
/** An address, or a group of addresses. */
export type Entry = Parsed[number]

/** The maximum length of a cached field in characters, and the maximum number of cached fields. */
const cacheLimits = { characters: 256, fields: 500 }

const reader = (parse: (value: string) => ReadonlyArray<Entry>) => {
  const known = new BoundedMap<string, ReadonlyArray<Entry>>(cacheLimits.fields)
  return (value: string): ReadonlyArray<Entry> => {
    if (value.length > cacheLimits.characters) return parse(value)
    const cached = known.get(value)
    if (cached !== undefined) return cached
    const entries = parse(value)
    known.set(value, entries)
    return entries
  }
}

export const grouped = reader((value) => addressparser(value))

/** Returns groups as their member addresses. */
export const flat = reader((value) => addressparser(value, { flatten: true }))
