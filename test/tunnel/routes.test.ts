/** Which hosts, settings and links of a name an edge uses. */
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import type { AddressBook } from "@svc/domain/Addresses"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import type { Peers } from "@svc/tunnel-edge/edge/links/Peers"
import type { Registry } from "@svc/tunnel-edge/edge/links/Registry"
import * as Hosts from "@svc/tunnel-edge/edge/routing/Hosts"
import * as Routes from "@svc/tunnel-edge/edge/routing/Routes"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

it("Production accepts links only at the host that agents dial", () => {
  const hosts = (environment: AddressBook["environment"]) =>
    Hosts.make({ environment, tunnelDomain: "Tunnel.example" } as AddressBook)
  const takes = (environment: AddressBook["environment"]) =>
    ["connect.tunnel.example", "ada.tunnel.example", "connect.example", "localhost"].filter(
      hosts(environment).takesLinks,
    )
  expect(takes("production")).toEqual(["connect.tunnel.example"])
  expect(takes("development")).toHaveLength(4)
  expect(["ada.tunnel.example", "A-da.tunnel.example", "tunnel.example"].map(hosts("production").nameOf)).toEqual([
    "ada",
    "ada",
    undefined,
  ])
})

const standings: Readonly<Record<string, Partial<Standing>>> = {
  ada: { status: "active", holders: [] },
  bob: { status: "deleting", holders: [] },
}
const records = Layer.mergeAll(
  Layer.mock(TunnelQueries)({ standing: (name) => Effect.succeed(standings[name] as Standing | undefined) }),
  Layer.mock(ChangeFeed)({ follow: () => Effect.succeed({ await: Effect.never }) } as never),
)

it.effect("An Identity that is being deleted has no Tunnel any more", () =>
  Effect.gen(function* () {
    const routes = yield* Routes.make({
      edgeId: "edge",
      registry: {} as Registry,
      peers: {} as Peers,
      launch: () => undefined,
      onChange: () => undefined,
    })
    expect(yield* routes.standing("ada")).toMatchObject({ status: "active" })
    expect(yield* routes.standing("bob")).toBeUndefined()
    expect(yield* routes.standing("eve")).toBeUndefined()
  }).pipe(Effect.scoped, Effect.provide(records)),
)
