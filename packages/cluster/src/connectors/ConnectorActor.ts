/**
 * The Connector actor: the only writer of an Identity's credential at one platform, of its refresh, its pause and its
 * polls. The entity id is the canonical Handle, a slash and the platform's name. Platform calls run concurrently with
 * messages; writes are fenced and run one at a time.
 */
import { Addresses, callbackUrl } from "@svc/domain/Addresses"
import { ConnectorActor } from "@svc/domain/connectors/ConnectorProtocol"
import { PlatformName } from "@svc/domain/connectors/Connector"
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Effect, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import * as Ownership from "../actor/Ownership.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as Worker from "../work/Worker.ts"
import * as PollTrigger from "./work/PollTrigger.ts"
import * as PlatformCalls from "./PlatformCalls.ts"
import * as ConnectHandlers from "./ConnectHandlers.ts"
import { type ConnectorState, isPaused, load } from "./ConnectorState.ts"
import * as ConnectorHandlers from "./ConnectorHandlers.ts"
import { Platforms } from "./platforms/Platforms.ts"
import * as PollSource from "./work/PollSource.ts"
import type { Parts } from "./work/DueWork.ts"
import * as ProfileChecks from "./work/ProfileChecks.ts"
import * as Revocations from "./credentials/Revocations.ts"
import * as Streams from "./work/Streams.ts"

const isPlatform = Schema.is(PlatformName)

/** Splits an entity id. Throws if it is not the id of a Connector. */
const nameOf = (id: string) => {
  const slash = id.lastIndexOf("/")
  const platform = id.slice(slash + 1)
  if (slash < 1 || !isPlatform(platform)) throw new Error("no such Connector")
  return { canonical: id.slice(0, slash), platform }
}

export const layer = ConnectorActor.toLayer(
  Effect.gen(function* () {
    const id = (yield* Entity.CurrentAddress).entityId as string
    const { canonical, platform: name } = nameOf(id)
    const platform = yield* (yield* Platforms).of(name)
    const sql = yield* Writes
    const sealing = yield* Sealing
    const client = yield* GuardedClient
    const feed = yield* ChangeFeed
    const redirectUri = callbackUrl(yield* Addresses)
    const read = yield* load
    const clientFor = yield* ConnectorActor.client
    const identityOf = yield* IdentityActor.client

    const loadState = read(canonical, name)
    let streams: Streams.Streams | undefined
    let calls: PlatformCalls.PlatformCalls | undefined
    const ownership: Ownership.Ownership<ConnectorState> = yield* Ownership.make({
      kind: "Connector",
      id,
      load: loadState,
      // The Identity's actor delivers the Events.
      due: () => Effect.runFork(Effect.ignore(identityOf(canonical).Work(undefined, { discard: true }))),
      committed: (before, after) => {
        streams?.committed(after)
        if (before !== after && (isPaused(after) || after.connection?.status !== "connected")) calls?.permit.end()
        if (after.identity !== undefined) feed.announce({ org: after.identity.orgId, identity: after.identity.id })
      },
    })
    calls = yield* PlatformCalls.make({ platform, ownership, client, sealing, sql })
    const parts: Parts = { ownership, calls, pollTrigger: PollTrigger.make(), sql }
    streams = yield* Streams.make(parts)
    const revocations = yield* Revocations.make(parts, { canonical, platform: name }, sealing)
    const worker = yield* Worker.make({
      state: ownership.state,
      sources: [
        yield* PollSource.source.make(parts),
        yield* ProfileChecks.source.make(parts),
        revocations.source,
        streams,
      ],
      start: Effect.asVoid(clientFor(id).Work(undefined, { discard: true })),
    })
    const actor: ConnectorHandlers.Actor = {
      ...parts,
      sealing,
      revocations,
      wake: worker.wake,
      redirectUri,
      reload: loadState,
    }

    return ConnectorActor.of({
      ...ConnectHandlers.handlers(actor),
      ...ConnectorHandlers.handlers(actor),
      Work: () => Rpc.fork(worker.run),
    })
  }),
  { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
)
