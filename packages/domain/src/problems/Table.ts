/** The table of all problems by code; the problem classes, their pages and docs/problems.md are generated from it. */
import { access } from "./table/Access.ts"
import { account } from "./table/Account.ts"
import { connectors } from "./table/Connectors.ts"
import { general } from "./table/General.ts"
import { identity } from "./table/Identity.ts"
import type { AgentHint, Row } from "./table/Row.ts"
import { tunnel } from "./table/Tunnel.ts"

export type { AgentHint }

export const table = { ...general, ...access, ...account, ...identity, ...connectors, ...tunnel } satisfies Record<
  string,
  Row
>

export type Code = keyof typeof table
