/** Every alert fires when its condition occurs, and not one step before (`promtool test rules`). */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { has } from "../harness/Programs.ts"

const rules = path.join(import.meta.dirname, "..", "..", "deploy", "monitoring", "alerts.yml")
const names = [...readFileSync(rules, "utf8").matchAll(/alert: (\w+)/g)].map(([, name]) => name!)

/** Samples by series, one minute apart, in promtool's notation. */
type Series = Readonly<Record<string, string>>

interface Situation {
  readonly alert: string
  readonly when: string
  readonly series: Series
  /** The time of the check, in minutes after the first sample. */
  readonly at: number
  /** Minutes between two samples; defaults to one. */
  readonly step?: number
  /** Labels of the firing alert, apart from its severity; undefined if none fires. */
  readonly fires: Readonly<Record<string, string>> | undefined
}

const requests = (good: number, bad: number): Series => ({
  'http_server_requests_total{http_response_status_class="2xx"}': `0+${good}x20`,
  'http_server_requests_total{http_response_status_class="5xx"}': `0+${bad}x20`,
})
const durations = (area: string, fast: number, all: number): Series => ({
  [`http_server_request_duration_seconds_bucket{area="${area}",le="1"}`]: `0+${fast}x30`,
  [`http_server_request_duration_seconds_bucket{area="${area}",le="2.5"}`]: `0+${all}x30`,
  [`http_server_request_duration_seconds_bucket{area="${area}",le="+Inf"}`]: `0+${all}x30`,
})
const outcomes = (name: string, labels: Readonly<Record<string, number>>): Series =>
  Object.fromEntries(Object.entries(labels).map(([outcome, n]) => [`${name}{outcome="${outcome}"}`, `0+${n}x60`]))

const none = undefined
const situations: ReadonlyArray<Situation> = [
  ...(
    [
      ["the process answers", "1x5", none],
      ["the process is gone for more than a minute", "1 0 0 0 0", { instance: "a", job: "svc" }],
      ["the process is gone for one scrape", "1 1 1 0 1", none],
    ] as const
  ).map(([when, samples, fires]) => ({
    alert: "SvcDown",
    when,
    series: { 'up{job="svc",instance="a"}': samples },
    at: 4,
    fires,
  })),
  ...(
    [
      ["a process is not ready for four minutes", 4, none],
      ["a process is not ready for five minutes", 5, { instance: "a" }],
    ] as const
  ).map(([when, at, fires]) => ({
    alert: "SvcNotReady",
    when,
    series: { 'svc_ready{instance="a"}': "0x9" },
    at,
    fires,
  })),
  { alert: "SvcErrorRate", when: "2 % fail", series: requests(98, 2), at: 15, fires: none },
  { alert: "SvcErrorRate", when: "3 % fail", series: requests(97, 3), at: 15, fires: {} },
  { alert: "SvcErrorRate", when: "nobody calls", series: requests(0, 0), at: 15, fires: none },
  { alert: "SvcSlow", when: "1 of 100 is slow", series: durations("messages", 99, 100), at: 20, fires: none },
  { alert: "SvcSlow", when: "2 of 100 are slow", series: durations("messages", 98, 100), at: 20, fires: {} },
  { alert: "SvcSlow", when: "only waits are slow", series: durations("waiting", 0, 100), at: 20, fires: none },
  {
    alert: "SvcWorkOverdue",
    when: "work is nearly five minutes late",
    series: { 'svc_work_oldest_seconds{kind="delivery"}': "299x10" },
    at: 8,
    fires: none,
  },
  {
    alert: "SvcWorkOverdue",
    when: "work of one kind is five minutes late",
    series: { 'svc_work_oldest_seconds{kind="delivery"}': "300x10", 'svc_work_oldest_seconds{kind="saga"}': "0x10" },
    at: 8,
    fires: { kind: "delivery" },
  },
  {
    alert: "SvcDeliveriesFail",
    when: "half of the attempts fail",
    series: outcomes("svc_webhook_attempts_total", { delivered: 10, refused: 5, failed: 5 }),
    at: 50,
    fires: none,
  },
  {
    alert: "SvcDeliveriesFail",
    when: "more than half of the attempts fail",
    series: outcomes("svc_webhook_attempts_total", { delivered: 10, refused: 5, failed: 6 }),
    at: 50,
    fires: {},
  },
  {
    alert: "SvcMailDeferred",
    when: "4.9 % are deferred",
    series: outcomes("svc_smtp_recipients_total", { accepted: 900, refused: 51, deferred: 49 }),
    at: 30,
    fires: none,
  },
  {
    alert: "SvcMailDeferred",
    when: "6 % are deferred",
    series: outcomes("svc_smtp_recipients_total", { accepted: 90, refused: 4, deferred: 6 }),
    at: 30,
    fires: {},
  },
  {
    alert: "SvcShardsUnowned",
    when: "two processes own all shards",
    series: {
      'svc_cluster_shards{instance="a"}': "64x5",
      'effect_cluster_shards{instance="a"}': "30x5",
      'effect_cluster_shards{instance="b"}': "34x5",
    },
    at: 4,
    fires: none,
  },
  {
    alert: "SvcShardsUnowned",
    when: "one shard has no owner",
    series: { 'svc_cluster_shards{instance="a"}': "64x5", 'effect_cluster_shards{instance="a"}': "63x5" },
    at: 4,
    fires: {},
  },
  {
    alert: "SvcShardsUnowned",
    when: "every process of the role actors is gone",
    series: { 'svc_cluster_shards{instance="api"}': "64x9", 'effect_cluster_shards{instance="a"}': "64 64 stale" },
    at: 8,
    fires: {},
  },
  {
    alert: "SvcDatabaseSilent",
    when: "the database owes nothing, and long work runs long",
    series: {
      'svc_db_silence_seconds{instance="a",pool="Writes"}': "2x5",
      'svc_db_silence_seconds{instance="a",pool="Unhurried"}': "60x5",
    },
    at: 4,
    fires: none,
  },
  {
    alert: "SvcDatabaseSilent",
    when: "the database owes an answer",
    series: { 'svc_db_silence_seconds{instance="a",pool="Writes"}': "3x5" },
    at: 4,
    fires: { instance: "a", pool: "Writes" },
  },
  ...([60, 61] as const).map((seconds) => ({
    alert: "SvcEventsHeld",
    when: `a transaction has been open for ${seconds} s`,
    series: { svc_store_held_seconds: `${seconds}x5` },
    at: 4,
    fires: seconds > 60 ? {} : none,
  })),
  ...([2e9, 1.9e9] as const).map((bytes) => ({
    alert: "SvcDiskLow",
    when: `${bytes / 1e9} GB are free`,
    series: { 'svc_store_free_bytes{instance="a"}': `${bytes}x9` },
    at: 8,
    fires: bytes < 2e9 ? { instance: "a" } : none,
  })),
  ...([7, 6] as const).map((days) => ({
    alert: "SvcCertificateExpires",
    when: `a certificate ends in ${days} days`,
    series: { 'svc_certificate_not_after_seconds{listener="edge"}': `${days * 86_400}x2` },
    at: 0,
    fires: days < 7 ? { listener: "edge" } : none,
  })),
  ...([26, 27] as const).map((hours) => ({
    alert: "SvcBackupOld",
    when: `the last backup was ${hours} hours ago`,
    series: { svc_backup_last_success_timestamp_seconds: "0x500" },
    at: hours * 60,
    step: 4,
    fires: hours > 26 ? {} : none,
  })),
  ...([90, 91] as const).map((used) => ({
    alert: "SvcTunnelPortsShort",
    when: `${used} of 100 ports are allotted`,
    series: { svc_tunnel_ports: "100x2", svc_tunnel_ports_used: `${used}x2` },
    at: 1,
    fires: used > 90 ? {} : none,
  })),
]

