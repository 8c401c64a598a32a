/**
 * The base subject of RFC 5256 section 2.1: a subject without the prefixes that mail programs add, in English and other
 * languages. It identifies a conversation whose References were lost.
 */

const replies = new Set(
  `re r aw antw antwort sv svar vs vá vast odp odpo odpověď rif ris res resp rép rép réf ynt yan atb bls balas ref
   на отв ответ от re-отв відп відповідь απ απάντηση σχετ 回复 回覆 答复 答覆 返信 답장 회신 رد הנדון תגובה השב ตอบ ตอบกลับ trả`.split(
    /\s+/,
  ),
)
const forwards = new Set(
  `fwd fw wg tr vb vl rv enc i doorst pd přep továbbítás fs fyrir ilt iln i̇lt trs yml vid vidar videre vbs pst переслано
   пересл перес πρθ προωθημένο 转发 轉寄 轉發 転送 전달 הועבר إعادة ส่งต่อ`.split(/\s+/),
)

/** A word, an optional count as in `Re[2]` or `AW(3)`, and an ASCII or full-width colon. */
const prefix = /^([\p{L}\p{M}.-]{1,12})\s{0,3}(?:\[\d{1,3}\]|\(\d{1,3}\)|\^\d{1,3})?\s{0,3}[:：]\s*/u
/** A tag that mailing lists add, such as `[announce]`. */
const blob = /^\[[^[\]]{1,60}\]\s*/u
const limits = { read: 1_000, key: 200, prefixes: 50 }

interface BaseSubject {
  /** The subject in its original spelling, without prefixes. */
  readonly base: string
  /** Whether a prefix marks the message as a reply or forward. */
  readonly continues: boolean
  /** The key by which equal subjects are found, regardless of case and white space; null for an empty subject. */
  readonly key: string | null
}

export const read = (subject: string): BaseSubject => {
  let rest = subject.slice(0, limits.read).trim()
  let continues = false
  for (let count = 0; count < limits.prefixes; count++) {
    const found = prefix.exec(rest)
    const word = found?.[1]?.toLowerCase().replace(/\.$/, "")
    if (found === null || word === undefined || !(replies.has(word) || forwards.has(word))) {
      const tag = blob.exec(rest)
      // A subject that consists of a tag only is kept; a tag before a prefix is removed.
      if (tag === null || !prefix.test(rest.slice(tag[0].length))) break
      rest = rest.slice(tag[0].length)
      continue
    }
    continues = true
    rest = rest.slice(found[0].length)
  }
  const base = rest.replace(/(?:\s*\(fwd\))+$/iu, "").trim()
  const named = base.replace(blob, "")
  const key = (named === "" ? base : named).normalize("NFKC").toLowerCase().replace(/\s+/gu, " ").slice(0, limits.key)
  return { base, continues: continues || base.length < rest.trim().length, key: key === "" ? null : key.trim() }
}
