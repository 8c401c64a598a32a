import { SMTPServer } from "smtp-server"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"
import { freePort } from "../harness/Ports.ts"

interface Taken {
  readonly user: string
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly raw: string
}
const taken: Array<Taken> = []
let refuses = false
let refusesLarge = false
let relay: SMTPServer
let service: TestService

beforeAll(async () => {
  relay = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _, done) =>
      password === "secret" ? done(null, { user: username }) : done(new Error("no")),
    onData: (stream, session, done) => {
      const chunks: Array<Buffer> = []
      stream.on("data", (chunk: Buffer) => chunks.push(chunk))
      stream.on("end", () => {
        if (refuses || (refusesLarge && chunks.length > 100))
          return done(Object.assign(new Error("later"), { responseCode: 451 }))
        const { mailFrom, rcptTo } = session.envelope
        taken.push({
          user: String(session.user),
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
        })
        done()
      })
    },
  })
  const port = await freePort()
  await new Promise<void>((resolve) => relay.listen(port, "127.0.0.1", resolve))
  service = await startService({
    env: {
      SVC_SMTP_RELAY_URL: `smtp://mailer:secret@127.0.0.1:${port}`,
      SVC_SYSTEM_FROM: "accounts@svc.example",
      SVC_POSTMASTER_TO: "operator@example.org",
    },
  })
})
afterAll(async () => {
  await service.stop()
  await new Promise<void>((resolve) => relay.close(() => resolve()))
})

const ask = (email: string, more: object = {}, headers: Record<string, string> = {}) =>
  call(service.base, "POST", "/api/auth/magic-link", { body: { email, tos_accepted: true, ...more }, headers })

describe("the sign-in letter", () => {
  it.each([
    ["en", "Your sign-in link", "Sign in"],
    ["de", "Ihr Anmeldelink", "Anmelden"],
    ["fr", "Votre lien de connexion", "Se connecter"],
  ])("goes out through the relay in %s, and its link signs in", async (language, subject, button) => {
    const email = `letter-${language}@example.org`
    expect((await ask(email, { language })).status).toBe(202)
    const letter = await eventually(
      async () => taken.find(({ to }) => to[0] === email),
      (found) => found !== undefined,
    )
    expect(letter).toMatchObject({ user: "mailer", from: "accounts@svc.example", to: [email] })
    const raw = letter!.raw.replace(/=\r\n/g, "").replaceAll("=3D", "=")
    expect(raw).toContain(`Subject: ${subject}`)
    expect(raw).toContain(button)
    expect(raw).toContain("Auto-Submitted: auto-generated")
    const token = /token=([\w-]+)/.exec(raw)![1]
    const consumed = await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })
    expect(consumed.body.org).toMatchObject({ email, language })
  })

  it("takes its language from Accept-Language where none is named", async () => {
    await ask("spoken@example.org", {}, { "accept-language": "it, fr;q=0.8, de;q=0.5" })
    const letter = await eventually(
      async () => taken.find(({ to }) => to[0] === "spoken@example.org"),
      (found) => found !== undefined,
    )
    expect(letter!.raw).toContain("Votre lien de connexion")
  })

  it("is one for one address, whatever is written into the address", async () => {
    const before = taken.length
    for (const email of [
      "a@b@c.example",
      "a@example.org,b@example.org",
      "<a@example.org>",
      "a@example.org\r\nBcc: b@example.org",
    ]) {
      expect((await ask(email)).status, email).toBe(400)
    }
    expect(taken.length).toBe(before)
  })

  it("that the relay does not take leaves the caller unavailable, to try again", async () => {
    refuses = true
    const answer = await ask("refused@example.org")
    refuses = false
    expect(answer.status).toBe(503)
    expect(answer.body.code).toBe("unavailable")
    expect((await ask("refused@example.org")).status).toBe(202)
  })
})

describe("mail for postmaster@", () => {
  it("goes on to the operator as it came", async () => {
    await send(service.smtpPort, {
      from: "grace@example.org",
      to: "Postmaster@mail.localhost",
      subject: "a complaint",
      text: "x",
    })
    const forwarded = await eventually(
      async () => taken.filter(({ to }) => to[0] === "operator@example.org"),
      (found) => found.length > 0,
      40,
    )
    expect(forwarded).toHaveLength(1)
    expect(forwarded[0]!.raw).toMatch(/From: grace@example\.org[^]*Subject: a complaint/)
  })

  it("goes on though it is larger than the driver takes at once, and though the relay refuses what came before", async () => {
    taken.length = 0
    refusesLarge = true
    await service.query(
      (sql) => sql`
        insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
        select uuidv7(), '', '', name, convert_to(E'Subject: ' || name || E'\r\n\r\n' || repeat(E'0123456789abcde\r\n', lines), 'UTF8'),
               now() + n * interval '1 millisecond'
        from (values (1, 'large', 1200000), (2, 'small', 1)) as mail (n, name, lines)`,
    )
    const subjects = () => taken.map(({ raw }) => raw.slice(0, 14))
    await eventually(
      async () => subjects(),
      (found) => found.includes("Subject: small"),
      40,
    )
    expect(subjects()).not.toContain("Subject: large")
    refusesLarge = false
    await eventually(
      async () => subjects(),
      (found) => found.includes("Subject: large"),
      40,
    )
    expect(taken.find(({ raw }) => raw.startsWith("Subject: large"))!.raw.length).toBeGreaterThan(20_000_000)
  }, 90_000)
})
