/**
 * The four steps of the provisioning saga, each from the folder of its capability: Mailbox, Tunnel, A2A Card, Identity
 * Key.
 */
import type { sagaSteps } from "@svc/domain/identity/Identity"
import { Context, Effect, Layer } from "effect"
import * as CardSteps from "../card/CardSteps.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import * as MailboxSteps from "../mail/MailboxSteps.ts"
import type { Step } from "../saga/Step.ts"
import { Sealing } from "../sealing/Sealing.ts"
import type { PortRange } from "../tunnel/TunnelPorts.ts"
import * as TunnelSteps from "../tunnel/TunnelSteps.ts"

/** The steps as a service, so that tests can replace them. */
export class ProvisioningSteps extends Context.Service<
  ProvisioningSteps,
  { readonly [Name in (typeof sagaSteps)["provisioning"][number]]: Step }
>()("@svc/cluster/identity/ProvisioningSteps") {
  static readonly layer = (options: { readonly tunnelPorts: PortRange }) =>
    Layer.effect(
      ProvisioningSteps,
      Effect.map(Effect.service(Sealing), (sealing) => ({
        mailbox: MailboxSteps.provision(sealing),
        tunnel: TunnelSteps.provision(options.tunnelPorts),
        card: CardSteps.provision,
        identity_key: IdentityKeys.provision(sealing),
      })),
    )
}
