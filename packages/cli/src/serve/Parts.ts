/** Services that tests replace: public DNS and the work of provisioning steps. */
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import type { Layer } from "effect"

export interface Parts {
  readonly resolver: Layer.Layer<Resolver>
  readonly provisioningSteps: typeof ProvisioningSteps.layer
}

export const realParts: Parts = { resolver: Resolver.layer, provisioningSteps: ProvisioningSteps.layer }
