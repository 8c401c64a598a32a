/**
 * `svc credentials <cloud>`: prints the configuration with which a cloud's tools sign in as the Identity, or with `--trust` what
 * the cloud needs to trust it. No configuration contains a secret: each names a file that `svc token --write` keeps fresh.
 */
import * as path from "node:path"
import { Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { call, connect, explain, explained, handleOf, Misused, understood } from "../client/Connection.ts"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { report, say } from "../client/Printing.ts"

/** What a configuration names. */
interface Subject {
  readonly handle: string
  readonly issuer: string
  /** `sub` of the tokens. */
  readonly sub: string
  readonly file: string
  readonly api: string
}

const common = {
  handle: handleFlag,
  file: Flag.String("file").pipe(
    Flag.withDescription("The file with the token; default: svc-token in the current folder"),
    Flag.withDefault("svc-token"),
  ),
  trust: Flag.Boolean("trust").pipe(
    Flag.withDescription("Print the trust configuration for the cloud instead"),
    Flag.withDefault(false),
  ),
  api: apiFlag,
}

const required = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(name.toUpperCase()))

const Issuer = Schema.Struct({ issuer: Schema.String })
const Identified = Schema.Struct({ id: Schema.String, handle: Schema.String })
const json = (value: unknown) => JSON.stringify(value, null, 2)

interface Cloud<Values> {
  readonly audience: (values: Values) => string
  readonly trust: (subject: Subject, values: Values) => string
  readonly configuration: (subject: Subject, values: Values) => string
  /** Whether the configuration reads the file, which `svc token` then has to keep fresh. */
  readonly readsFile: boolean
}

interface Common {
  readonly handle: Option.Option<string>
  readonly file: string
  readonly trust: boolean
  readonly api: Option.Option<string>
}

const printed = Effect.fnUntraced(function* <Values extends Common>(cloud: Cloud<Values>, values: Values) {
  const connection = yield* connect(values.api)
  const { api, key } = connection
  const name = yield* handleOf(connection, values.handle)
  const { issuer } = yield* understood(
    api,
    Schema.decodeUnknownEffect(Issuer)(yield* call(api, "GET", "/.well-known/openid-configuration")),
  )
  const { id, handle } = yield* understood(
    api,
    Schema.decodeUnknownEffect(Identified)(
      yield* call(api, "GET", `/api/identities/${encodeURIComponent(name)}`, { key }),
    ),
  )
  const subject: Subject = { handle, issuer, sub: `agent:${id}`, file: path.resolve(values.file), api }
  const audience = cloud.audience(values)
  if (values.trust) return yield* say(cloud.trust(subject, values))
  yield* say(cloud.configuration(subject, values))
  if (cloud.readsFile) {
    // A shell splits a path at its spaces.
    const file = /^[\w./:\\-]+$/.test(subject.file) ? subject.file : JSON.stringify(subject.file)
    const message = `Keep the file fresh: svc token --audience ${audience} --handle ${handle} --write ${file} --every 4m`
    report(message, { code: "note", detail: message })
  }
}, explained)

const roleArn = /^arn:(aws[a-z-]*):iam::(\d{12}):role\/[\w+=,.@/-]+$/