/** Returns the firing alerts; promtool prints them because the test file expects a different alert. */
const firing = (situation: Situation): string => {
  const folder = mkdtempSync(path.join(tmpdir(), "alerts-"))
  const file = path.join(folder, "test.yml")
  const { step = 1 } = situation
  try {
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [rules],
        evaluation_interval: `${step}m`,
        tests: [
          {
            interval: `${step}m`,
            input_series: Object.entries(situation.series).map(([series, values]) => ({ series, values })),
            alert_rule_test: [
              {
                eval_time: `${situation.at}m`,
                alertname: situation.alert,
                exp_alerts: [{ exp_labels: { expected: "another" } }],
              },
            ],
          },
        ],
      }),
    )
    const { stdout, stderr } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" })
    const report = `${stdout}${stderr}`
    if (!report.includes("got:")) throw new Error(report)
    return report.slice(report.indexOf("got:"))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("the alerts", () => {
  it("have a situation in which each fires, and one in which it does not", () => {
    const of = (fires: boolean) =>
      new Set(situations.flatMap((one) => ((one.fires !== undefined) === fires ? [one.alert] : [])))
    expect([...of(true)].toSorted()).toEqual(names.toSorted())
    expect([...of(false)].toSorted()).toEqual(names.toSorted())
  })

  it.skipIf(!has("promtool"))("are rules that promtool accepts", () => {
    const { stdout, status } = spawnSync("promtool", ["check", "rules", rules], { encoding: "utf8" })
    expect(stdout).toContain(`SUCCESS: ${names.length} rules found`)
    expect(status).toBe(0)
  })

  it.skipIf(!has("promtool")).each(situations.map((one) => [one.alert, one.when, one] as const))(
    "%s is right when %s",
    (alert, _, situation) => {
      const got = firing(situation)
      if (situation.fires === undefined) {
        expect(got).not.toContain(alert)
        return
      }
      expect(got).toContain(`alertname="${alert}"`)
      for (const [name, value] of Object.entries(situation.fires)) expect(got).toContain(`${name}="${value}"`)
      expect(got).toContain("severity=")
      // Every label that the summary refers to exists.
      expect(got).not.toContain("<no value>")
    },
  )
})
