/** A second DKIM implementation, Debian's `python3-dkim`. */
import { spawnSync } from "node:child_process"

const python = "/usr/bin/python3"

const program = `
import sys, json, base64, dkim
given = json.load(sys.stdin)
zone = given["zone"]
def txt(name, timeout=5):
    key = (name.decode() if isinstance(name, bytes) else name).rstrip(".")
    return zone[key].encode() if key in zone else None
messages = [dkim.DKIM(base64.b64decode(raw)) for raw in given["raws"]]
print(json.dumps([[one.verify(idx=i, dnsfunc=txt) for i in range(given["count"])] for one in messages]))
`

/** Returns for each message whether each of its first signatures verifies. `zone` has TXT records by name. */
export const verify = (
  messages: ReadonlyArray<Uint8Array>,
  zone: Readonly<Record<string, string>>,
  count: number,
): ReadonlyArray<ReadonlyArray<boolean>> => {
  const input = JSON.stringify({ raws: messages.map((raw) => Buffer.from(raw).toString("base64")), zone, count })
  const { status, stdout, stderr } = spawnSync(python, ["-c", program], { input, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as ReadonlyArray<ReadonlyArray<boolean>>
}
