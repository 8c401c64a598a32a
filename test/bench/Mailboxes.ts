/**
 * Fills Mailboxes directly in the store. Words are distributed as in real texts, so that rare and common words are
 * known in advance.
 */
import { makeIdentity } from "../harness/Client.ts"
import { inStore } from "../faults/Store.ts"
import type { Deployment } from "../harness/Deployment.ts"

/** Number of messages per INSERT, which takes about a second. */
const batch = 5_000

/** Search terms, with the number of matches in a Mailbox of 25,000 messages. */
export const searchTerms = {
  /** Two of the oldest messages. */
  rare: "xylophon",
  /** One message in two hundred. */
  seldom: "quarterly",
  /** One message in four. */
  common: "meeting",
  /** Two characters that occur in most messages, and two that occur only in messages with the rare word. */
  two: "th",
  twoRare: "zj",
}

/** Creates the Identities with messages whose bodies have about 4 kB. */
export const fill = async (
  deployment: Deployment,
  base: string,
  token: string,
  boxes: number,
  each: number,
): Promise<ReadonlyArray<string>> => {
  const handles: Array<string> = []
  for (let n = 0; n < boxes; n++) handles.push((await makeIdentity(base, token)).handle)
  const total = boxes * each
  await inStore(
    deployment,
    "create table bench_box as select id, row_number() over (order by id) - 1 as place from identity",
  )
  // A message consists of eight of two thousand passages of words; few words are in most passages, and most words in
  // few.
  await inStore(
    deployment,
    `create table bench_chunk as
     select n, string_agg(translate(left(md5(floor(exp(random() * 10))::bigint::text), 3 + (random() * 6)::int), '0123456789', 'eatoinshrl'), ' ') as text
     from generate_series(0, 1999) n, generate_series(1, 75) w group by n`,
  )
  await inStore(deployment, "create unique index on bench_chunk (n)")
  for (let from = 0; from < total; from += batch) {
    await inStore(
      deployment,
      // Message n is number n / boxes of Mailbox n mod boxes, so that all Mailboxes grow together as in production.
      `with made as (
         select uuidv7() as id, b.id as identity_id, (n / ${boxes} + 1)::int as uid, n,
                (select string_agg(c.text, ' ') from bench_chunk c
                 where c.n in (select floor(random() * 2000)::int from generate_series(1, 8) where n is not null)) as words
         from generate_series(${from}, ${Math.min(total, from + batch) - 1}) n join bench_box b on b.place = n % ${boxes}
       ),
       texts as (
         select *, words
           || case when uid % 4 = 0 then ' ${searchTerms.common}' else '' end
           || case when uid % 200 = 0 then ' ${searchTerms.seldom}' else '' end
           || case when uid in (2, 3) then ' ${searchTerms.rare} ${searchTerms.twoRare}' else '' end as body
         from made
       ),
       stored as (
         insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, message_id, envelope_from,
                              recipient, sha256, size, summary, received_at, modseq)
         select id, identity_id, uid, 'inbound', id, 'letter ' || n, null, '<' || n || '@bench.example>',
                'bench@example.org', 'x@mail.localhost', '\\x00', 5000,
                jsonb_build_object('from', jsonb_build_object('address', 'bench@example.org', 'name', 'Bench'),
                  'to', jsonb_build_array(jsonb_build_object('address', 'x@mail.localhost', 'name', null)), 'cc', '[]'::jsonb,
                  'bcc', '[]'::jsonb, 'reply_to', '[]'::jsonb, 'subject', 'Letter ' || n, 'snippet', left(body, 200),
                  'in_reply_to', null, 'references', '[]'::jsonb, 'attachments', '[]'::jsonb,
                  'origin', jsonb_build_object('verdict', 'unverified', 'spf', 'none', 'dkim', 'none', 'dmarc', 'none', 'domain', null)),
                now() - interval '1 year' + n * interval '1 second', uid
         from texts
       )
       insert into message_content (message_id, identity_id, raw, text, headers, search_text, created_at)
       select id, identity_id, convert_to(body, 'UTF8'), body, '[]',
              concat_ws(chr(30), 'bench bench@example.org', 'x@mail.localhost', 'letter ' || n, '', body), now()
       from texts`,
    )
    if (total >= 100_000 && (from / batch) % 20 === 0) process.stderr.write(`  ${from} of ${total} messages\n`)
  }
  await inStore(
    deployment,
    `update mailbox set uid_next = ${each + 1}, modseq = ${each + 1} where identity_id in (select id from bench_box)`,
  )
  // Segments are built after their messages are stored.
  for (let remaining = 1; remaining > 0; await new Promise((resolve) => setTimeout(resolve, 1_000))) {
    const [row] = await inStore<{ left: number }>(deployment, "select count(*)::int as left from search_due")
    remaining = row!.left
  }
  await inStore(deployment, "vacuum (analyze) search_segment")
  await inStore(deployment, "vacuum (analyze) message_content")
  await inStore(deployment, "vacuum (analyze) message")
  await inStore(deployment, "vacuum (analyze) thread")
  return handles
}
