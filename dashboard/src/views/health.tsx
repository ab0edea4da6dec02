import type { JSX } from "preact";
import type { LogEntry, Phases, RunDetail } from "../../../src/app/dashboard/api.js";
import { useDashboard, useGet, useLiveEvent } from "../data/context.js";
import { runPath } from "../data/source.js";
import { formatDuration, showAge, showBytes, showCompact, showNumber, showPercent } from "../format.js";
import { Banner, Empty, Facts, Panel } from "../parts/controls.js";
import { DocLink } from "../parts/doc-text.js";
import { RunPicker } from "../parts/run-picker.js";
import { StateMark } from "../parts/state-mark.js";
import { stripControls } from "../text/ansi.js";

/** Warnings that are shown as banners; older ones are in the log. */
const MAX_BANNERS = 5;

/** Findings about a run, where its time goes, its log and configuration. */
export function HealthView(): JSX.Element {
  const { selected, source } = useDashboard();
  const run = selected[0];
  const { data, error, reload } = useGet<RunDetail>(run === undefined ? undefined : runPath(run));
  useLiveEvent("log", (event) => event.run === run && reload());
  useLiveEvent("metrics", (event) => event.run === run && reload());
  return (
    <div class="view">
      <header class="view-header">
        <h1>Health</h1>
        <RunPicker view="health" />
        {data && <StateMark row={data.row} />}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {run === undefined && <Empty title="No runs yet" />}
      {data && (
        <>
          <Findings detail={data} hasDocs={!source.isReport} />
          <div class="two-columns">
            <Panel title="Time per phase">
              <PhaseBar phases={data.phases} />
            </Panel>
            <Panel title="Resources and progress">
              <Facts
                facts={[
                  ["Turns per second", showNumber(data.phases.turnsPerSecond)],
                  ["Memory", showBytes(data.phases.memoryBytes)],
                  ["Updates", showCompact(data.row.updates)],
                  ["Turns", showCompact(data.row.turns)],
                  ["Episodes", showCompact(data.row.episodes)],
                  ["Last change", showAge(data.row.changedMs)],
                ]}
              />
            </Panel>
          </div>
          <Panel title="Log">
            <LogTable log={data.log} />
          </Panel>
          <Panel title="Configuration">
            <Configuration config={data.config} />
          </Panel>
        </>
      )}
    </div>
  );
}

function Findings(props: { readonly detail: RunDetail; readonly hasDocs: boolean }): JSX.Element {
  const { row, log } = props.detail;
  const warnings = log.filter(({ kind }) => kind === "warning");
  if (row.problem === null && warnings.length === 0) {
    return <Banner kind="info">The health checks found nothing unusual.</Banner>;
  }
  return (
    <>
      {row.problem !== null && <Banner kind="error">{stripControls(row.problem)}</Banner>}
      {warnings
        .slice(-MAX_BANNERS)
        .reverse()
        .map((entry, i) => (
          <Banner kind="warning" key={i}>
            {stripControls(entry.message)} <small>Update {entry.step}.</small>{" "}
            {entry.page !== undefined && props.hasDocs && <DocLink page={entry.page}>What this means</DocLink>}
          </Banner>
        ))}
    </>
  );
}

function PhaseBar({ phases }: { readonly phases: Phases }): JSX.Element {
  const parts = [
    ["Rollout", phases.rollout, "prompts, sampling and environments"],
    ["Update", phases.update, "scoring, forward and backward passes, optimizer"],
    ["Other", phases.other, "logging, checkpoints, evaluation"],
  ] as const;
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (total === 0) return <p class="soft">No update has been finished.</p>;
  return (
    <div class="phases">
      <div
        class="phase-bar"
        role="img"
        aria-label={parts.map(([name, s]) => `${name} ${showPercent(s / total)}`).join(", ")}
      >
        {parts.map(([name, seconds], i) => (
          <i key={name} class={`phase-${i}`} style={{ flexGrow: seconds / total }} />
        ))}
      </div>
      <dl>
        {parts.map(([name, seconds, what], i) => (
          <div key={name}>
            <dt>
              <i class={`swatch phase-${i}`} />
              {name} <small>{what}</small>
            </dt>
            <dd class="number">
              {showPercent(seconds / total)} <small>{formatDuration(seconds)}</small>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** The log without its records of resources, newest first. */
export function LogTable({ log }: { readonly log: readonly LogEntry[] }): JSX.Element {
  const entries = log
    .filter(({ kind }) => kind !== "resources")
    .reverse()
    .slice(0, 200);
  if (entries.length === 0) return <p class="soft">The log is empty.</p>;
  return (
    <div class="scroll-x">
      <table class="data log">
        <thead>
          <tr>
            <th>Time</th>
            <th class="right">Update</th>
            <th>Kind</th>
            <th>Message</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, i) => (
            <tr key={i}>
              <td class="soft number">{new Date(entry.timeMs).toLocaleString()}</td>
              <td class="right number">{entry.step}</td>
              <td>
                <span class={`tag ${entry.kind === "warning" || entry.ok === false ? "warn" : ""}`}>{entry.kind}</span>
              </td>
              <td class="message">{stripControls(entry.message)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Configuration({ config }: { readonly config: RunDetail["config"] }): JSX.Element {
  return (
    <dl class="config">
      {Object.entries(config).map(([name, value]) => (
        <div key={name}>
          <dt>{stripControls(name)}</dt>
          <dd class="mono">{stripControls(typeof value === "string" ? value : JSON.stringify(value))}</dd>
        </div>
      ))}
    </dl>
  );
}
