/**
 * Shared parts of the SMTP, submission and IMAP listeners: opening a socket within a scope, the certificate with its
 * renewals, and the health check that names the ports.
 */
import type { Server } from "node:net"
import { check, pass } from "@svc/cluster/health/Health"
import * as Certificates from "@svc/cluster/net/Certificates"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Clock, type Context, Effect, Layer, Schema } from "effect"

/** The socket could not be opened; `message` is for operators. */
class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", { message: Schema.String }) {}

/** A certificate and its key, as PEM text or as paths of files that are read again when they change. */
export type ListenerTls = Pick<Certificates.Pem, "cert" | "key">

/**
 * Opens `socket` until the scope ends, and returns its port, which the system chooses if `port` is 0. `open` starts and
 * `close` ends it.
 */
export const listening = Effect.fnUntraced(function* (
  protocol: string,
  socket: Server,
  { host, port }: { readonly host: string; readonly port: number },
  open: (port: number, host: string, opened: () => void) => void,
  close: Effect.Effect<void>,
) {
  yield* Effect.acquireRelease(
    Effect.callback<void, ListenFailed>((resume) => {
      socket.once("error", (error) =>
        resume(
          Effect.fail(new ListenFailed({ message: `${protocol} cannot listen on ${host}:${port}: ${error.message}` })),
        ),
      )
      open(port, host, () => resume(Effect.void))
    }),
    () => close,
  )
  const address = socket.address()
  return typeof address === "object" && address !== null ? address.port : port
})

/**
 * Reads the certificate of a listener, self-signed for `domain` if `tls` is undefined. `follow` calls its argument with
 * each renewal until the scope ends.
 */
export const certificateOf = Effect.fnUntraced(function* (
  tls: ListenerTls | undefined,
  listener: string,
  domain: string,
) {
  if (tls === undefined) {
    const pem = selfSigned([domain, "localhost"], new Date(yield* Clock.currentTimeMillis))
    return { pem, follow: () => Effect.void }
  }
  const pem = yield* Certificates.read(tls, listener)
  return { pem, follow: (renew: (pem: Certificates.Pem) => void) => Certificates.follow(tls, listener, pem, renew) }
})

/** Adds the health check `name` to a listener's layer. It passes once the listener is open. */
export const withHealth =
  <I, S extends { readonly port: number; readonly tlsPort?: number }>(name: string, service: Context.Key<I, S>) =>
  <E, R>(listener: Layer.Layer<I, E, R>) =>
    Layer.merge(
      listener,
      check(
        name,
        true,
        Effect.map(Effect.service(service), ({ port, tlsPort }) => ({
          ...pass,
          detail: tlsPort === undefined ? `listening on port ${port}` : `listening on ports ${port} and ${tlsPort}`,
        })),
      ).pipe(Layer.provide(listener)),
    )
