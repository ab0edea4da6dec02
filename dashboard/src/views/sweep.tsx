import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SweepRow, TrialRow } from "../../../src/app/dashboard/api.js";
import type { ViewProps } from "../route.js";
import { ParallelCoordinates } from "../charts/parallel-coordinates.js";
import { useDashboard } from "../data/context.js";
import { showNumber } from "../format.js";
import { Banner, Empty, Panel } from "../parts/controls.js";
import { linkTo } from "../route.js";
import { stripControls } from "../text/ansi.js";

/** A sweep: its trials as parallel coordinates and as a table. */
export function SweepView({ route }: ViewProps): JSX.Element {
  const { sweeps } = useDashboard();
  const sweep = sweeps.find(({ id }) => id === route.params.get("id"));
  const [marked, setMarked] = useState<number>();
  if (sweep === undefined) return <Empty title="There is no such sweep" />;
  return (
    <div class="view">
      <header class="view-header">
        <a href="#/runs">Runs</a>
        <span class="soft">/</span>
        <h1>{stripControls(sweep.name)}</h1>
        <span class="soft">
          {sweep.trials.length} trials, {sweep.goal} {stripControls(sweep.metric ?? "the metric")}
        </span>
      </header>
      {sweep.problem !== null && <Banner kind="warning">{stripControls(sweep.problem)}</Banner>}
      <Panel title="Settings and results">
        <ParallelCoordinates sweep={sweep} marked={marked} onMark={setMarked} />
      </Panel>
      <Panel title="Trials, best first">
        <TrialTable sweep={sweep} marked={marked} onMark={setMarked} />
      </Panel>
    </div>
  );
}

interface TrialTableProps {
  readonly sweep: SweepRow;
  readonly marked: number | undefined;
  readonly onMark: (trial: number | undefined) => void;
}

function TrialTable({ sweep, marked, onMark }: TrialTableProps): JSX.Element {
  const settings = sweep.settings;
  return (
    <div class="scroll-x">
      <table class="data">
        <thead>
          <tr>
            <th class="right">Trial</th>
            {settings.map((name) => (
              <th key={name}>{stripControls(name)}</th>
            ))}
            <th class="right">Rung</th>
            <th class="right">Result</th>
            <th class="right">± error</th>
            <th>Runs</th>
          </tr>
        </thead>
        <tbody>
          {sweep.trials.map((trial) => (
            <tr
              key={trial.trial}
              class={trial.trial === marked ? "marked" : ""}
              onMouseEnter={() => onMark(trial.trial)}
              onMouseLeave={() => onMark(undefined)}
            >
              <td class="right number">{trial.trial}</td>
              {settings.map((name) => (
                <td key={name} class="number">
                  {showSetting(trial.settings[name])}
                </td>
              ))}
              <td class="right number">{trial.rung}</td>
              <td class="right number strong">
                {trial.failure === null ? (
                  showNumber(trial.value)
                ) : (
                  <span title={stripControls(trial.failure)}>failed</span>
                )}
              </td>
              <td class="right number soft">{showNumber(trial.standardError)}</td>
              <td>
                <TrialRuns trial={trial} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TrialRuns({ trial: { runs } }: { readonly trial: TrialRow }): JSX.Element {
  if (runs.length === 0) return <span class="soft">–</span>;
  return (
    <a href={linkTo("curves", { run: runs })}>{runs.length === 1 ? "curves" : `curves of ${runs.length} seeds`}</a>
  );
}

function showSetting(value: string | number | boolean | null | undefined): string {
  if (typeof value === "number") return showNumber(value);
  return value === null || value === undefined ? "–" : stripControls(String(value));
}
