/**
 * Start-up errors for operators: one sentence that says what happened and what to do. Only unexpected errors are shown
 * with a stack trace.
 */
import { Cause } from "effect"

/** Our errors whose message is written for operators. */
const worded = new Set([
  "SettingsInvalid",
  "EmbeddedPostgresError",
  "MasterKeyMissing",
  "StoreUnfit",
  "CertificateUnusable",
  "BackupFailed",
  "UnitFailed",
])

const portSettings = [
  "SVC_HTTP_PORT",
  "SVC_SMTP_PORT",
  "SVC_IMAP_PORT",
  "SVC_IMAPS_PORT",
  "SVC_SUBMISSION_PORT",
  "SVC_SUBMISSIONS_PORT",
  "SVC_EDGE_PORT",
  "SVC_RUNNER_PORT",
  "SVC_OPS_PORT",
] as const

/** Ports of the service, by setting. */
export type Ports = Readonly<Partial<Record<(typeof portSettings)[number], number>>>

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value ? Reflect.get(value, name) : undefined

/** Returns the error and its causes, without duplicates. */
const chain = (error: unknown): ReadonlyArray<object> => {
  const found = new Set<object>()
  const visit = (value: unknown) => {
    if (typeof value !== "object" || value === null || found.has(value)) return
    found.add(value)
    visit(memberOf(value, "cause"))
    visit(memberOf(value, "reason"))
    const errors = memberOf(value, "errors")
    if (Array.isArray(errors)) errors.forEach(visit)
  }
  visit(error)
  return [...found]
}

const listening: Record<string, string> = {
  EADDRINUSE: "is in use by another program: stop it, or set",
  EACCES: "needs more permissions than this user has: grant them, or set",
  EADDRNOTAVAIL: "is at an address that this machine does not have: correct SVC_HOST, or set",
}

const ofPort = (error: object, ports: Ports): string | undefined => {
  const text = String(memberOf(error, "message") ?? "")
  const [, code, place] = /listen (EADDRINUSE|EACCES|EADDRNOTAVAIL)[^\d[]*(\S+:\d+)/.exec(text) ?? []
  if (code === undefined || place === undefined) return undefined
  const port = Number(/:(\d+)$/.exec(place)![1])
  const setting = portSettings.find((name) => ports[name] === port)
  return `${place} ${listening[code]} ${setting ?? "another port"}${setting === undefined ? "" : " to another port"}.`
}

const ofDatabase = (errors: ReadonlyArray<object>): string | undefined => {
  const tags = new Set(errors.map((error) => memberOf(error, "_tag")))
  const last = String(memberOf(errors.at(-1), "message") ?? "")
  if (/unsupported startup parameter/i.test(last)) {
    return `The connection pooler of DATABASE_URL does not support a parameter of the URL (${last}): remove it from DATABASE_URL.`
  }
  if (tags.has("AuthenticationError"))
    return `The database rejected the login (${last}): correct the user and password in DATABASE_URL.`
  if (tags.has("ConnectionError")) {
    return `The database is unreachable (${last}): start PostgreSQL, or correct DATABASE_URL.`
  }
  return undefined
}

/** Returns the sentence, or undefined for a defect. */
export const sentence = (cause: Cause.Cause<unknown>, ports: Ports): string | undefined => {
  for (const reason of cause.reasons) {
    const errors = chain(
      Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) ? reason.defect : undefined,
    )
    for (const error of errors) {
      if (worded.has(String(memberOf(error, "_tag")))) return String(memberOf(error, "message"))
      const port = ofPort(error, ports)
      if (port !== undefined) return port
    }
    const database = ofDatabase(errors)
    if (database !== undefined) return database
  }
  return undefined
}
