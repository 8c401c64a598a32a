/** What the service recorded while its connections were cut, compared with what the callers know. */
import type { ReceivedDelivery } from "../../harness/Receiver.ts"
import type { Copy } from "../CrashingRelay.ts"
import { Counts, type Effects, type Findings } from "./Findings.ts"
import type { RepeatingClient } from "./RepeatingClient.ts"

/** Counts the changes in the audit log by action. Refused and failed attempts have records of their own. */
const countRecords = async (client: RepeatingClient): Promise<Counts> => {
  const counts = new Counts()
  for (const { action, outcome, count } of await client.list("/api/audit", "records")) {
    if (outcome === "allowed") counts.add(action, count)
  }
  return counts
}

interface Event {
  readonly id: string
  readonly type: string
  /** Null if the Event belongs to the account, as those of keys and deletions do. */
  readonly handle: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** Returns the Events of the callers' Identities and keys, and the deletions of all Identities. */
const readEvents = async (client: RepeatingClient, handles: ReadonlySet<string>): Promise<ReadonlyArray<Event>> => {
  const all: ReadonlyArray<Event> = await client.list("/api/events", "events")
  return all.filter(
    ({ handle, type, data }) => type === "identity.deleted" || handles.has(handle ?? String(data["handle"])),
  )
}

/** Compares counts by name. Names that are not wanted are ignored. */
const compareCounts = (findings: Findings, what: string, found: Counts, wanted: Counts) => {
  for (const [name, count] of wanted) {
    findings.same(`number of ${what} ${name}`, [String(found.get(name) ?? 0)], [String(count)])
  }
}

/** The member that names the object of Events that are raised once per object. */
const objectOf: Readonly<Record<string, string>> = {
  "email.received": "email_id",
  "email.sent": "email_id",
  "api_key.created": "key_id",
  "api_key.revoked": "key_id",
  "identity.deleted": "identity_id",
}

const compareObjects = (findings: Findings, events: ReadonlyArray<Event>) => {
  const objects = events.flatMap(({ type, data }) => {
    const object = data[objectOf[type] ?? ""]
    return object === undefined ? [] : [`${type} of ${String(object)}`]
  })
  findings.same("Events per object", objects, new Set(objects))
}

const compareDeliveries = (
  findings: Findings,
  events: ReadonlyArray<Event>,
  received: ReadonlyArray<ReceivedDelivery>,
) => {
  const arrived = new Set(received.map(({ body }) => body.id as string))
  const lost = events.filter(({ id }) => !arrived.has(id))
  if (lost.length > 0) {
    findings.add(`${lost.length} of ${events.length} Events were not delivered, as ${JSON.stringify(lost[0])}`)
  }
}

/**
 * Remembers what is recorded before the first cut. The returned function compares what was added until then: one audit record
 * and one Event per effect, and a delivery of each Event to the Webhook of its Identity.
 */
export const fromNow = async (client: RepeatingClient, findings: Findings, handles: ReadonlySet<string>) => {
  const recordsBefore = await countRecords(client)
  const eventsBefore = new Set((await readEvents(client, handles)).map(({ id }) => id))
  return async ({ actions, events: wanted }: Effects, received: ReadonlyArray<ReceivedDelivery>) => {
    const records = await countRecords(client)
    for (const [action, count] of recordsBefore) records.add(action, -count)
    compareCounts(findings, "audit records of", records, actions)
    const events = (await readEvents(client, handles)).filter(({ id }) => !eventsBefore.has(id))
    const raised = new Counts()
    for (const { type } of events) raised.add(type)
    compareCounts(findings, "Events", raised, wanted)
    compareObjects(findings, events)
    const ofIdentities = events.filter(({ handle }) => handle !== null && handles.has(handle))
    compareDeliveries(findings, ofIdentities, received)
  }
}

/** The relay has received each sent message once, and no other. */
export const compareCopies = (findings: Findings, copies: ReadonlyArray<Copy>, sent: Iterable<string>) =>
  findings.same(
    "messages at the relay",
    copies.map(({ subject }) => subject).filter((subject) => / \d+ of cut/.test(subject)),
    sent,
  )
