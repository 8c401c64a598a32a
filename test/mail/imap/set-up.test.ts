/** Automatic configuration of mail clients. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { startService, type OwnService } from "../../harness/Service.ts"

let service: OwnService
beforeAll(async () => {
  service = await startService({ env: { SVC_IMAP_HOST: "mail.example.org" } })
})
afterAll(() => service.stop())

it("the show-once response, autoconfig and Apple's profile contain the same settings", async () => {
  const token = (await signUp(service.base)).session
  const { handle, secrets } = await makeIdentity(service.base, token)
  const { host, port, security, username } = secrets.imap
  expect(secrets.smtp).toEqual({ ...secrets.imap, port: service.submissionPort })
  expect({ host, port, security }).toEqual({ host: "mail.example.org", port: service.imapPort, security: "starttls" })
  for (const place of ["/mail/config-v1.1.xml", "/.well-known/autoconfig/mail/config-v1.1.xml"]) {
    const { status, headers, body } = await call<string>(service.base, "GET", `${place}?emailaddress=${username}`)
    expect([status, headers.get("content-type")]).toEqual([200, "application/xml"])
    expect(body).toContain(
      `<hostname>${host}</hostname>\n      <port>${port}</port>\n      <socketType>STARTTLS</socketType>`,
    )
    expect(body).toContain(
      `<outgoingServer type="smtp">\n      <hostname>${host}</hostname>\n      <port>${service.submissionPort}</port>`,
    )
  }
  const profile = await call<string>(service.base, "GET", `/mail/apple.mobileconfig?address=${handle}@mail.localhost`)
  expect(profile.headers.get("content-type")).toBe("application/x-apple-aspen-config")
  expect(profile.body).toContain(`<key>IncomingMailServerUsername</key><string>${username}</string>`)
  expect(profile.body).toContain(`<key>OutgoingMailServerUsername</key><string>${username}</string>`)
  expect(profile.body).toContain(`<key>OutgoingMailServerPortNumber</key><integer>${service.submissionPort}</integer>`)
  const foreign = await call<string>(service.base, "GET", "/mail/apple.mobileconfig?address=<b>@elsewhere.example")
  expect([foreign.status, foreign.body]).toEqual([400, "Say whose Mailbox: ?address=name@mail.localhost\n"])
})

it("the mailbox password and the Identity's key are refused while the account is being deleted", async () => {
  const token = (await signUp(service.base)).session
  const { handle, secrets } = await makeIdentity(service.base, token)
  const login = async (password: string) => {
    const client = await ImapClient.connect(service.imapPort)
    const { tagged } = await client.say(`LOGIN ${handle} ${password}`)
    client.close()
    return tagged
  }
  const passwords = [secrets.imap.password, secrets.identity_key]
  for (const password of passwords) expect(await login(password)).toMatch(/^OK/)
  await service.query(
    (sql) => sql`
      update org set status = 'deleting' where id = (select org_id from identity where canonical = ${handle}) returning id`,
  )
  for (const password of passwords) expect(await login(password)).toMatch(/^NO \[AUTHENTICATIONFAILED\]/)
})
