/** The language of a plain page: the one that was chosen at `/`, or that the browser asks for. */
import { type Language, languages } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { spoken } from "../account/MagicLinks.ts"

/** Set where somebody chooses a language. */
export const kept = "svc_language"

export const known = (text: string | null | undefined): Language | undefined =>
  languages.find((language) => language === text)

export const languageOf = ({ cookies, headers }: HttpServerRequest.HttpServerRequest): Language =>
  known(cookies[kept]) ?? spoken(headers["accept-language"])

export const language = Effect.map(HttpServerRequest.HttpServerRequest, languageOf)

/** The account's own for who is signed in, as in the console. */
export const languageFor = (caller: CallerInfo | undefined) =>
  caller === undefined ? language : Effect.succeed(caller.org.language)
