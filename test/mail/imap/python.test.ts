/** Python's imaplib and smtplib, as scripts use them, if Python is installed. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../../harness/Client.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"
import { makeMailbox, subjects } from "./Mailboxes.ts"
import { has } from "../../harness/Programs.ts"

let service: TestService
let token: string

/** Runs a script and returns the JSON it prints; `a` is its argument. */
const python = async (script: string, given: object): Promise<any> => {
  const text = `import json, ssl, sys\na = json.loads(sys.argv[1])\nopen_tls = ssl._create_unverified_context()\n${script}`
  const { stdout } = await promisify(execFile)("python3", ["-c", text, JSON.stringify(given)])
  return JSON.parse(stdout)
}

describe.skipIf(!has("python"))("python", () => {
  beforeAll(async () => {
    service = await sharedService()
    token = (await signUp(service.base)).session
  })

  it("reads, searches, flags, appends and moves with imaplib", async () => {
    const box = await makeMailbox(service, token, 3)
    const printed = await python(
      `
import email, email.policy, imaplib, time
out = {}
m = imaplib.IMAP4_SSL("127.0.0.1", a["port"], ssl_context=open_tls)
m.login(a["user"], a["pass"])
# It asks once, before it logs in.
out["knows"] = [name in m.capabilities for name in ("IMAP4REV1", "ENABLE", "IDLE")]
out["namespace"] = m.namespace()[1][0].decode()
out["folders"] = [line.decode() for line in m.list()[1]]
assert m.create("Work/Reports") == ("OK", [b"CREATE completed."])
m.subscribe("Work/Reports")
out["subscribed"] = [line.decode() for line in m.lsub('""', "Work/%")[1]]
out["count"] = m.select("INBOX")[1][0].decode()
out["recent"] = m.response("UIDVALIDITY")[1][0] is not None
typ, data = m.fetch("1", "(RFC822)")
letter = email.message_from_bytes(data[0][1], policy=email.policy.default)
out["letter"] = [letter["subject"], letter["from"].addresses[0].display_name, letter.get_content().strip()]
out["part"] = m.fetch("2:3", "(UID BODY.PEEK[TEXT]<0.4>)")[1]
out["part"] = [one[1].decode() for one in out["part"] if isinstance(one, tuple)]
day = imaplib.Time2Internaldate(time.mktime((2020, 2, 3, 4, 5, 6, 0, 0, 0)))
made = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\\r\\nFrom: <me@example.org>\\r\\n\\r\\nHallo\\r\\n".encode()
out["append"] = m.append("INBOX", r"(\\Seen \\Flagged)", day, made)[1][0].decode()
m.noop()
out["exists"] = m.response("EXISTS")[1][-1].decode()
m.literal = "grüße".encode()
out["literal"] = m.uid("SEARCH", "CHARSET", "UTF-8", "SUBJECT")[1][0].decode()
out["search"] = m.search(None, "(UNSEEN)", "SUBJECT", '"letter"')[1][0].decode()
out["sort"] = m.sort("REVERSE DATE", "UTF-8", "ALL")[1][0].decode()
out["thread"] = m.thread("REFERENCES", "UTF-8", "ALL")[1][0].decode()
out["store"] = m.store("2", "+FLAGS", r"(\\Answered Later)")[1][-1].decode()
out["copy"] = m.copy("2", "Work/Reports")[1][0].decode()
out["move"] = m.uid("MOVE", "3", "Work/Reports")[0]
out["status"] = m.status("Work/Reports", "(MESSAGES UNSEEN UIDNEXT)")[1][0].decode()
m.store("1", "+FLAGS", r"\\Deleted")
out["expunge"] = [number.decode() for number in m.expunge()[1]]
out["quota"] = m.getquotaroot("INBOX")[0]
try:
    m.select("Nowhere")
    out["nowhere"] = m.state
except imaplib.IMAP4.error as error:
    out["nowhere"] = str(error)
m.close() if m.state == "SELECTED" else None
out["end"] = m.logout()[0]
print(json.dumps(out))
`,
      { port: service.imapsPort, user: box.user, pass: box.pass },
    )
    expect(printed).toEqual({
      knows: [true, true, true],
      namespace: '(("" "/")) NIL NIL',
      folders: [
        '(\\HasNoChildren) "/" INBOX',
        '(\\HasNoChildren \\Drafts) "/" Drafts',
        '(\\HasNoChildren \\Junk) "/" Junk',
        '(\\HasNoChildren \\Sent) "/" Sent',
        '(\\HasNoChildren \\Trash) "/" Trash',
      ],
      subscribed: ['() "/" Work/Reports'],
      count: "3",
      recent: true,
      letter: ["Letter 0", "Grace Höpper", "Zahl 0"],
      part: ["Zahl", "Zahl"],
      append: expect.stringMatching(/^\[APPENDUID \d+ 4\]/),
      exists: "4",
      literal: "4",
      search: "2 3",
      sort: "3 2 1 4",
      thread: "(4)(1)(2)(3)",
      store: "2 (FLAGS (\\Answered later \\Recent))",
      copy: expect.stringMatching(/^\[COPYUID \d+ 2 1\]/),
      move: "OK",
      status: "Work/Reports (MESSAGES 2 UNSEEN 2 UIDNEXT 3)",
      expunge: ["3", "1"],
      quota: "OK",
      nowhere: "AUTH",
      end: "BYE",
    })
    const remaining = await box.listed((messages) => messages.length === 3)
    expect(subjects(remaining)).toEqual(["Grüße", "Letter 1", "Letter 2"])
    expect(remaining.find(({ subject }) => subject === "Letter 1")).toMatchObject({ labels: ["later"], seen: false })
  })

  it("logs in with STARTTLS and AUTHENTICATE, uses UTF-8 mailbox names, and gets useful errors", async () => {
    const box = await makeMailbox(service, token, 1)
    const printed = await python(
      `
import imaplib
out = {}
m = imaplib.IMAP4("127.0.0.1", a["port"])
m.starttls(open_tls)
try:
    m.login(a["user"], "wrong")
except imaplib.IMAP4.error as error:
    out["wrong"] = str(error)
m.authenticate("PLAIN", lambda _: ("\\0" + a["user"] + "\\0" + a["pass"]).encode())
m.append("Drafts", None, None, "Subject: Grüße\\r\\n\\r\\nHallo\\r\\n".encode())
m.enable("UTF8=ACCEPT")
out["create"] = m.create('"Größe"')[0]
out["list"] = m.list('""', '"Gr*"')[1][0].decode()
m.select("Drafts")
out["copy"] = m.copy("1", '"Größe"')[0]
m.select('"Größe"', readonly=True)
out["found"] = m.search(None, 'SUBJECT "grüße"')[1][0].decode()
out["readonly"] = m.store("1", "+FLAGS", r"\\Seen")[0]
m.unselect()
m.rename('"Größe"', "Size")
out["delete"] = m.delete("Size")[0]
m.logout()
print(json.dumps(out))
`,
      { port: service.imapPort, user: box.user, pass: box.pass },
    )
    expect(printed).toEqual({
      wrong: expect.stringMatching(/AUTHENTICATIONFAILED/),
      create: "OK",
      list: '(\\HasNoChildren) "/" "Größe"',
      copy: "OK",
      found: "1",
      readonly: "NO",
      delete: "OK",
    })
  })

  it("sends with smtplib, whose exceptions report rejections", async () => {
    const [ada, bob] = [await makeMailbox(service, token, 0), await makeMailbox(service, token, 0)]
    await ada.allow(bob.address)
    const printed = await python(
      `
import smtplib
from email.message import EmailMessage
def letter(subject, to):
    m = EmailMessage()
    m["From"], m["To"], m["Subject"] = a["from"], to, subject
    m.set_content("Größe: zwölf\\n.\\n..\\nende")
    m.add_alternative("<p>Größe: <b>zwölf</b></p>", subtype="html")
    m.add_attachment(b"\\x00\\x01\\x02" * 1000, maintype="application", subtype="octet-stream", filename="räume.bin")
    return m
out = {}
with smtplib.SMTP("127.0.0.1", a["port"]) as s:
    s.starttls(context=open_tls)
    try:
        s.login(a["user"], "wrong")
    except smtplib.SMTPAuthenticationError as error:
        out["wrong"] = error.smtp_code
    s.login(a["user"], a["pass"])
    out["sent"] = s.send_message(letter("By STARTTLS", a["to"]))
    try:
        s.send_message(letter("To a stranger too", a["to"]), to_addrs=[a["to"], "x@elsewhere.example"])
    except smtplib.SMTPDataError as error:
        out["recipient"] = [error.smtp_code, error.smtp_error.decode()]
    try:
        s.sendmail("someone.else@example.org", [a["to"]], b"Subject: no\\r\\n\\r\\nno")
    except smtplib.SMTPSenderRefused as error:
        out["sender"] = error.smtp_code
    out["again"] = s.noop()[0]
with smtplib.SMTP_SSL("127.0.0.1", a["tlsPort"], context=open_tls) as s:
    s.login(a["user"], a["pass"])
    out["tls"] = s.send_message(letter("By TLS", a["to"]))
print(json.dumps(out))
`,
      {
        port: service.submissionPort,
        tlsPort: service.submissionsPort,
        user: ada.user,
        pass: ada.pass,
        from: ada.address,
        to: bob.address,
      },
    )
    expect(printed).toEqual({
      wrong: 535,
      sent: {},
      recipient: [550, expect.stringMatching(/Nothing was sent: x@elsewhere\.example is not an Allowed Recipient/)],
      sender: 550,
      again: 250,
      tls: {},
    })
    const arrived = await bob.listed((messages) => messages.length === 2)
    expect(subjects(arrived)).toEqual(["By STARTTLS", "By TLS"])
  })
})
