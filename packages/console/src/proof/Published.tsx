/** The documents by which anybody verifies an Identity. */
import type { Identity } from "../frame/IdentityFrame.tsx"
import { CopyButton } from "../ui/Copy.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Facts, Section } from "../ui/Page.tsx"
import { useKeys } from "./Keys.tsx"
import { say } from "./texts.ts"

const Address = ({ url, what }: { readonly url: string; readonly what: string }) => (
  <span class="address">
    <a class="mono" href={url} target="_blank" rel="noopener noreferrer">
      {url}
    </a>
    <CopyButton value={url} what={what} />
  </span>
)

export const Published = ({ identity }: { readonly identity: Identity }) => {
  const keys = useKeys(identity.handle)
  const address = (what: string, url: string) => [what, <Address key={url} url={url} what={what} />] as const
  return (
    <Section title={say("published")} lead={say("published_why")}>
      <div class="box padded">
        <Loaded of={keys} lines={4}>
          {({ did, did_url, jwks_url }) => (
            <Facts
              facts={[
                [
                  say("did"),
                  <span class="address">
                    <span class="mono">{did}</span>
                    <CopyButton value={did} what={say("did")} />
                  </span>,
                ],
                address(say("did_document"), did_url),
                address(say("key_set"), jwks_url),
                address(say("card"), identity.card_url),
                address(say("directory"), `${identity.tunnel.url}/.well-known/http-message-signatures-directory`),
                address(say("issuer"), `${location.origin}/.well-known/openid-configuration`),
              ]}
            />
          )}
        </Loaded>
      </div>
    </Section>
  )
}
