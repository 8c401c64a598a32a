/** A sentence about an Event or an audit record; what others chose in it cannot turn the words around it. */
import type { SentenceLanguage } from "@svc/domain/Phrases"
import { language } from "../texts/Texts.ts"

/** Control characters, which no value in a sentence has. */
const marked = (value: string) => `\u0001${value}\u0002`

interface SentenceProps {
  readonly of: (language: SentenceLanguage, mark: (value: string) => string) => string
  /** What stands behind it. */
  readonly children?: string
}

// oxlint-disable-next-line no-control-regex -- they are what was put there
const places = /(\u0001[^\u0002]*\u0002)/

export const Sentence = ({ of, children }: SentenceProps) => (
  <span>
    {of(language.value, marked)
      .split(places)
      .map((part, at) => (at % 2 === 1 ? <bdi key={at}>{part.slice(1, -1)}</bdi> : part))}
    {children}
  </span>
)
