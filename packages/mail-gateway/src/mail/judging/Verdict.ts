/**
 * All that is made of one message before it is stored: the verdict, what it says, and which of its bytes must not be
 * kept. No I/O but the look-ups it is given, so that it runs in a thread as well as in process.
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
  /** Offsets of what is taken out of the message, in order. */
  readonly cuts: ReadonlyArray<readonly [start: number, end: number]>
  /** Of what came to a bounce address: whom our mail did not reach. */
  readonly failures: ReadonlyArray<Failure>
}

/** Of what its owner brought in himself. */
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
  // A verdict that cannot be had is no reason to lose what was read.
  const verdict =
    arrival.isOnlyRead === true
      ? unverified
      : await judgeOrigin(raw, root, arrival, lookup, recent).catch(() => unjudged)
  return { ...verdict, parsed, cuts: cutsOf(forged), failures: [] }
}

/** What is kept of a message that a judge did not survive: little work, whatever the message is. */
export const spared = (raw: Buffer, host: string): Judgement => {
  const rows = read(raw, 0, raw.length).rows.filter(({ start, end }) => end - start <= 4_096)
  const forged = Results.forged(raw, rows, host)
  return { ...unjudged, parsed: headOnly(raw, rows), cuts: cutsOf(forged), failures: [] }
}

const cutsOf = (rows: ReadonlyArray<Row>) => rows.map(({ start, end }) => [start, end] as const)
