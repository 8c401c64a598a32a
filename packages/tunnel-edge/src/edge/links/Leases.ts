/**
 * Publishes the links of this edge to the deployment. Each link is a lease in the store that is renewed while the link
 * is open. The TCP port of its name listens for the same time, and the actor of its name is notified of every change. A
 * notification that fails is repeated by the next renewal. A link is closed when its credential is revoked.
 */
import type { Socket } from "node:net"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { sessionEnded } from "@svc/cluster/observe/SessionLog"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { Effect, FiberSet, Redacted, Semaphore } from "effect"
import { goaway } from "../../protocol/Manifest.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { AllottedPorts } from "../tcp/AllottedPorts.ts"
import * as LinkAttachment from "./LinkAttachment.ts"
import type { Registry } from "./Registry.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"
import type { EdgeIdentity } from "../EdgeIdentity.ts"
import type { TcpPorts } from "../tcp/TcpPorts.ts"
import { Timing } from "../Timing.ts"

export const make = Effect.fnUntraced(function* (options: {
  readonly self: EdgeIdentity
  readonly registry: Registry
  readonly ports: TcpPorts
  readonly allotted: AllottedPorts
  readonly running: BackgroundEffects
}) {
  const { self, registry, ports, allotted, running } = options
  const credentials = yield* CredentialLookup
  const links = yield* TunnelLinks
  const actors = yield* Identities

  /** Names whose status was connected without any link at the last sweep. */
  let unlinked: ReadonlySet<string> = new Set()

  const renewing = Semaphore.makeUnsafe(1)

  /** Removals of closed links that are not stored yet, or that their actor was not notified of yet. */
  const removals = yield* FiberSet.make<void>()
  const remove = yield* FiberSet.runtime(removals)()

  const changed = (name: string) => Effect.ignore(ask(actors.of(name).TunnelChanged()))

  const attach = yield* LinkAttachment.make({
    self,
    registry,
    onAttached: ({ canonical }, port) => {
      if (port !== null) {
        void ports.open(canonical, port).then((is) => {
          if (!is) running.launch(allotted.keep(canonical))
        })
      }
      running.launch(changed(canonical))
    },
    onClosed: ({ id, canonical, handle, client, since, conn }, ended) => {
      if (registry.of(canonical).length === 0) ports.close(canonical)
      running.launch(
        sessionEnded({
          kind: "tunnel link",
          ended,
          since: since.getTime(),
          details: { link: id, handle, agent: client, conn },
        }),
      )
      remove(Effect.andThen(Effect.ignore(links.detach([id])), changed(canonical)))
    },
  })

  return {
    /** Accepts the socket of an agent that requests a link. */
    accept: (head: Head, socket: Socket, rest: Buffer): void =>
      void running.run(attach.accept(head, socket, rest)).catch(() => socket.destroy()),

    /** Rechecks the credentials of all links and closes links whose credential or Identity is gone. */
    recheckCredentials: Effect.suspend(() =>
      Effect.forEach(
        registry.all(),
        (attached) =>
          Effect.catch(credentials.resolve(Redacted.make(attached.token)), ({ code }) =>
            // The store is unreachable, which says nothing about the credential.
            code === "unavailable" ? Effect.void : Effect.sync(() => attach.dismiss(attached, "revoked")),
          ),
        { concurrency: "unbounded", discard: true },
      ),
    ).pipe(Effect.ignore),

    /**
     * Renews the leases of all links; only one renewal runs at a time. Restores a missing lease, unless a newer process
     * of the agent owns the name or the Identity is gone.
     */
    renew: Effect.gen(function* () {
      const before = registry.all()
      const ours = yield* links.renew(before.map(({ id }) => id))
      for (const attached of before) {
        const known = ours.get(attached.id)
        // The actor was unreachable when the link was attached.
        if (known === false) running.launch(changed(attached.canonical))
        if (known !== undefined || attached.draining) continue
        const { restored, successor } = yield* links.restore({
          ...attached,
          edgeId: self.id,
          edgeAddress: self.address,
        })
        if (restored) yield* changed(attached.canonical)
        else if (successor !== null) attach.dismiss(attached, "replaced", successor)
        else attach.dismiss(attached, "revoked")
      }
    }).pipe(Effect.ignore, renewing.withPermits(1)),

    /** Removes expired leases and notifies their actors. */
    sweep: Effect.gen(function* () {
      for (const name of yield* links.sweep) yield* changed(name)
      // The process that removed a link may have crashed before it notified the actor. A name is notified at its second
      // sweep only, because after a crash of the database each edge first restores its leases.
      const found = new Set(yield* links.unlinked)
      for (const name of found) if (unlinked.has(name)) running.launch(changed(name))
      unlinked = found
    }).pipe(Effect.ignore),

    /** Tells all agents to reconnect elsewhere. */
    leave: (): void => {
      for (const attached of registry.all()) {
        attached.draining = true
        attached.link.goaway(goaway.drain)
      }
    },
    isBusy: (): boolean => registry.all().some(({ link }) => link.mux.streams.size > 0),
    /** Closes all links and removes their leases, then waits a bounded time until their actors are notified. */
    close: Effect.gen(function* () {
      const ids = registry.all().map(({ id, link }) => (link.close("drained"), id))
      yield* Effect.ignore(links.detach(ids))
      yield* Effect.timeoutOption(FiberSet.awaitEmpty(removals), Timing.drainRemovals)
    }),
  }
})

export type Leases = Effect.Success<ReturnType<typeof make>>
