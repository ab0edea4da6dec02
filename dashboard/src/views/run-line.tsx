import type { JSX } from "preact";
import type { RunRow, SweepRow } from "../../../src/app/dashboard/api.js";
import { formatDuration, showAge, showCompact, showEnvName, showNumber } from "../format.js";
import { IconButton } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { StateMark } from "../parts/state-mark.js";
import { linkTo } from "../route.js";
import { stripControls } from "../text/ansi.js";

interface RunLineProps {
  readonly row: RunRow;
  readonly isChecked: boolean;
  readonly onCheck: () => void;
  /** Absent in reports. */
  readonly onEdit?: () => void;
}

/** A run in the table. */
export function RunLine({ row, isChecked, onCheck, onEdit }: RunLineProps): JSX.Element {
  const name = stripControls(row.id);
  return (
    <div class="run-row" role="row">
      <span role="cell">
        <input type="checkbox" aria-label={`Select ${name}`} checked={isChecked} onChange={onCheck} />
      </span>
      <span role="cell" class="col-name">
        <a href={linkTo(row.kind === "unknown" ? "health" : "curves", { run: row.id })}>{name}</a>
        <Remarks row={row} />
      </span>
      <span role="cell" class="col-env" title={showText(row.env)}>
        {showText(showEnvName(row.env))}
      </span>
      <span role="cell" class="col-model" title={showText(row.model)}>
        {showText(row.model)}
      </span>
      <span role="cell" class="col-algorithm">
        {showText(row.algorithm)}
      </span>
      <span role="cell" class="col-state">
        <StateMark row={row} />
      </span>
      <span role="cell" class="col-result right number strong">
        {showNumber(row.result)}
      </span>
      <span role="cell" class="col-turns right number">
        {showCompact(row.turns)}
      </span>
      <span role="cell" class="col-time right number">
        {row.seconds === null ? "–" : formatDuration(row.seconds)}
      </span>
      <span role="cell" class="col-seed right number">
        {row.seed ?? "–"}
      </span>
      <span role="cell" class="col-commit">
        <code>{row.commit === null ? "–" : stripControls(row.commit).slice(0, 7)}</code>
      </span>
      <span role="cell" class="col-started right soft">
        {showAge(row.startedMs ?? row.changedMs)}
      </span>
      <span role="cell">
        {onEdit && <IconButton icon="edit" label={`Tags and note of ${name}`} onClick={onEdit} />}
      </span>
    </div>
  );
}

function showText(text: string | null): string {
  return text === null ? "–" : stripControls(text);
}

/** Under the name: what is wrong with the folder, or tags and the note. */
function Remarks({ row: { problem, tags, note } }: { readonly row: RunRow }): JSX.Element | null {
  if (problem !== null) {
    return (
      <span class="remarks problem" title={stripControls(problem)}>
        <Icon name="warning" /> {stripControls(problem)}
      </span>
    );
  }
  if (tags.length === 0 && note === "") return null;
  return (
    <span class="remarks" title={stripControls(note)}>
      {tags.map((tag) => (
        <span class="tag" key={tag}>
          {stripControls(tag)}
        </span>
      ))}
      {stripControls(note)}
    </span>
  );
}

/** A sweep in the table; it opens into its trials. */
export function SweepLine({ sweep }: { readonly sweep: SweepRow }): JSX.Element {
  const best = sweep.trials.find(({ value }) => value !== null);
  return (
    <div class="run-row" role="row">
      <span role="cell" class="sweep-icon">
        <Icon name="right" />
      </span>
      <span role="cell" class="col-name">
        <a href={linkTo("sweep", { id: sweep.id })}>{stripControls(sweep.name)}</a>
        <span class="remarks">
          <span class="tag good">sweep</span>
          {sweep.problem === null
            ? `${sweep.trials.length} trials over ${sweep.settings.map(stripControls).join(", ")}`
            : stripControls(sweep.problem)}
        </span>
      </span>
      <span role="cell" class="col-env" title={showText(sweep.env)}>
        {showText(showEnvName(sweep.env))}
      </span>
      <span role="cell" class="col-model">
        –
      </span>
      <span role="cell" class="col-algorithm">
        {showText(sweep.method)}
      </span>
      <span role="cell" class="col-state">
        <span class={`state state-${sweep.isFinished ? "finished" : "stopped"}`}>
          <i aria-hidden="true" />
          {sweep.isFinished ? "finished" : "unfinished"}
        </span>
      </span>
      <span role="cell" class="col-result right number strong" title="Best trial">
        {showNumber(best?.value)}
      </span>
      {["turns", "time", "seed", "commit", "started"].map((key) => (
        <span role="cell" class={`col-${key}`} key={key} />
      ))}
      <span role="cell" />
    </div>
  );
}
