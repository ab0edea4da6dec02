import type { JSX } from "preact";
import type { RunRow } from "../../../src/app/dashboard/api.js";
import { seriesColor } from "../charts/colors.js";
import { useDashboard } from "../data/context.js";
import { linkTo, navigate } from "../route.js";
import { stripControls } from "../text/ansi.js";
import { IconButton, Select } from "./controls.js";
import { StateMark } from "./state-mark.js";

/** Selects the run that a view shows; its other parameters are reset. */
export function RunPicker({ view }: { readonly view: string }): JSX.Element {
  const { runs, selected } = useDashboard();
  const options = runs.map(({ id }) => [id, stripControls(id)] as const);
  return (
    <Select
      label="Run"
      value={selected[0] ?? ""}
      options={options}
      onChange={(run) => navigate(linkTo(view, { run }))}
    />
  );
}

/** The selected runs as removable chips in the colors of their curves, and a list to add one. */
export function RunChips({ view }: { readonly view: string }): JSX.Element {
  const { runs, selected } = useDashboard();
  const rows = selected.flatMap((id) => runs.filter((row) => row.id === id));
  const others = runs.filter(({ id }) => !selected.includes(id));
  const open = (ids: readonly string[]): void => navigate(linkTo(view, { run: ids }), { replace: true });
  return (
    <div class="chips" role="group" aria-label="Selected runs">
      {rows.map((row, index) => (
        <Chip
          key={row.id}
          row={row}
          color={seriesColor(index)}
          onRemove={rows.length > 1 ? () => open(selected.filter((id) => id !== row.id)) : undefined}
        />
      ))}
      {others.length > 0 && (
        <select
          class="add-run"
          aria-label="Add a run"
          value=""
          onChange={(event) => open([...selected, event.currentTarget.value])}
        >
          <option value="">+ Add a run</option>
          {others.map(({ id }) => (
            <option key={id} value={id}>
              {stripControls(id)}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

function Chip(props: { readonly row: RunRow; readonly color: string; readonly onRemove?: () => void }): JSX.Element {
  const { row, color, onRemove } = props;
  return (
    <span class="chip">
      <i class="swatch" style={{ background: color }} />
      <span class="chip-name">{stripControls(row.id)}</span>
      {row.state === "running" && <StateMark row={row} />}
      {onRemove && <IconButton icon="close" label={`Remove ${stripControls(row.id)}`} onClick={onRemove} />}
    </span>
  );
}
