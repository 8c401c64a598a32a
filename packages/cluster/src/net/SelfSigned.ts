/**
 * Creates self-signed certificates for listeners without a certificate in development. Node cannot encode certificates, so
 * the needed DER structures of RFC 5280 are encoded here.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto"

const encode = (tag: number, ...content: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(content)
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
const sequence = (...items: ReadonlyArray<Uint8Array>) => encode(0x30, ...items)
const set = (...items: ReadonlyArray<Uint8Array>) => encode(0x31, ...items)
const integer = (bytes: Uint8Array) => encode(0x02, bytes)
const bitString = (bytes: Uint8Array) => encode(0x03, Buffer.from([0]), bytes)
const octetString = (bytes: Uint8Array) => encode(0x04, bytes)
const utf8 = (text: string) => encode(0x0c, Buffer.from(text))
const explicit = (number: number, item: Uint8Array) => encode(0xa0 + number, item)

const commonName = encode(0x06, Buffer.from([0x55, 0x04, 0x03]))
const subjectAltName = encode(0x06, Buffer.from([0x55, 0x1d, 0x11]))
const basicConstraints = encode(0x06, Buffer.from([0x55, 0x1d, 0x13]))
const ecdsaWithSha256 = sequence(encode(0x06, Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])))

/** Encodes a time as GeneralizedTime, which supports every year (RFC 5280 section 4.1.2.5.2). */
const time = (date: Date) => encode(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`))
const name = (text: string) => sequence(set(sequence(commonName, utf8(text))))
const dnsName = (text: string) => encode(0x82, Buffer.from(text))

const pem = (label: string, der: Uint8Array) =>
  `-----BEGIN ${label}-----\n${Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n")}\n-----END ${label}-----\n`

/** Returns a key and a certificate in PEM for host names, valid for a year from `now`. */
export const selfSigned = (hosts: readonly [string, ...ReadonlyArray<string>], now: Date) => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x7f) | 0x40
  const extension = (oid: Uint8Array, value: Uint8Array) => sequence(oid, octetString(value))
  const certificate = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    name(hosts[0]),
    sequence(time(new Date(now.getTime() - 86_400_000)), time(new Date(now.getTime() + 365 * 86_400_000))),
    name(hosts[0]),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(
      3,
      sequence(extension(subjectAltName, sequence(...hosts.map(dnsName))), extension(basicConstraints, sequence())),
    ),
  )
  const signature = sign("sha256", certificate, privateKey)
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: pem("CERTIFICATE", sequence(certificate, ecdsaWithSha256, bitString(signature))),
  }
}
