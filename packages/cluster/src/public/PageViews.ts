/** Page views of our own sites, counted per day, host, path and language under a daily ceiling of rows. */
import type { PageView } from "@svc/domain/public/PublicApi"
import { Clock, Context, Effect, Layer } from "effect"
import { orUnavailable, Writes } from "../store/Database.ts"

const make = (options: { readonly hosts: ReadonlySet<string>; readonly ceiling: number }) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    return {
      /** Counts the view, or drops it: one of another host, or one that would be a row over the day's ceiling. */
      count: Effect.fn("PageViews.count")(function* (view: PageView) {
        if (!options.hosts.has(view.host.toLowerCase())) return
        const day = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
        yield* sql`
          insert into page_view as v (day, host, path, language, views)
          select ${day}::date, ${view.host.toLowerCase()}::text, ${view.path}::text, ${view.language.toLowerCase()}::text, 1
          where (select count(*) from (select from page_view where day = ${day}::date limit ${options.ceiling}) seen) < ${options.ceiling}
             or exists (select from page_view where day = ${day}::date and host = ${view.host.toLowerCase()}
                        and path = ${view.path} and language = ${view.language.toLowerCase()})
          on conflict (day, host, path, language) do update set views = v.views + 1`
      }, orUnavailable),
    }
  })

export class PageViews extends Context.Service<PageViews, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/public/PageViews",
) {
  static readonly layer = (options: { readonly hosts: ReadonlySet<string>; readonly ceiling: number }) =>
    Layer.effect(PageViews, make(options))
}
