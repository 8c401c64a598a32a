/** The single-call rows: the cost of each request as a multiple of the floor, next to a reference. */
import { type Goal, type Row } from "../harness/Report.ts"
import type { Call, Drive } from "./Load.ts"
import * as References from "./References.ts"
import { callWithKey, connections, type BenchService, type Stage, subjectOf } from "./Stage.ts"
import * as Statements from "./Statements.ts"
import { costOf, drift, figuresOf, inTurn, shareOf, type Subject } from "./Turns.ts"

export interface Comparison {
  readonly id: string
  readonly what: string
  readonly drive: (played: BenchService) => Drive
  /** CPU limit in multiples of the floor. */
  readonly atMost: number
  readonly reference: { readonly name: string; readonly subject: Subject; readonly atLeast?: number }
  /** Number of slices, if the default gives too noisy figures. */
  readonly rounds?: number
}

/** Measures the reference, the floor, the service and optionally an earlier commit in turn. */
export const compared = async (stage: Stage, row: Comparison): Promise<Row> => {
  const { ours, earlier } = stage
  const drive = row.drive(ours)
  const subjects = { reference: row.reference.subject, floor: stage.floor, ours: subjectOf(ours, drive) }
  const got =
    earlier === undefined
      ? { ...(await inTurn(subjects, row)), earlier: undefined }
      : await inTurn({ ...subjects, earlier: subjectOf(earlier, row.drive(earlier)) }, row)
  const share: Goal = {
    what: `calls/s to ${row.reference.name}`,
    value: shareOf(got.ours, got.reference, 3),
    ...(row.reference.atLeast === undefined ? {} : { atLeast: row.reference.atLeast }),
  }
  const before = got.earlier
  return {
    id: row.id,
    ok: got.ours.wrong === 0 && got.ours.done > 0,
    what: row.what,
    unreliable: drift({
      cpu: { "the floor": got.floor },
      ...(share.atLeast === undefined ? {} : { rate: { [row.reference.name]: got.reference } }),
    }),
    goals: [
      ...costOf("CPU to the floor", got.ours, got.floor, row.atMost),
      ...(share.atLeast === undefined ? [] : [share]),
    ],
    figures: {
      ...figuresOf("ours", got.ours),
      "p50 ms": got.ours.p50,
      "p99 ms": got.ours.p99,
      ...(got.ours.wrong === 0 ? {} : { "wrong responses": got.ours.wrong }),
      ...figuresOf("floor", got.floor),
      ...figuresOf(row.reference.name, got.reference),
      [share.what]: share.value,
      ...(before === undefined
        ? {}
        : {
            ...figuresOf("earlier", before),
            ...Object.fromEntries(
              costOf("CPU to earlier", got.ours, before, 1).map(({ what, value }) => [what, value]),
            ),
          }),
    },
    details: await Statements.mostExpensive(ours.deployment, { drive }),
  }
}

type Kind = "bare" | "inserts" | "identity"

interface CallRow {
  readonly what: string
  readonly call: (played: BenchService) => Call
  readonly atMost: number
  readonly reference: Kind
  readonly atLeast?: number
}

const get = (path: string): Call => ({ method: "GET", path })
const identity = ({ handles }: BenchService) => get(`/api/identities/${handles[0]}`)

const rows: Readonly<Record<string, CallRow>> = {
  "no-such-path": {
    what: "GET of an unknown path",
    call: () => ({ ...get("/nothing"), status: 404 }),
    atMost: 1.1,
    reference: "bare",
  },
  whoami: {
    what: "GET /api/auth/whoami",
    call: () => get("/api/auth/whoami"),
    atMost: 2.5,
    reference: "bare",
  },
  identity: {
    what: "GET /api/identities/{handle}",
    call: identity,
    atMost: 4,
    reference: "bare",
    atLeast: 0.3,
  },
  messages: {
    what: "GET /api/identities/{handle}/messages?limit=20, a full page",
    call: ({ handles }) => get(`/api/identities/${handles[0]}/messages?limit=20`),
    atMost: 5,
    reference: "bare",
  },
  mcp: {
    what: "MCP tools/call svc_identity_get, compared with the GET that it calls",
    call: ({ handles }) => ({
      method: "POST",
      path: "/api/mcp",
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "svc_identity_get", arguments: { handle: handles[0] } },
      }),
    }),
    atMost: 5,
    reference: "identity",
    atLeast: 0.7,
  },
  vault: {
    what: "PUT /api/vault/secrets/{name}, durable, compared with one-row INSERTs",
    call: () => ({
      method: "PUT",
      path: "/api/vault/secrets/bench.{worker}",
      body: JSON.stringify({ value: "a value of some length, as secrets are, number {n}" }),
    }),
    atMost: 7,
    reference: "inserts",
    atLeast: 0.4,
  },
  card: {
    what: "PATCH /api/identities/{handle}/card, durable and fenced, of one Identity, compared with one-row INSERTs",
    call: ({ handles }) => ({
      method: "PATCH",
      path: `/api/identities/${handles[0]}/card`,
      body: JSON.stringify({ description: "number {n} of {worker}" }),
    }),
    atMost: 12,
    reference: "inserts",
  },
}

/** Runs the row together with its reference. */
const withReference = async (
  { ours, bare }: Stage,
  kind: Kind,
  row: (name: string, subject: Subject) => Promise<Row>,
): Promise<Row> => {
  if (kind === "bare") return row("node:http", bare)
  if (kind === "identity") return row("the GET", subjectOf(ours, callWithKey(ours, identity(ours))))
  const reference = await References.inserts(ours.deployment, connections)
  return row("INSERTs", reference).finally(reference.close)
}

export const calls: Readonly<Record<string, (stage: Stage) => Promise<Row>>> = Object.fromEntries(
  Object.entries(rows).map(([id, { what, call, atMost, reference, atLeast }]) => [
    id,
    (stage: Stage) =>
      withReference(stage, reference, (name, subject) =>
        compared(stage, {
          id,
          what: `${what}; ${connections} connections`,
          drive: (played) => callWithKey(played, call(played)),
          atMost,
          reference: { name, subject, ...(atLeast === undefined ? {} : { atLeast }) },
        }),
      ),
  ]),
)
