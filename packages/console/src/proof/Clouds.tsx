/** The settings with which a cloud trusts an Identity, to copy (docs/federation.md). */
import { useState } from "preact/hooks"
import type { Identity } from "../frame/IdentityFrame.tsx"
import { Code } from "../ui/Copy.tsx"
import { Section, Segments } from "../ui/Page.tsx"
import { say } from "./texts.ts"

interface Subject {
  readonly handle: string
  readonly issuer: string
  readonly sub: string
}

interface Snippet {
  readonly trust: (subject: Subject) => string
  readonly audience: string
  /** The command that prints the configuration for the tools of the cloud. */
  readonly configuration: string
}

const json = (value: unknown) => JSON.stringify(value, undefined, 2)

const snippets = {
  aws: {
    audience: "sts.amazonaws.com",
    configuration: "svc credentials aws --role-arn arn:aws:iam::123456789012:role/agents",
    trust: ({ issuer, sub }) => {
      const provider = issuer.replace(/^https?:\/\//, "")
      return json({
        Version: "2012-10-17",
        Statement: [
          {
            Effect: "Allow",
            Principal: { Federated: `arn:aws:iam::123456789012:oidc-provider/${provider}` },
            Action: "sts:AssumeRoleWithWebIdentity",
            Condition: { StringEquals: { [`${provider}:aud`]: "sts.amazonaws.com", [`${provider}:sub`]: sub } },
          },
        ],
      })
    },
  },
  gcp: {
    audience: "//iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER",
    configuration:
      "svc credentials gcp --provider projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER",
    trust: ({ issuer, sub }) =>
      [
        "gcloud iam workload-identity-pools providers create-oidc PROVIDER --location=global \\",
        `  --workload-identity-pool=POOL --issuer-uri=${issuer} --attribute-mapping=google.subject=assertion.sub`,
        "gcloud iam service-accounts add-iam-policy-binding SERVICE_ACCOUNT --role=roles/iam.workloadIdentityUser \\",
        `  --member='principal://iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/subject/${sub}'`,
      ].join("\n"),
  },
  azure: {
    audience: "api://AzureADTokenExchange",
    configuration: "svc credentials azure --client-id CLIENT --tenant-id TENANT",
    trust: ({ handle, issuer, sub }) =>
      json({ name: handle, issuer, subject: sub, audiences: ["api://AzureADTokenExchange"] }),
  },
  kubernetes: {
    audience: "kubernetes",
    configuration: "svc credentials kubernetes",
    trust: ({ handle, issuer, sub }) =>
      [
        "# kube-apiserver",
        `--oidc-issuer-url=${issuer} --oidc-client-id=kubernetes --oidc-username-claim=sub`,
        "",
        `kubectl create clusterrolebinding ${handle} --clusterrole=view --user='${issuer}#${sub}'`,
      ].join("\n"),
  },
} as const satisfies Readonly<Record<string, Snippet>>

type Cloud = keyof typeof snippets
const names = { aws: "AWS", gcp: "Google Cloud", azure: "Azure", kubernetes: "Kubernetes" } as const
const clouds = (Object.keys(names) as ReadonlyArray<Cloud>).map((cloud) => [cloud, names[cloud]] as const)

export const Clouds = ({ identity }: { readonly identity: Identity }) => {
  const [cloud, setCloud] = useState<Cloud>("aws")
  const { audience, configuration, trust }: Snippet = snippets[cloud]
  const subject = { handle: identity.handle, issuer: location.origin, sub: `agent:${identity.id}` }
  return (
    <Section title={say("clouds")} lead={say("clouds_why")}>
      <div class="stack clouds">
        <Segments label={say("clouds")} value={cloud} options={clouds} onValue={setCloud} />
        <h3>{say("trust", { cloud: names[cloud] })}</h3>
        <Code text={trust(subject)} what={say("trust", { cloud: names[cloud] })} wrap />
        <h3>{say("on_agent")}</h3>
        <p class="muted small">{say("allow_audience", { audience })}</p>
        <Code
          text={`npm run -s svc -- token --audience ${audience} --write svc-token --every 4m\nnpm run -s ${configuration.replace(/^svc/, "svc --")}`}
          what={say("on_agent")}
          wrap
        />
      </div>
    </Section>
  )
}
