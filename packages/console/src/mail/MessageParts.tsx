/** Addresses and header fields of a message, for readers and for approvals. */
import type { Answer } from "../client/Client.ts"
import { say } from "./texts.ts"

type Message = Answer<"GET /api/identities/:handle/messages/:id">

/** Shows all addresses, or the first `atMost`: a message may have thousands. */
export const Addresses = ({ of, atMost = of.length }: { readonly of: Message["to"]; readonly atMost?: number }) => (
  <>
    {of.slice(0, atMost).map(({ name, address }, index) => (
      <span key={index}>
        {index === 0 ? null : ", "}
        {name === null ? null : (
          <>
            <bdi>{name}</bdi>{" "}
          </>
        )}
        <bdi class="mono muted">{name === null ? address : `<${address}>`}</bdi>
      </span>
    ))}
    {of.length > atMost ? ` ${say("and_more", { count: of.length - atMost })}` : null}
  </>
)

export const Headers = ({ of }: { readonly of: Message["headers"] }) => (
  <dl class="box message-headers">
    {of.map(({ name, value }, index) => [
      <dt key={index}>
        <bdi>{name}</bdi>
      </dt>,
      <dd key={`${index}:`}>
        <bdi>{value}</bdi>
      </dd>,
    ])}
  </dl>
)
