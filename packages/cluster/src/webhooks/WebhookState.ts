/**
 * What a Webhook may deliver. A Webhook carries no more than its maker may read at the time of the delivery
 * (credentials/Maker), so a Webhook whose maker ended is stopped until another credential adopts it.
 */
import { expand, lacksToReceive } from "@svc/domain/events/Event"
import type { Webhook } from "@svc/domain/webhooks/Webhook"
import type { Statement } from "effect/sql"
import { endOf, joinMaker, type MakerEnd, type MakerRow, makerScopes } from "../credentials/Maker.ts"
import type { Sql } from "../store/Database.ts"

export interface WebhookState extends MakerRow {
  readonly status: "active" | "disabled"
  readonly event_types: ReadonlyArray<string>
}

/** Returns the join of the maker of `webhook w`. */
export const joinWebhookMaker = (sql: Sql, at: Statement.Fragment): Statement.Fragment =>
  joinMaker(sql, { kind: sql`w.maker_kind`, id: sql`w.maker_id`, identity: sql`w.identity_id` }, at)

const mayRead = (maker: MakerRow, type: string) => lacksToReceive(makerScopes(maker), [type]).length === 0

/** Returns why an Event of the type may not be delivered; undefined if it may. */
export const withheld = (maker: MakerRow, type: string): MakerEnd | undefined =>
  endOf(maker) ?? (mayRead(maker, type) ? undefined : "maker_narrowed")

/** Returns the status of a Webhook. It is stopped if its maker may read none of its Events. */
export const stateOf = (webhook: WebhookState): Pick<Webhook, "status" | "stopped_reason"> => {
  if (webhook.status === "disabled") return { status: "disabled", stopped_reason: null }
  const types = expand(webhook.event_types)
  const isBlind = types.length > 0 && !types.some((type) => mayRead(webhook, type))
  const end = endOf(webhook) ?? (isBlind ? "maker_narrowed" : null)
  return { status: end === null ? "active" : "stopped", stopped_reason: end }
}
