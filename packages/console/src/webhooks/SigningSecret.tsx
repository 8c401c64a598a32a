/** The signing secret, shown once, with code that verifies deliveries. */
import { Button } from "../ui/Button.tsx"
import { Code } from "../ui/Copy.tsx"
import { Section } from "../ui/Page.tsx"
import { Secret } from "../ui/Secret.tsx"
import { say } from "./texts.ts"

const code = `import { Webhook } from "standardwebhooks"

// body: the bytes as they came, before they are parsed
const event = new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers)`

export const SigningSecret = ({ secret, onStored }: { readonly secret: string; readonly onStored: () => void }) => (
  <Section title={say("secret")} lead={say("secret_why")}>
    <div class="box padded stack">
      <Secret value={secret} what={say("secret")} />
      <h3>{say("verify")}</h3>
      <Code text={code} what={say("verify")} />
      <div class="bar">
        <Button kind="primary" icon="check" onClick={onStored}>
          {say("secret_stored")}
        </Button>
      </div>
    </div>
  </Section>
)
