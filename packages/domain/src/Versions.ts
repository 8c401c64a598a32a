/**
 * The dated versions of the API (docs/versions.md). Handlers know only the newest version. A change of a representation that a client
 * could notice is declared here, as part of a new version, with the functions that translate between that version and the one before it.
 */
import { Context, Schema } from "effect"

/** A version as responses show it. */
export const VersionDate = Schema.String.annotate({ format: "date" })

/** A JSON object. */
// oxlint-disable-next-line typescript/no-explicit-any -- a change names the members that it translates
type Json = Record<string, any>

/** A change of the API between a version and the one before it. */
interface Change {
  /** The change and what a client does about it, for people. */
  readonly summary: string
  /** The operations that changed, by their ids in the OpenAPI document, such as `identities.read`. */
  readonly operations: ReadonlyArray<string>
  /**
   * Returns a successful response in the form of the version before. A body that already has this form stays as it is, because stored
   * responses to repeated requests can be older than the version.
   */
  readonly toOlderResponse?: (body: Json) => Json
  /** Returns the body of a request of the version before in the form of this version. */
  readonly toNewerRequest?: (body: Json) => Json
}

export interface DatedVersion {
  readonly version: string
  readonly changes: ReadonlyArray<Change>
}

/** The served versions, oldest first. */
const served: ReadonlyArray<DatedVersion> = [{ version: "2026-11-25", changes: [] }]

/** The version of the SDKs, of `svc`, and of new accounts. */
export const newestVersion = served.at(-1)!.version

/** The served versions. Tests replace them by versions with changes. */
export const Versions = Context.Reference<ReadonlyArray<DatedVersion>>("@svc/domain/Versions", {
  defaultValue: () => served,
})

/**
 * Returns the version that an account's setting stands for: the oldest served one if the set one is no longer served, and the newest one
 * if this process is older than the one that made the setting.
 */
export const versionOfSetting = (versions: ReadonlyArray<DatedVersion>, setting: string): string =>
  (versions.findLast(({ version }) => version <= setting) ?? versions[0]!).version

/** The translation of an operation between the newest version and an older one. */
export interface Translation {
  readonly request: ((body: Json) => Json) | undefined
  readonly response: ((body: Json) => Json) | undefined
}

const all = (steps: ReadonlyArray<(body: Json) => Json>) =>
  steps.length === 0 ? undefined : (body: Json) => steps.reduce((form, step) => step(form), body)

/** Returns the translation of an operation; undefined if it is the same in both versions, as nearly every operation is. */
export const translationOf = (
  versions: ReadonlyArray<DatedVersion>,
  version: string,
  operation: string,
): Translation | undefined => {
  const changes = versions
    .filter((one) => one.version > version)
    .flatMap((one) => one.changes.filter(({ operations }) => operations.includes(operation)))
  if (changes.length === 0) return undefined
  return {
    request: all(changes.flatMap(({ toNewerRequest }) => (toNewerRequest === undefined ? [] : [toNewerRequest]))),
    response: all(
      changes.flatMap(({ toOlderResponse }) => (toOlderResponse === undefined ? [] : [toOlderResponse])).toReversed(),
    ),
  }
}