const aws = Command.make(
  "aws",
  { ...common, roleArn: required("role-arn", "The role, such as arn:aws:iam::123456789012:role/agents") },
  (values) => {
    const [, partition, account] = roleArn.exec(values.roleArn) ?? []
    if (account === undefined) {
      return explain(new Misused({ message: `${values.roleArn} is not the ARN of a role.` }))
    }
    return printed(
      {
        readsFile: true,
        audience: () => "sts.amazonaws.com",
        configuration: ({ handle, file }) =>
          [
            "# For ~/.aws/config",
            `[profile ${handle}]`,
            `role_arn = ${values.roleArn}`,
            `role_session_name = ${handle}`,
            `web_identity_token_file = ${file}`,
          ].join("\n"),
        trust: ({ issuer, sub }) => {
          const provider = issuer.replace(/^https?:\/\//, "")
          return json({
            Version: "2012-10-17",
            Statement: [
              {
                Effect: "Allow",
                Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${provider}` },
                Action: "sts:AssumeRoleWithWebIdentity",
                Condition: { StringEquals: { [`${provider}:aud`]: "sts.amazonaws.com", [`${provider}:sub`]: sub } },
              },
            ],
          })
        },
      },
      values,
    )
  },
).pipe(Command.withDescription("AWS: a profile that assumes a role, or with --trust the trust policy of the role."))

const poolOf = /^(projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]+)\/providers\/[a-z0-9-]+$/

const gcp = Command.make(
  "gcp",
  {
    ...common,
    provider: required("provider", "projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER"),
    serviceAccount: Flag.String("service-account").pipe(
      Flag.withDescription("The service account to use; without it the Identity itself gets the access"),
      Flag.optional,
    ),
  },
  (values) => {
    const pool = poolOf.exec(values.provider)?.[1]
    if (pool === undefined) {
      return explain(new Misused({ message: `${values.provider} is not the full name of a provider.` }))
    }
    const audience = `//iam.googleapis.com/${values.provider}`
    return printed(
      {
        readsFile: true,
        audience: () => audience,
        configuration: ({ file }) =>
          json({
            type: "external_account",
            audience,
            subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
            token_url: "https://sts.googleapis.com/v1/token",
            credential_source: { file },
            ...Option.match(values.serviceAccount, {
              onNone: () => ({}),
              onSome: (account) => ({
                service_account_impersonation_url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${account}:generateAccessToken`,
              }),
            }),
          }),
        trust: ({ issuer, sub }) =>
          json({
            issuer,
            attribute_mapping: { "google.subject": "assertion.sub" },
            allowed_audience: audience,
            principal: `principal://iam.googleapis.com/${pool}/subject/${sub}`,
          }),
      },
      values,
    )
  },
).pipe(
  Command.withDescription(
    "Google Cloud: the configuration of an external account, or with --trust the provider and the principal.",
  ),
)

const azureAudience = "api://AzureADTokenExchange"

const azure = Command.make(
  "azure",
  {
    ...common,
    clientId: required("client-id", "The id of the app registration"),
    tenantId: required("tenant-id", "The id of the tenant"),
  },
  (values) =>
    printed(
      {
        readsFile: true,
        audience: () => azureAudience,
        configuration: ({ file }) =>
          [
            `AZURE_CLIENT_ID=${values.clientId}`,
            `AZURE_TENANT_ID=${values.tenantId}`,
            `AZURE_FEDERATED_TOKEN_FILE=${file}`,
          ].join("\n"),
        trust: ({ handle, issuer, sub }) =>
          json({ name: handle, issuer, subject: sub, audiences: [azureAudience], description: "An agent's Identity" }),
      },
      values,
    ),
).pipe(
  Command.withDescription(
    "Azure: the environment of its SDKs, or with --trust the parameters of `az ad app federated-credential create`.",
  ),
)

const kubernetes = Command.make(
  "kubernetes",
  {
    ...common,
    audience: Flag.String("audience").pipe(
      Flag.withDescription("The client id that the API server expects"),
      Flag.filter(
        (text) => /^\S+$/.test(text),
        () => "An audience has no spaces.",
      ),
      Flag.withDefault("kubernetes"),
    ),
  },
  (values) =>
    printed(
      {
        readsFile: false,
        audience: () => values.audience,
        configuration: ({ handle, api }) =>
          json({
            apiVersion: "v1",
            kind: "Config",
            users: [
              {
                name: handle,
                user: {
                  exec: {
                    apiVersion: "client.authentication.k8s.io/v1",
                    interactiveMode: "Never",
                    command: "svc",
                    args: `token --format kubernetes --audience ${values.audience} --handle ${handle} --api ${api}`.split(
                      " ",
                    ),
                  },
                },
              },
            ],
          }),
        trust: ({ issuer, sub }) =>
          [
            `--oidc-issuer-url=${issuer}`,
            `--oidc-client-id=${values.audience}`,
            "--oidc-username-claim=sub",
            `# The user for role bindings: ${issuer}#${sub}`,
          ].join("\n"),
      },
      values,
    ),
).pipe(
  Command.withDescription(
    "Kubernetes: a kubectl user that asks `svc token`, or with --trust the flags of the API server and the user's name.",
  ),
)

export const command = Command.make("credentials").pipe(
  Command.withDescription("Print the configuration with which a cloud's tools sign in as the Identity."),
  Command.withSubcommands([aws, gcp, azure, kubernetes]),
)
