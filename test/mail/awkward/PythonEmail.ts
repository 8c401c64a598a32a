/** A second mail parser: Python's `email` package. */
import { spawnSync } from "node:child_process"
import type { Reading } from "./Letter.ts"

const python = ["/usr/bin/python3", "python3"].find(
  (program) => spawnSync(program, ["-c", "import email.policy"]).status === 0,
)

const program = `
import sys, json, base64, email, email.policy

def attempt(read):
    try:
        return read()
    except Exception as error:
        return repr(error)

def people(message, name):
    field = message[name]
    return [] if field is None else [(one.display_name, one.addr_spec) for one in field.addresses]

def leaves(part):
    isMessage = part.get_content_type().startswith("message/")
    if part.is_multipart() and not isMessage:
        return [leaf for child in part.get_payload() for leaf in leaves(child)]
    isShown = part.get_content_type() in ("text/plain", "text/html") and part.get_filename() is None
    if isShown and part.get_content_disposition() != "attachment":
        return []
    payload = None if isMessage else part.get_payload(decode=True)
    return [[part.get_filename(), part.get_content_type(), None if payload is None else len(payload)]]

def body(message):
    part = message.get_body(preferencelist=("plain", "html"))
    return None if part is None else part.get_content()

def reading(raw):
    message = email.message_from_bytes(base64.b64decode(raw), policy=email.policy.default)
    author = attempt(lambda: [f"{name} <{address}>".strip() for name, address in people(message, "from")][:1])
    return {
        "subject": attempt(lambda: str(message["subject"] or "")),
        "from": author[0] if isinstance(author, list) and author else author,
        "to": attempt(lambda: [address for _, address in people(message, "to")]),
        "text": attempt(lambda: body(message)),
        "attachments": attempt(lambda: leaves(message)),
    }

print(json.dumps([reading(raw) for raw in json.load(sys.stdin)]))
`

/** Null if it finds none; the size is null if it does not report one. */
export const readings = (letters: ReadonlyArray<Uint8Array>): ReadonlyArray<Record<keyof Reading, unknown>> => {
  const input = JSON.stringify(letters.map((raw) => Buffer.from(raw).toString("base64")))
  const { status, stdout, stderr } = spawnSync(python ?? "python3", ["-c", program], { input, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as ReadonlyArray<Record<keyof Reading, unknown>>
}
