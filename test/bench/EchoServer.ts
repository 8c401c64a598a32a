/** A process that echoes Effect RPC requests over a socket, as the reference for requests between processes. */
import { NodeRuntime, NodeSocketServer } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { Rpc, RpcGroup, RpcSerialization, RpcServer } from "effect/rpc"
import { SocketServer } from "effect/socket"

export const Echo = RpcGroup.make(Rpc.make("Echo", { payload: { org_id: Schema.String } }))

if (import.meta.main) {
  const announce = Layer.effectDiscard(
    Effect.map(SocketServer.SocketServer, ({ address }) => {
      if (address._tag !== "UnixPathAddress") console.log(address.port)
    }),
  )
  RpcServer.layer(Echo, { disableTracing: true }).pipe(
    Layer.provide(Echo.toLayer({ Echo: () => Effect.void })),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.merge(announce),
    Layer.provide(NodeSocketServer.layer({ host: "127.0.0.1", port: 0 })),
    Layer.provide(RpcSerialization.layerSchemaBinary()),
    Layer.launch,
    NodeRuntime.runMain,
  )
}
