/** Certificates signed by a test authority, created with `openssl` if it is installed. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

/**
 * An authority; a certificate for a server, one for another name, and one that falsely claims this issuer. Below an
 * authority of a day that the first one signed stand certificates of three days: one for the server, one for a name with
 * a wildcard, and one that the server's certificate signed, which is no authority.
 */
export const chained = () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-chain-"))
  const file = (name: string) => path.join(directory, name)
  const read = (name: string) => readFileSync(file(name), "utf8")
  const openssl = (...command: ReadonlyArray<string>) => execFileSync("openssl", command, { stdio: "pipe" })
  const authority = (name: string) => {
    const ends = ["-addext", "basicConstraints=critical,CA:TRUE", "-days", "2", "-subj", "/CN=Authority"]
    openssl("req", "-x509", ...ec, ...ends, "-keyout", file(`${name}.key`), "-out", file(`${name}.pem`))
  }
  const server = (name: string, host: string, by: string, days = "1", extension = "") => {
    openssl("req", ...ec, "-subj", `/CN=${host}`, "-keyout", file(`${name}.key`), "-out", file(`${name}.csr`))
    // Omits the issuer's key id, so that only the signature identifies it.
    writeFileSync(file(`${name}.ext`), `subjectAltName=DNS:${host}\nauthorityKeyIdentifier=none\n${extension}`)
    const signer = ["-CA", file(`${by}.pem`), "-CAkey", file(`${by}.key`), "-CAcreateserial", "-days", days]
    openssl(
      "x509",
      "-req",
      "-in",
      file(`${name}.csr`),
      ...signer,
      "-extfile",
      file(`${name}.ext`),
      "-out",
      file(`${name}.pem`),
    )
    const own = read(`${name}.pem`)
    return { own, chain: `${own}${read("real.pem")}`, key: read(`${name}.key`) }
  }
  try {
    authority("real")
    authority("false")
    return {
      authority: read("real.pem"),
      own: server("own", "mx.example.org", "real"),
      elsewhere: server("elsewhere", "mx.elsewhere.example", "real"),
      forged: server("forged", "mx.example.org", "false"),
      below: {
        authority: server("below", "authority", "real", "1", "basicConstraints=critical,CA:TRUE\n").own,
        server: server("deep", "mx.example.org", "below", "3").own,
        wildcard: server("wildcard", "m*.example.org", "below", "3").own,
        other: server("other", "mx.example.org", "deep", "3").own,
      },
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
