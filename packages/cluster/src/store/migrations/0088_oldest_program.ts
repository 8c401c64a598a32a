/** The one row that says which program is the oldest that may run (`store/OldestProgram.ts`). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { requireProgram } from "../OldestProgram.ts"

export const oldestProgram = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table svc_schema (
    id int primary key default 1 check (id = 1),
    oldest_program text not null
  )`
  yield* requireProgram("0.1.0")
})
