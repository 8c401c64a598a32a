/**
 * A sentence about an Event or an audit record. Values chosen by others are isolated from the text direction around them.
 */
import type { SentenceLanguage } from "@svc/domain/Phrases"
import { language } from "../texts/Texts.ts"

/** Marks a value by control characters, which values never contain. */
const marked = (value: string) => `\u0001${value}\u0002`

interface SentenceProps {
  readonly of: (language: SentenceLanguage, mark: (value: string) => string) => string
  /** Text after the sentence. */
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
