/** OAuth grants of {@link module:Server}: authorization codes, refresh tokens and client credentials. */
import { createHash, randomBytes } from "node:crypto"
import { ErrorResponse } from "./Exchange.ts"
import type { Settings } from "./Settings.ts"
import type { Account } from "./World.ts"

export interface Application {
  readonly id: string
  readonly secret: string
  readonly redirect: string
  readonly scopes: ReadonlyArray<string>
}

export interface Code {
  readonly application: Application
  readonly account: Account
  readonly redirect: string
  readonly scopes: ReadonlyArray<string>
  readonly challenge: string | undefined
}

export type Token = Pick<Code, "application" | "account" | "scopes"> & { readonly endsAt: number | undefined }

/** Returns the scopes of a request; a request without scopes asks for `read`. */
export const scopesOf = (scope: string | null | undefined): ReadonlyArray<string> => (scope ?? "read").split(" ")

export const secret = () => randomBytes(24).toString("base64url")

export const makeGrants = ({
  applications,
  codes,
  tokens,
  settings,
}: {
  readonly applications: ReadonlyMap<string, Application>
  readonly codes: Map<string, Code>
  readonly tokens: Map<string, Token>
  readonly settings: Settings
}) => {
  const refreshes = new Map<string, Token>()
  const spent = new Set<string>()

  const applicationOf = (body: Record<string, any>): Application => {
    const found = applications.get(body["client_id"])
    if (found === undefined || found.secret !== body["client_secret"]) {
      throw new ErrorResponse(401, "invalid_client", {
        error_description:
          "Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method.",
      })
    }
    return found
  }

  const mint = ({ application, account, scopes }: Pick<Code, "application" | "account" | "scopes">) => {
    const access = settings.token ?? secret()
    const refresh = secret()
    const ends = settings.tokenSeconds
    const token = { application, account, scopes, endsAt: ends === undefined ? undefined : Date.now() + ends * 1000 }
    tokens.set(access, token)
    if (ends !== undefined) refreshes.set(refresh, token)
    return {
      access_token: access,
      token_type: "Bearer",
      scope: scopes.join(" "),
      created_at: Math.floor(Date.now() / 1000),
      ...(ends === undefined ? {} : { expires_in: ends, refresh_token: refresh }),
    }
  }

  const grants = {
    authorization_code: (body: Record<string, any>) => {
      const application = applicationOf(body)
      const code = codes.get(body["code"])
      codes.delete(body["code"])
      const challenged = code?.challenge
      const verified =
        challenged === undefined ||
        createHash("sha256")
          .update(String(body["code_verifier"] ?? ""))
          .digest("base64url") === challenged
      if (
        code === undefined ||
        code.application !== application ||
        code.redirect !== body["redirect_uri"] ||
        !verified
      ) {
        throw new ErrorResponse(400, "invalid_grant", {
          error_description:
            "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client.",
        })
      }
      return mint(code)
    },
    client_credentials: (body: Record<string, any>) => {
      const application = applicationOf(body)
      if ((settings.kind === "gotosocial" || settings.kind === "snac") && body["redirect_uri"] === undefined)
        throw new ErrorResponse(400, "invalid_request")
      return { access_token: secret(), token_type: "Bearer", scope: application.id === "" ? "" : "read" }
    },
    refresh_token: (body: Record<string, any>) => {
      const application = applicationOf(body)
      const token = refreshes.get(body["refresh_token"])
      // A refresh token is valid once; a second use is recorded, since it may be theft.
      if (refreshes.delete(body["refresh_token"])) spent.add(body["refresh_token"])
      else if (spent.has(body["refresh_token"])) settings.spentTwice++
      if (token === undefined || token.application !== application) {
        throw new ErrorResponse(401, "invalid_grant", { error_description: "The refresh token is invalid." })
      }
      return mint(token)
    },
  }

  return { grants }
}
