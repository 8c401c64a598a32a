/** Operations of device login. The terminal starts and polls without a credential; the account holder confirms. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  AuthorizationPending,
  DeviceAuthorizationSettled,
  DeviceCodeDenied,
  DeviceCodeExpired,
  DeviceCodeInvalid,
  DeviceCodeUsed,
  InvalidRequest,
  KeyQuotaExhausted,
  NotFound,
  RateLimited,
  ScopeExceeds,
  ScopeUnknown,
  SlowDown,
  Unavailable,
} from "../problems/Problem.ts"
import { located } from "../Precondition.ts"
import { Text } from "../Text.ts"
import { MintedKey } from "./AccountApi.ts"
import { AddressLimit, callers, Confidential, open, Tagged } from "./Policy.ts"
import { DeviceApproval, DeviceStart, DeviceStarted, DeviceView } from "./Device.ts"
import { About } from "./EndpointScope.ts"

export class DeviceLoginApi extends HttpApiGroup.make("device_login")
  .add(
    HttpApiEndpoint.post("start", "/api/auth/device", {
      payload: DeviceStart,
      success: HttpApiSchema.WithHeaders(DeviceStarted.pipe(HttpApiSchema.status(201)), located),
      error: [ScopeUnknown, RateLimited, Unavailable],
    })
      .pipe(open)
      .annotate(AddressLimit, "device")
      .annotate(OpenApi.Summary, "Start a device login")
      .annotate(Confidential, true),
    HttpApiEndpoint.post("poll", "/api/auth/device/token", {
      payload: Schema.Struct({ device_code: Text.check(Schema.isMaxLength(200)) }),
      success: MintedKey,
      error: [
        AuthorizationPending,
        SlowDown,
        DeviceCodeDenied,
        DeviceCodeExpired,
        DeviceCodeUsed,
        DeviceCodeInvalid,
        Unavailable,
      ],
    })
      .pipe(open)
      .annotate(OpenApi.Summary, "Collect the key of a confirmed device login")
      .annotate(Confidential, true),
  )
  .annotate(OpenApi.Description, "Device login: operations of the terminal (RFC 8628).") {}

/** The body is optional. */
const NoBody = Schema.Undefined

const ofAccount =
  "A device login receives a key for the whole account, so only the account holder or an Admin Key can view or decide it."

const params = {
  userCode: Text.check(Schema.isMaxLength(100)).annotate({ description: "The user code in any spelling." }),
}

export class DeviceConfirmationApi extends HttpApiGroup.make("device_confirmation")
  .add(
    HttpApiEndpoint.get("read", "/api/auth/device/:userCode", {
      params,
      success: DeviceView,
      error: [NotFound, Unavailable],
    })
      .pipe(callers("admin", ofAccount))
      .annotate(OpenApi.Summary, "View a device login before deciding")
      .annotate(Tagged, true),
    HttpApiEndpoint.post("approve", "/api/auth/device/:userCode/approve", {
      params,
      payload: [NoBody, DeviceApproval],
      success: HttpApiSchema.NoContent,
      error: [
        NotFound,
        DeviceAuthorizationSettled,
        InvalidRequest,
        ScopeUnknown,
        ScopeExceeds,
        KeyQuotaExhausted,
        Unavailable,
      ],
    })
      .pipe(callers("admin", ofAccount))
      .annotate(OpenApi.Summary, "Approve a device login"),
    HttpApiEndpoint.post("deny", "/api/auth/device/:userCode/deny", {
      params,
      success: HttpApiSchema.NoContent,
      error: [NotFound, DeviceAuthorizationSettled, Unavailable],
    })
      .pipe(callers("admin", ofAccount))
      .annotate(OpenApi.Summary, "Deny a device login"),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Device login: operations of the account holder.") {}
