/** The result of a check and its remedy. */
export type Status = "ok" | "warn" | "fail"

export const groups = ["machine", "settings", "store", "certificates", "dns", "mail", "service"] as const
export type Group = (typeof groups)[number]

export interface Finding {
  readonly group: Group
  readonly name: string
  readonly status: Status
  readonly detail: string
  /** The remedy: a command, a setting or a record; empty if nothing is to be done. */
  readonly remedy: string
}

/** Creates findings of one group. */
export const of =
  (group: Group) =>
  (name: string, status: Status, detail: string, remedy = ""): Finding => ({ group, name, status, detail, remedy })
