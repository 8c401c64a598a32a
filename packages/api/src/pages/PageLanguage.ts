/** The language of a page: chosen at `/`, or negotiated by `Accept-Language`. */
import { type Language, languages } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { spoken } from "../account/MagicLinks.ts"
import { laterPage } from "./Page.ts"

/** The cookie of a chosen language. */
export const languageCookie = "svc_language"

export const languageNamed = (text: string | null | undefined): Language | undefined =>
  languages.find((language) => language === text)

export const languageOf = ({ cookies, headers }: HttpServerRequest.HttpServerRequest): Language =>
  languageNamed(cookies[languageCookie]) ?? spoken(headers["accept-language"])

export const language = Effect.map(HttpServerRequest.HttpServerRequest, languageOf)

/** Returns the language of the signed-in account, or the negotiated one. */
export const languageFor = (caller: CallerInfo | undefined) =>
  caller === undefined ? language : Effect.succeed(caller.org.language)

/** Catches `unavailable`, and asks the reader to try again in a moment. */
export const orLater = <A, E, R>(answer: Effect.Effect<A, E | Unavailable, R>) =>
  Effect.catchIf(
    answer,
    (problem): problem is Unavailable => problem instanceof Unavailable,
    () => Effect.map(language, laterPage),
  )
