/** Maps IMAP flags (RFC 9051 section 2.3.2) to the flags and labels of messages: a label is a keyword. */
import { Label, limits } from "@svc/domain/mail/Flags"
import { Schema } from "effect"
import type { FlagChange } from "./Store.ts"

/** System flags that every message can have. */
export const system = ["\\Answered", "\\Flagged", "\\Deleted", "\\Seen", "\\Draft"] as const

const marks = {
  "\\answered": "answered",
  "\\flagged": "flagged",
  "\\deleted": "deleted",
  "\\seen": "seen",
  "\\draft": "draft",
} as const

const isMark = (flag: string): flag is keyof typeof marks => Object.hasOwn(marks, flag)
const isLabel = Schema.is(Label)

/** Keywords whose spelling clients expect (IANA registry); labels are lower case. */
const spelled = new Map(
  [
    "$Forwarded",
    "$MDNSent",
    "$Junk",
    "$NotJunk",
    "$Phishing",
    "$Important",
    "$SubmitPending",
    "$Submitted",
    "Junk",
    "NonJunk",
    "Forwarded",
  ].map((keyword) => [keyword.toLowerCase(), keyword]),
)

export const keyword = (label: string): string => spelled.get(label) ?? label

export interface Marks {
  readonly seen: boolean
  readonly flagged: boolean
  readonly answered: boolean
  readonly deleted: boolean
  readonly draft: boolean
  readonly labels: ReadonlyArray<string>
  /** The subaddress tags of the recipients; shown as read-only keywords. */
  readonly tags: ReadonlyArray<string>
}

export const shown = ({ seen, flagged, answered, deleted, draft, labels, tags }: Marks): ReadonlyArray<string> => {
  const flags: Array<string> = []
  if (answered) flags.push("\\Answered")
  if (flagged) flags.push("\\Flagged")
  if (deleted) flags.push("\\Deleted")
  if (seen) flags.push("\\Seen")
  if (draft) flags.push("\\Draft")
  for (const label of labels) flags.push(keyword(label))
  for (const tag of tags) if (isLabel(tag) && !labels.includes(tag)) flags.push(tag)
  return flags
}

/** Whether a change names more keywords than a message can have. */
export const areTooMany = ({ add_labels, labels, remove_labels }: FlagChange): boolean =>
  [add_labels, labels, remove_labels].some((some) => some !== undefined && some.length > limits.labels)

/** Returns the change that the flags of STORE or APPEND mean, or undefined if a flag is invalid. */
export const change = (how: "set" | "add" | "remove", flags: ReadonlyArray<string>): FlagChange | undefined => {
  const wanted = flags.map((flag) => flag.toLowerCase())
  const named = wanted.filter(isMark)
  const labels = [...new Set(wanted.filter((flag) => !flag.startsWith("\\")))]
  // \Recent is set by the server; other system flags are unknown.
  if (wanted.some((flag) => flag.startsWith("\\") && !isMark(flag) && flag !== "\\recent")) return undefined
  if (!labels.every((label) => isLabel(label))) return undefined
  const changed: { -readonly [Mark in (typeof marks)[keyof typeof marks]]?: boolean } = {}
  for (const [flag, mark] of Object.entries(marks)) {
    const isNamed = named.some((one) => one === flag)
    if (how === "set") changed[mark] = isNamed
    else if (isNamed) changed[mark] = how === "add"
  }
  if (how === "set") return { ...changed, labels }
  if (labels.length === 0) return changed
  return how === "add" ? { ...changed, add_labels: labels } : { ...changed, remove_labels: labels }
}
