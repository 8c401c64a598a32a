/** The middleware that turns every failure of an endpoint into a problem body; the server side implements it. */
import { HttpApiMiddleware } from "effect/http-api"
import { Internal, InvalidRequest, PayloadTooLarge, UnsupportedMediaType } from "./Problem.ts"

export class ProblemRendering extends HttpApiMiddleware.Service<ProblemRendering>()(
  "@svc/domain/problems/ProblemRendering",
  {
    error: [InvalidRequest, PayloadTooLarge, UnsupportedMediaType, Internal],
  },
) {}
