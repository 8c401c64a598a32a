/**
 * The account's profile (`app.bsky.actor.profile`) and its automation disclosure: the self-label `bot` and a line in the
 * description. All other members of the record are kept, including unknown ones, and a write only replaces the version
 * that was read (`swapRecord`).
 */
import { ComAtprotoLabelDefs, UnicodeString, XRPCError } from "@atproto/api"
import { Effect, Option, Schema } from "effect"
import { type PlatformFailure, PlatformUnreachable } from "../Failure.ts"
import type { Disclosure } from "../Platform.ts"
import type { Connection } from "./Connection.ts"

const collection = "app.bsky.actor.profile"
const rkey = "self"
const label = "bot"

/** The lexicon's limits for descriptions. */
const descriptionGraphemes = 256
const descriptionBytes = 2_560

/** Number of attempts if the profile was changed elsewhere between the read and the write. */
const swaps = 5

type Fields = Readonly<Record<string, unknown>>

interface Profile {
  readonly record: Fields
  /** The record's version, or undefined if there is no record. */
  readonly cid: string | undefined
}

export const read = ({
  agent,
  call,
  did,
}: Pick<Connection, "agent" | "call" | "did">): Effect.Effect<Profile, PlatformFailure> =>
  call(() => agent.com.atproto.repo.getRecord({ repo: did, collection, rkey })).pipe(
    Effect.map(({ data }): Profile => ({ record: data.value as Fields, cid: data.cid })),
    Effect.catchTag("PlatformRefused", (refused) =>
      refused.missing === true
        ? Effect.succeed<Profile>({ record: { $type: collection }, cid: undefined })
        : Effect.fail(refused),
    ),
  )

/** Returns the display name, or null if it is empty. */
export const displayName = ({ record }: Profile): string | null =>
  typeof record["displayName"] === "string" && record["displayName"] !== "" ? record["displayName"] : null

export const isDisclosed = ({ labels }: Fields): boolean => valuesOf(labels).some(({ val }) => val === label)

const valuesOf = (labels: unknown): ReadonlyArray<ComAtprotoLabelDefs.SelfLabel> => {
  const read = ComAtprotoLabelDefs.validateSelfLabels(labels)
  return read.success ? read.value.values : []
}

const Changed = Schema.fromJsonString(Schema.Struct({ label: Schema.Boolean, line: Schema.NullOr(Schema.String) }))
type Changed = typeof Changed.Type

/** Marks the profile as automated. Returns what was changed, or undefined if the profile was already marked. */
export const disclose = (
  connection: Connection,
  line: string,
): Effect.Effect<Disclosure | undefined, PlatformFailure> =>
  rewrite(connection, (record) => {
    const described = withLine(descriptionOf(record), line)
    const changed: Changed = { label: !isDisclosed(record), line: described === undefined ? null : line }
    if (!changed.label && changed.line === null) return undefined
    return {
      record: {
        ...record,
        ...(changed.label ? { labels: selfLabels([...valuesOf(record["labels"]), { val: label }]) } : {}),
        ...(described === undefined ? {} : { description: described }),
      },
      answer: JSON.stringify(changed),
    }
  })

/** Reverts the changes of {@link disclose} that are still in the profile. */
export const undisclose = (connection: Connection, disclosure: Disclosure): Effect.Effect<void, PlatformFailure> => {
  const changed = Option.getOrElse(Schema.decodeOption(Changed)(disclosure), (): Changed => ({
    label: false,
    line: null,
  }))
  return Effect.asVoid(
    rewrite(connection, (record) => {
      const labelled = changed.label && isDisclosed(record)
      const described = changed.line === null ? undefined : withoutLine(descriptionOf(record), changed.line)
      if (!labelled && described === undefined) return undefined
      const { labels, description, ...rest } = record
      const left = labelled ? valuesOf(labels).filter(({ val }) => val !== label) : undefined
      const text = described ?? description
      return {
        record: {
          ...rest,
          ...(left === undefined
            ? labels === undefined
              ? {}
              : { labels }
            : left.length === 0
              ? {}
              : { labels: selfLabels(left) }),
          ...(text === undefined || text === "" ? {} : { description: text }),
        },
        answer: disclosure,
      }
    }),
  )
}

const selfLabels = (values: ReadonlyArray<ComAtprotoLabelDefs.SelfLabel>) => ({
  $type: "com.atproto.label.defs#selfLabels",
  values,
})

const descriptionOf = ({ description }: Fields) => (typeof description === "string" ? description : "")

/**
 * Returns the description with the line, or undefined if the line is already there or does not fit. The owner's own text
 * is never truncated.
 */
const withLine = (description: string, line: string): string | undefined => {
  if (description.split("\n").includes(line)) return undefined
  const longer = description === "" ? line : `${description}\n\n${line}`
  const measured = new UnicodeString(longer)
  return measured.length > descriptionBytes || measured.graphemeLength > descriptionGraphemes ? undefined : longer
}

const withoutLine = (description: string, line: string): string | undefined => {
  if (description === line) return ""
  const added = `\n\n${line}`
  if (description.endsWith(added)) return description.slice(0, -added.length)
  // The owner has moved the line.
  const lines = description.split("\n")
  const at = lines.indexOf(line)
  return at < 0 ? undefined : lines.toSpliced(at, 1).join("\n")
}

interface Rewritten {
  readonly record: Fields
  readonly answer: Disclosure
}

const rewrite = Effect.fnUntraced(function* (
  connection: Connection,
  change: (record: Fields) => Rewritten | undefined,
): Effect.fn.Return<Disclosure | undefined, PlatformFailure> {
  const { agent, call, did } = connection
  for (let tried = 0; tried < swaps; tried++) {
    const { record, cid } = yield* read(connection)
    const changed = change(record)
    if (changed === undefined) return undefined
    const put = { repo: did, collection, rkey, record: { ...changed.record }, swapRecord: cid ?? null }
    const swapped = yield* call(() =>
      agent.com.atproto.repo.putRecord(put).then(
        () => true,
        (error: unknown) => {
          if (error instanceof XRPCError && error.error === "InvalidSwap") return false
          throw error
        },
      ),
    )
    if (swapped) return changed.answer
  }
  return yield* new PlatformUnreachable({ message: "The profile is being changed elsewhere." })
})
