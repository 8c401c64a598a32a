/** The charts of a page. Their code is loaded when the browser is idle, and their place is reserved until then. */
import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { later } from "../client/Idle.ts"
import type { UsageOf } from "./Usage.ts"
import "./charts.css"

export const LazyUsage = (props: UsageOf) => {
  const [loaded, setLoaded] = useState<{ readonly Charts: ComponentType<UsageOf> }>()
  useEffect(
    () =>
      later(
        () =>
          void import("./UsageCharts.tsx").then(
            ({ UsageCharts }) => setLoaded({ Charts: UsageCharts }),
            // Without the charts, the page is complete.
            () => undefined,
          ),
      ),
    [],
  )
  return loaded === undefined ? <div class="chart-place" data-of={props.of} /> : <loaded.Charts {...props} />
}
