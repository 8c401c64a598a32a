/** Every refusal the service can give, by its code: the one table that problems, their pages and the document are made of. */
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
