/** The members of an export, stored as sealed pieces under the fence of the Org's actor. */
import { system } from "@svc/domain/account/Initiator"
import { Effect } from "effect"
import type { Ownership } from "../../actor/Ownership.ts"
import { commit } from "../../actor/Write.ts"
import { type Place, Sealing } from "../../sealing/Sealing.ts"
import type { OrgState, OwnedOrg } from "../OrgState.ts"

const pieceBytes = 1024 * 1024

/** An export of the whole Org (`identityId` is null) or of one Identity, which decides who may download it. */
export interface ExportRef {
  readonly id: string
  readonly identityId: string | null
}

export const place = (org: string, { id, identityId }: ExportRef, member: string, number: number): Place => ({
  table: "export_piece",
  column: "sealed",
  row: `${id}/${member}/${number}`,
  org,
  names: [identityId ?? ""],
})

/** Appends to the members of one export. */
export const make = Effect.fnUntraced(function* (ownership: Ownership<OrgState>, org: OwnedOrg, ref: ExportRef) {
  const sealing = yield* Sealing
  const open = new Map<string, { number: number; waiting: Array<Uint8Array>; bytes: number }>()
  let size = 0

  const flush = Effect.fnUntraced(function* (member: string) {
    const { number, waiting } = open.get(member)!
    const sealed = yield* sealing.seal(org.dataKey, place(org.id, ref, member, number), Buffer.concat(waiting))
    yield* ownership.write(system, (write) =>
      commit(
        write,
        write.sql`piece as (
          insert into export_piece (export_id, member, number, sealed)
          select ${ref.id}::uuid, ${member}::text, ${number}::int, ${sealed}::bytea from fence)`,
      ),
    )
    open.set(member, { number: number + 1, waiting: [], bytes: 0 })
  })

  /** Splits values larger than a piece, so that no stored row is large. */
  const append = Effect.fnUntraced(function* (member: string, bytes: Uint8Array) {
    size += bytes.length
    let at = 0
    do {
      const state = open.get(member) ?? { number: 0, waiting: [], bytes: 0 }
      open.set(member, state)
      const part = bytes.subarray(at, at + pieceBytes - state.bytes)
      state.waiting.push(part)
      state.bytes += part.length
      at += part.length
      if (state.bytes >= pieceBytes) yield* flush(member)
    } while (at < bytes.length)
  })

  return {
    append,
    lines: (member: string, values: ReadonlyArray<unknown>) =>
      append(member, new TextEncoder().encode(values.map((value) => `${JSON.stringify(value)}\n`).join(""))),
    /** Writes the remaining bytes and returns the size of all members. */
    finish: Effect.suspend(() => Effect.as(Effect.forEach(open.keys(), flush, { discard: true }), size)),
  }
})
