/**
 * Address fields, read by the library. A message's are read several times, by those who show them, judge them and answer IMAP
 * of them, and one sender's are the same in message after message; so what was read of short ones lately is kept.
 */
import addressparser from "nodemailer/lib/addressparser"

type Parsed = ReturnType<typeof addressparser>
/** An address, or a group of them. */
export type Entry = Parsed[number]

/** Characters of a field that is kept; and fields, beyond which all are forgotten. */
const kept = { characters: 256, fields: 500 }

const reader = (parse: (value: string) => ReadonlyArray<Entry>) => {
  const known = new Map<string, ReadonlyArray<Entry>>()
  return (value: string): ReadonlyArray<Entry> => {
    if (value.length > kept.characters) return parse(value)
    const before = known.get(value)
    if (before !== undefined) return before
    const entries = parse(value)
    if (known.size >= kept.fields) known.clear()
    known.set(value, entries)
    return entries
  }
}

export const grouped = reader((value) => addressparser(value))

/** Groups as the addresses in them. */
export const flat = reader((value) => addressparser(value, { flatten: true }))
