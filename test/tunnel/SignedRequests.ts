import { type KeyObject, randomBytes, sign } from "node:crypto"
import { component, createSignatureSync } from "http-message-sig"

export interface Options {
  readonly method?: string
  /** Seconds since the signature was made. */
  readonly age?: number
  readonly covered?: ReadonlyArray<string>
}
/** Returns the fields of a request that an agent signed (Web Bot Auth). */
export const signedBy = (origin: string, keyid: string, key: KeyObject, url: string, options: Options = {}) => {
  const created = Math.floor(Date.now() / 1000) - (options.age ?? 0)
  const agentField = `sig1="${origin}"`
  const fields = [{ name: "signature-agent", value: agentField }]
  const { signature, signatureInput } = createSignatureSync(
    { kind: "request", method: options.method ?? "GET", targetUri: url, fields },
    {
      label: "sig1",
      components: [
        ...(options.covered ?? ["@authority", "@method", "@path"]),
        ...(options.covered === undefined ? [component("signature-agent", { key: "sig1" })] : []),
      ],
      parameters: {
        created,
        expires: created + 3600,
        keyid,
        nonce: randomBytes(64).toString("base64"),
        tag: "web-bot-auth",
      },
      signer: { algorithm: "ed25519", sign: (data) => new Uint8Array(sign(null, data, key)) },
    },
  )
  return { "signature-agent": agentField, "signature-input": signatureInput, signature }
}
