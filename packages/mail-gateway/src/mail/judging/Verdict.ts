/**
 * Everything that is computed from a message before it is stored: the verdict, the parsed content, and the bytes to
 * remove. No I/O except the given look-ups, so that it runs in a worker as well as in the process.
 */
import type { ParsedMail } from "@svc/domain/mail/Message"
import { type Arrival, judge as judgeOrigin, unjudged, type Verdict } from "../Origin.ts"
import { headOnly, parse } from "../ParsedMail.ts"
import { read, type Row } from "../mime/Header.ts"
import { index } from "../mime/Part.ts"
import { type Failure, read as readReport } from "../sending/BounceReport.ts"
import type { RecentVerdicts } from "./RecentVerdicts.ts"
import * as Results from "./Results.ts"
import type { Lookup } from "./Signatures.ts"

export interface Judgement extends Verdict {
  readonly parsed: ParsedMail
  /** The offsets of what is removed from the message, in order. */
  readonly cuts: ReadonlyArray<readonly [start: number, end: number]>
  /** For a message to a bounce address: the failed recipients that it reports. */
  readonly failures: ReadonlyArray<Failure>
}

/** The verdict of a message that its owner imported. */
const unverified: Verdict = {
  origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
  header: null,
}

export const judge = async (
  raw: Buffer,
  arrival: Arrival,
  lookup: Lookup,
  recent?: RecentVerdicts,
): Promise<Judgement> => {
  const root = index(raw)
  const forged = Results.forged(raw, root.rows, arrival.host)
  const parsed = parse(raw, { ...root, rows: root.rows.filter((row) => !forged.includes(row)) })
  if (arrival.isBounce === true) {
    return { ...unjudged, parsed, cuts: [], failures: readReport(raw, root, parsed.subject, parsed.text) }
  }
  // The parsed content is kept if the verdict fails.
  const verdict =
    arrival.isOnlyRead === true
      ? unverified
      : await judgeOrigin(raw, root, arrival, lookup, recent).catch(() => unjudged)
  return { ...verdict, parsed, cuts: cutsOf(forged), failures: [] }
}

/** Returns the minimal result for a message that crashed a worker. This is little work for any message. */
export const minimal = (raw: Buffer, host: string): Judgement => {
  const rows = read(raw, 0, raw.length).rows.filter(({ start, end }) => end - start <= 4_096)
  const forged = Results.forged(raw, rows, host)
  return { ...unjudged, parsed: headOnly(raw, rows), cuts: cutsOf(forged), failures: [] }
}

const cutsOf = (rows: ReadonlyArray<Row>) => rows.map(({ start, end }) => [start, end] as const)
