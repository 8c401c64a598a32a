/**
 * Routes a public request: resolves its host to a name, applies the Tunnel's settings and the Org's budget, and finds a
 * link to the agent ({@link Routes}), or generates the response of the edge.
 */
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { Addresses } from "@svc/domain/Addresses"
import { basisOf, withSignatures } from "@svc/domain/card/CardSignature"
import { documentOf, fieldsOf, StoredCard } from "@svc/domain/card/Card"
import type { Code } from "@svc/domain/problems/Table"
import { Effect, Schema } from "effect"
import { documentPath, TunnelDocuments } from "@svc/cluster/proof/TunnelDocuments"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { reset } from "../../protocol/Manifest.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import * as Admission from "./Admission.ts"
import * as Callers from "./Callers.ts"
import { answer, problemFor, refusal } from "../http/EdgeResponses.ts"
import type { Client } from "../http/ConnectionContext.ts"
import { clientBlock } from "../listening/Connections.ts"
import * as EdgeMetrics from "../EdgeMetrics.ts"
import * as PasswordThrottle from "./PasswordThrottle.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"
import type { Hosts } from "./Hosts.ts"
import type { Metering } from "../Metering.ts"
import type { OpenConnection } from "./OpenConnections.ts"
import type { AgentCaller, Route, Terms } from "./Route.ts"
import type { Routes, AgentPath } from "./Routes.ts"

const cardPath = "/.well-known/agent-card.json"
const decodeCard = Schema.decodeUnknownOption(StoredCard)

/** Problem code for each reset code of an agent's stream. */
const failures: Readonly<Record<number, Code>> = {
  [reset.local_refused]: "tunnel_local_refused",
  [reset.local_timeout]: "tunnel_local_timeout",
  [reset.quota]: "tunnel_transfer_blocked",
  [reset.not_here]: "tunnel_agent_offline",
}

const hostHeader = ({ host_header }: Standing["settings"], { localHost }: AgentPath): string | undefined =>
  host_header === "preserve" ? undefined : host_header === "local" ? (localHost ?? undefined) : host_header

/** Builds the responses for refused requests. */
interface Refusing {
  /** Returns the response for a name that does not exist. */
  readonly gone: (head: Head) => Buffer
  readonly refusalOf: (standing: Standing, client: string, head: Head) => Buffer | undefined
  /** Returns the document that the edge answers itself, or undefined if the request names none. */
  readonly proofOf: (standing: Standing, client: string, head: Head) => Promise<Buffer> | undefined
  readonly callerOf: Callers.Callers
}

class SettingsTerms implements Terms {
  private readonly opening: OpenConnection
  /** Settings at the start of the connection. */
  private readonly begun: Standing
  private readonly way: AgentPath
  private readonly client: string
  private readonly proto: Client["proto"]
  private readonly refusing: Refusing

  constructor(opening: OpenConnection, begun: Standing, way: AgentPath, client: Client, refusing: Refusing) {
    this.opening = opening
    this.begun = begun
    this.way = way
    this.client = client.address
    this.proto = client.proto
    this.refusing = refusing
  }

  host(): string | undefined {
    return hostHeader((this.opening.now() ?? this.begun).settings, this.way)
  }

  ownAuthorization(): boolean {
    return (this.opening.now() ?? this.begun).passwordHash !== undefined
  }

  refuses(head: Head): Buffer | Promise<Buffer> | undefined {
    const holds = this.opening.now()
    if (holds === undefined) return this.refusing.gone(head)
    return this.refusing.proofOf(holds, this.client, head) ?? this.refusing.refusalOf(holds, this.client, head)
  }

  async callerOf(head: Head): Promise<AgentCaller | Buffer | undefined> {
    const found = await this.refusing.callerOf(this.opening.now() ?? this.begun, head, this.proto)
    if (Buffer.isBuffer(found)) return found
    // The settings may have changed while the signature was verified.
    const refused = await this.refuses(head)
    if (refused !== undefined) return refused
    const holds = this.opening.now()
    return holds === undefined || Admission.allowsCaller(holds, found)
      ? found
      : this.refusing.callerOf(holds, head, this.proto)
  }

  allows(authorization: string | undefined, caller: AgentCaller | undefined): boolean {
    const holds = this.opening.now()
    if (holds === undefined || !Admission.allowsClient(holds, this.client)) return false
    return Admission.allowsCredentials(holds, authorization) && Admission.allowsCaller(holds, caller)
  }

  leave(): void {
    this.opening.close()
  }
}

