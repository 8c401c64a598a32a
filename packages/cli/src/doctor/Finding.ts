/** One thing that `svc doctor` looked at. */
export type Status = "ok" | "warn" | "fail"

export interface Finding {
  readonly name: string
  readonly status: Status
  readonly detail: string
  /** What to do about it; empty where there is nothing to do. */
  readonly remedy: string
}

export const found = (name: string, status: Status, detail: string, remedy = ""): Finding => ({
  name,
  status,
  detail,
  remedy,
})
