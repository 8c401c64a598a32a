/** The result of a check and its remedy. */
export type Status = "ok" | "warn" | "fail"

export const groups = ["machine", "settings", "store", "certificates", "dns", "mail", "service"] as const
export type Group = (typeof groups)[number]

export interface Finding {
  readonly group: Group
  readonly name: string
  readonly status: Status
  readonly detail: string
  /** What to do about it: a command, a setting, a record; empty where there is nothing to do. */
  readonly remedy: string
}

/** Findings of one group. */
export const of =
  (group: Group) =>
  (name: string, status: Status, detail: string, remedy = ""): Finding => ({ group, name, status, detail, remedy })