export const make = Effect.fnUntraced(function* (options: {
  readonly hosts: Hosts
  readonly routes: Routes
  readonly metering: Metering
  readonly run: BackgroundEffects["run"]
}) {
  const { hosts, routes, metering } = options
  const documents = yield* TunnelDocuments
  const limits = yield* PublicLimits
  const book = yield* Addresses
  const tunnels = yield* TunnelQueries
  const guesses = PasswordThrottle.make()
  const callerOf = yield* Callers.make({ run: options.run })

  const offline = Effect.fnUntraced(function* (
    head: Head,
    name: string,
    { handle, identityId, passwordHash }: Standing,
  ) {
    if (head.method === "GET" && head.target.split("?")[0] === cardPath) {
      const row = yield* tunnels.cardOf(name)
      const card = decodeCard(row?.fields)
      if (row !== undefined && card._tag === "Some") {
        const locked = passwordHash !== undefined
        const document = withSignatures(
          documentOf(book, handle, fieldsOf(book, handle, card.value), locked),
          row.signature,
          basisOf(book, handle, row.version, locked),
        )
        return answer(200, "application/json", JSON.stringify(document), { "access-control-allow-origin": "*" })
      }
    }
    metering.countOffline(identityId)
    return problemFor(book, head, "tunnel_agent_offline", "The agent holds no tunnel at the moment.")
  })

  /** Returns the response if the Tunnel's settings or the Org's budget refuse the request. */
  const refusalOf = (standing: Standing, client: string, head: Head): Buffer | undefined => {
    if (!Admission.allowsClient(standing, client)) return refusal(403, "This tunnel is not open to your address.")
    if (standing.passwordHash !== undefined) {
      const block = clientBlock(client)
      const shown = head.authorization
      const braked = shown === undefined ? 0 : guesses.brakedFor(standing.identityId, block)
      if (braked > 0) {
        return problemFor(book, head, "rate_limited", "Too many wrong passwords.", Math.ceil(braked / 1000))
      }
      if (Admission.allowsCredentials(standing, shown)) {
        return Callers.refusesUnsigned(standing, head) ?? overBudget(standing, head)
      }
      if (shown !== undefined) guesses.failed(standing.identityId, block)
      return refusal(401, "This tunnel asks for a user name and a password.", {
        "www-authenticate": `Basic realm="${standing.handle}", charset="UTF-8"`,
      })
    }
    return Callers.refusesUnsigned(standing, head) ?? overBudget(standing, head)
  }

  const overBudget = (standing: Standing, head: Head): Buffer | undefined => {
    const blocked = metering.blockedFor(standing.orgId)
    if (blocked === 0) return undefined
    const seconds = Math.ceil(blocked / 1000)
    return problemFor(book, head, "tunnel_transfer_blocked", "The day's transfer is used up.", seconds)
  }

  const gone = (head: Head) => problemFor(book, head, "tunnel_not_found", "No agent has this name.")

  const unread = (head: Head) => problemFor(book, head, "unavailable", "The document could not be read.")

  /** Answers a document about the Identity, whoever is connected and whatever the settings allow. */
  const document = (path: string, { identityId, orgId, handle }: Standing, client: string, head: Head) =>
    Effect.gen(function* () {
      yield* limits.take("profile", clientBlock(client))
      const found = yield* documents.read(path, { id: identityId, orgId, handle })
      if (found === undefined) return gone(head)
      return answer(200, found.contentType, found.body, {
        "cache-control": "public, max-age=0, must-revalidate",
        "access-control-allow-origin": "*",
        ...found.headers,
      })
    }).pipe(
      Effect.catchTags({
        rate_limited: ({ retry_after_seconds = 60 }) =>
          Effect.succeed(problemFor(book, head, "rate_limited", "Too many requests.", retry_after_seconds)),
        unavailable: () => Effect.succeed(unread(head)),
      }),
    )
  const proofOf: Refusing["proofOf"] = (standing, client, head) => {
    const path = documentPath(head.method, head.target)
    if (path === undefined) return undefined
    return options.run(document(path, standing, client, head)).catch(() => unread(head))
  }

  const refusing: Refusing = { gone, refusalOf, proofOf, callerOf }

  const find = Effect.fnUntraced(function* (head: Head, client: Client) {
    const name = hosts.nameOf(head.host)
    if (name === undefined) return problemFor(book, head, "tunnel_not_found", "No tunnel has this host.")
    const begun = yield* routes.standing(name)
    if (begun === undefined) return gone(head)
    const path = documentPath(head.method, head.target)
    if (path !== undefined) return yield* document(path, begun, client.address, head)
    const refused = refusalOf(begun, client.address, head)
    if (refused !== undefined) return refused
    const verified = (holds: Standing) => Effect.promise(() => callerOf(holds, head, client.proto))
    const caller = head.isSigned ? yield* verified(begun) : undefined
    if (Buffer.isBuffer(caller)) return caller
    // The settings may have changed while the signature was verified.
    const standing = head.isSigned ? yield* routes.standing(name) : begun
    if (standing === undefined) return gone(head)
    if (standing !== begun) {
      const refused = refusalOf(standing, client.address, head)
      if (refused !== undefined) return refused
      const judged = Admission.allowsCaller(standing, caller) ? caller : yield* verified(standing)
      if (Buffer.isBuffer(judged)) return judged
    }
    const way = yield* routes.find(name, standing)
    if (way === undefined) return yield* offline(head, name, standing)
    const route: Route = {
      _tag: "Stream",
      caller,
      open: way.open,
      isLeaving: way.isLeaving,
      enter: (changed) => new SettingsTerms(routes.open(name, standing, changed), standing, way, client, refusing),
      openMeter: (cut) => metering.open(standing.orgId, standing.identityId, cut),
    }
    return route
  })

  const route = (head: Head, client: Client): Effect.Effect<Route> =>
    find(head, client).pipe(
      Effect.catch(() => Effect.succeed(problemFor(book, head, "unavailable", "The lookup of the name failed."))),
      Effect.map((found) => {
        const answered = Buffer.isBuffer(found)
        EdgeMetrics.routed(answered ? found : undefined)
        return answered ? { _tag: "Answer", bytes: found } : found
      }),
    )

  return {
    route,
    /** Routes the request again after its first route failed. */
    reroute: (head: Head, client: Client) =>
      Effect.andThen(routes.forget(hosts.nameOf(head.host) ?? ""), route(head, client)),
    /** Returns the response for a stream that was reset with this code. */
    failed: (head: Head, code: number): Buffer =>
      problemFor(
        book,
        head,
        failures[code] ?? "tunnel_link_lost",
        "The request did not come to an answer of the agent.",
      ),
  }
})
