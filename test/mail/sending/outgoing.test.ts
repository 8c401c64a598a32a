/** The settings of the operator decide how the service's own mail leaves, and who seals it. */
import { createHash, generateKeyPairSync, X509Certificate } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { realParts } from "@svc/cli/serve/Parts"
import * as Outgoing from "@svc/cli/serve/roles/Outgoing"
import { load } from "@svc/cli/serve/Settings"
import { SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { ConfigProvider, Effect, Layer } from "effect"
import { waitUntil } from "../../harness/Actors.ts"
import { foundation, rows } from "../../harness/Stores.ts"
import { a, mx, nameServer, tlsa } from "./NameServer.ts"
import { dnsLayer, sink, untrustedCertificate } from "./Sinks.ts"

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest()
const key = new X509Certificate(untrustedCertificate.cert).publicKey.export({ type: "spki", format: "der" })

layer(foundation)("Direct delivery of the service's own mail", (it) => {
  it.effect(
    "uses the port, name, trusted name server and seal of the settings, and never the service's own server",
    () =>
      Effect.gen(function* () {
        const names: Array<string> = []
        const { port, taken } = yield* sink({
          ...untrustedCertificate,
          onMailFrom: (_, session, done) => {
            names.push(session.hostNameAppearsAs as string)
            done()
          },
        })
        const { port: validating } = yield* nameServer({
          "MX example.org": { data: [mx(10, "mx.example.org")] },
          "A mx.example.org": { data: [a("127.0.0.1")] },
          "AAAA mx.example.org": {},
          [`TLSA _${port}._tcp.mx.example.org`]: { data: [tlsa(3, 1, 1, sha256(key))] },
          "MX other.example": { data: [mx(10, "mx.other.example")] },
          "A mx.other.example": { data: [a("127.0.0.1")] },
          "AAAA mx.other.example": {},
          [`TLSA _${port}._tcp.mx.other.example`]: { data: [tlsa(3, 1, 1, sha256(Buffer.from("another key")))] },
          "MX own.example": { data: [mx(10, "mx2.svc.example")] },
          "A mx2.svc.example": { data: [a("127.0.0.1")] },
          "AAAA mx2.svc.example": {},
        })
        const arc = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString()
        const settings = yield* load.pipe(
          Effect.provide(
            ConfigProvider.layer(
              ConfigProvider.fromUnknown({
                SVC_MAIL_DIRECT: "true",
                SVC_MAIL_DIRECT_PORT: String(port),
                SVC_DANE_RESOLVER: `127.0.0.1:${validating}`,
                SVC_MAIL_DOMAIN: "svc.example",
                SVC_MX: "mx.svc.example,mx2.svc.example",
                SVC_SYSTEM_FROM: "accounts@svc.example",
                SVC_ARC_KEY: arc,
                SVC_ARC_SELECTOR: "seals",
              }),
            ),
          ),
        )
        const client = Layer.mock(GuardedClient, {})
        const outgoing = Outgoing.layer(settings, { ...realParts, resolver: dnsLayer({}) }).pipe(Layer.provide(client))
        const mailer = yield* Effect.map(Layer.build(outgoing), (built) => Effect.provide(SystemMailer, built))
        const { send, forward } = yield* mailer
        // The keys for signatures are created at the start, so that the doctor can name their records.
        yield* waitUntil(
          rows((sql) => sql`select 1 from dkim_key where domain = 'svc.example'`),
          (keys) => keys.length > 0,
          0,
        )
        const letter = { subject: "Hello", text: "x" }
        yield* send({ ...letter, to: "ada@example.org" })
        expect(taken).toMatchObject([{ from: "accounts@svc.example", to: ["ada@example.org"], secure: true }])
        expect(names).toEqual(["mx.svc.example"])
        for (const to of ["ada@other.example", "ada@own.example"]) {
          expect((yield* Effect.flip(send({ ...letter, to })))._tag, to).toBe("RelayUnavailable")
        }
        const results = "Authentication-Results: svc.example;\r\n dmarc=none\r\n"
        const raw = Buffer.from(`${results}From: b@example.org\r\nSubject: s\r\n\r\nx\r\n`)
        yield* forward({ to: "operator@example.org", raw })
        expect(taken).toHaveLength(2)
        expect(taken[1]!.raw).toMatch(/^ARC-Seal: i=1;[^:]*\bd=svc\.example;\s+s=seals;/)
      }).pipe(Effect.scoped),
  )
})
