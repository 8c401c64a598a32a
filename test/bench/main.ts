/** `npm run bench [row ...]`: each figure as a ratio to a reference measured in the same run on the same machine. */
import { run } from "../harness/Report.ts"
import * as Events from "./Events.ts"
import * as Http from "./Http.ts"
import * as Mail from "./Mail.ts"
import * as Surface from "./Surface.ts"
import * as Tunnel from "./Tunnel.ts"
import * as Webhooks from "./Webhooks.ts"

await run({
  api: Http.api,
  ask: Http.ask,
  provision: Http.provision,
  start: Http.start,
  write: Surface.write,
  mcp: Surface.mcp,
  "mail-in": Mail.mailIn,
  "mail-in-1": Mail.mailInOne,
  "mail-in-1000": Mail.mailInMany,
  "mail-wake": Mail.mailWake,
  event: Events.event,
  webhook: Webhooks.webhook,
  tunnel: Tunnel.tunnel,
})
