/**
 * The links that agents hold here, as the rest of the deployment knows of them: each is a lease in the store that is
 * renewed while the link stands, its TCP port listens as long, and the actor of its name hears of every change; where it
 * could not be told, the next look finds that its status is behind. A link leaves when its credential does.
 */
import type { Socket } from "node:net"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { sessionEnded } from "@svc/cluster/observe/SessionLog"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { Effect, Redacted, Semaphore } from "effect"
import { goaway } from "../../protocol/Manifest.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { AllottedPorts } from "../tcp/AllottedPorts.ts"
import * as LinkAttachment from "./LinkAttachment.ts"
import type { Registry } from "./Registry.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"
import type { EdgeIdentity } from "../EdgeIdentity.ts"
import type { TcpPorts } from "../tcp/TcpPorts.ts"

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

  /** Names that had no link at the last look, though their status says connected. */
  let unlinked: ReadonlySet<string> = new Set()

  const renewing = Semaphore.makeUnsafe(1)

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
          told: { link: id, handle, agent: client, conn },
        }),
      )
      running.launch(Effect.andThen(Effect.ignore(links.detach([id])), changed(canonical)))
    },
  })

  return {
    /** An agent asks for a link over this socket, which is the link's from here on. */
    accept: (head: Head, socket: Socket, rest: Buffer): void =>
      void running.run(attach.accept(head, socket, rest)).catch(() => socket.destroy()),

    /** Links whose credential or Identity is gone leave. */
    recheckCredentials: Effect.suspend(() =>
      Effect.forEach(
        registry.all(),
        (attached) =>
          Effect.catchTags(credentials.resolve(Redacted.make(attached.token)), {
            unauthenticated: () => Effect.sync(() => attach.dismiss(attached, "revoked")),
            key_expired: () => Effect.sync(() => attach.dismiss(attached, "revoked")),
            grant_revoked: () => Effect.sync(() => attach.dismiss(attached, "revoked")),
            account_deleting: () => Effect.sync(() => attach.dismiss(attached, "revoked")),
          }),
        { concurrency: "unbounded", discard: true },
      ),
    ).pipe(Effect.ignore),

    /**
     * Renews the leases of all links here, one renewal at a time. A link whose lease is missing gets it back, unless a newer
     * process of the agent has taken over the name or the Identity is gone.
     */
    renew: Effect.gen(function* () {
      const before = registry.all()
      const ours = yield* links.renew(before.map(({ id }) => id))
      for (const attached of before) {
        const known = ours.get(attached.id)
        // Its actor was out of reach when the link came to stand.
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

    /** Removes what others let run out, and tells of it. */
    sweep: Effect.gen(function* () {
      for (const name of yield* links.sweep) yield* changed(name)
      // Whoever took the link away died before it told, or told nobody. Not at the first look: after a crash of the database
      // each edge first takes the leases of its links again.
      const found = new Set(yield* links.unlinked)
      for (const name of found) if (unlinked.has(name)) running.launch(changed(name))
      unlinked = found
    }).pipe(Effect.ignore),

    /** Tells the agents to dial elsewhere. */
    leave: (): void => {
      for (const attached of registry.all()) {
        attached.draining = true
        attached.link.goaway(goaway.drain)
      }
    },
    isBusy: (): boolean => registry.all().some(({ link }) => link.mux.streams.size > 0),
    close: Effect.suspend(() => {
      const ids = registry.all().map(({ id, link }) => (link.close("drained"), id))
      return Effect.ignore(links.detach(ids))
    }),
  }
})

export type Leases = Effect.Success<ReturnType<typeof make>>
