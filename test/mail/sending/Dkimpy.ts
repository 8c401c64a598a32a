/** A second implementation of DKIM, Debian's `python3-dkim`: what it says of each signature of a message. */
import { spawnSync } from "node:child_process"

const python = "/usr/bin/python3"

export const hasDkimpy = spawnSync(python, ["-c", "import dkim, nacl"]).status === 0

const program = `
import sys, json, base64, dkim
given = json.load(sys.stdin)
zone = given["zone"]
raw = base64.b64decode(given["raw"])
def txt(name, timeout=5):
    key = (name.decode() if isinstance(name, bytes) else name).rstrip(".")
    return zone[key].encode() if key in zone else None
message = dkim.DKIM(raw)
print(json.dumps([message.verify(idx=i, dnsfunc=txt) for i in range(given["count"])]))
`

/** Whether each of the message's first signatures holds. `zone` has TXT records by their names. */
export const verify = (
  raw: Uint8Array,
  zone: Readonly<Record<string, string>>,
  count: number,
): ReadonlyArray<boolean> => {
  const input = JSON.stringify({ raw: Buffer.from(raw).toString("base64"), zone, count })
  const { status, stdout, stderr } = spawnSync(python, ["-c", program], { input, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as ReadonlyArray<boolean>
}
