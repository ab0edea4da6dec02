import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { RunRow, RunState } from "../../../src/app/dashboard/api.js";
import { useDashboard } from "../data/context.js";
import { Banner, Empty, Segments } from "../parts/controls.js";
import { NotesDialog } from "../parts/notes-dialog.js";
import { linkTo } from "../route.js";
import { stripControls } from "../text/ansi.js";
import { VirtualList } from "../text/virtual-list.js";
import { COLUMNS, compareRows, type Column } from "./run-columns.js";
import { RunLine, SweepLine } from "./run-line.js";

const ROW_HEIGHT = 52;

type StateFilter = "all" | RunState;

const STATE_FILTERS: readonly (readonly [StateFilter, string])[] = [
  ["all", "All"],
  ["running", "Running"],
  ["finished", "Finished"],
  ["stopped", "Stopped"],
  ["failed", "Failed"],
];

interface Sorting {
  readonly column: Column;
  readonly descending: boolean;
}

/** The table of runs and sweeps. */
export function RunsView(): JSX.Element {
  const { runs, sweeps, root, source, reloadRuns } = useDashboard();
  const [text, setText] = useState("");
  const [state, setState] = useState<StateFilter>("all");
  const [sorting, setSorting] = useState<Sorting>({ column: COLUMNS[COLUMNS.length - 1], descending: true });
  const [checked, setChecked] = useState<readonly string[]>([]);
  const [edited, setEdited] = useState<RunRow>();
  const [showsTrials, setShowsTrials] = useState(false);
  const listed = useMemo(() => runs.filter(({ sweep }) => showsTrials || sweep === null), [runs, showsTrials]);
  const rows = useMemo(() => selectRows(listed, text, state, sorting), [listed, text, state, sorting]);
  const total = listed.length;
  const shownSweeps = sweeps.filter(({ name, env }) => matches(text, [name, env ?? ""]) && state === "all");
  const toggle = (id: string): void =>
    setChecked(checked.includes(id) ? checked.filter((other) => other !== id) : [...checked, id]);

  return (
    <div class="view fill">
      <header class="view-header">
        <h1>Runs</h1>
        <span class="soft">
          {rows.length === total ? total : `${rows.length} of ${total}`} in <code>{stripControls(root)}</code>
        </span>
        <span class="spacer" />
        <input
          type="search"
          class="search"
          placeholder="Filter by name, environment, tag, note …"
          aria-label="Filter runs"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {sweeps.length > 0 && (
          <label class="checkbox">
            <input type="checkbox" checked={showsTrials} onChange={() => setShowsTrials(!showsTrials)} />
            Runs of sweeps
          </label>
        )}
        <Segments label="State" value={state} options={STATE_FILTERS} onChange={setState} />
      </header>
      {checked.length > 0 && <Selection ids={checked} onClear={() => setChecked([])} />}
      {runs.length + sweeps.length === 0 ? (
        <Empty title="No runs yet">
          Start one with <code>llamagym train blackjack</code>; it appears here by itself.
        </Empty>
      ) : (
        <div class="panel table" role="table" aria-label="Runs" aria-rowcount={rows.length + shownSweeps.length + 1}>
          <HeaderRow sorting={sorting} onSort={setSorting} />
          <VirtualList
            label="Runs"
            role="rowgroup"
            className="run-list"
            count={shownSweeps.length + rows.length}
            rowHeight={ROW_HEIGHT}
            row={(index) => {
              if (index < shownSweeps.length) {
                const sweep = shownSweeps[index];
                return <SweepLine key={`sweep ${sweep.id}`} sweep={sweep} />;
              }
              const row = rows[index - shownSweeps.length];
              return (
                <RunLine
                  key={row.id}
                  row={row}
                  isChecked={checked.includes(row.id)}
                  onCheck={() => toggle(row.id)}
                  onEdit={source.isReport ? undefined : () => setEdited(row)}
                />
              );
            }}
          />
          {rows.length + shownSweeps.length === 0 && <Empty title="No run matches the filter" />}
        </div>
      )}
      {edited && (
        <NotesDialog
          row={edited}
          onClose={() => {
            setEdited(undefined);
            reloadRuns();
          }}
        />
      )}
    </div>
  );
}

function Selection({ ids, onClear }: { readonly ids: readonly string[]; readonly onClear: () => void }): JSX.Element {
  return (
    <Banner kind="info">
      <div class="toolbar">
        <strong>{ids.length === 1 ? "1 run selected" : `${ids.length} runs selected`}</strong>
        <a class="button" href={linkTo("curves", { run: ids })}>
          Show curves
        </a>
        {ids.length === 2 && (
          <a class="button" href={linkTo("compare", { run: ids })}>
            Compare play
          </a>
        )}
        <button type="button" class="button" onClick={onClear}>
          Clear
        </button>
      </div>
    </Banner>
  );
}

function HeaderRow(props: { readonly sorting: Sorting; readonly onSort: (sorting: Sorting) => void }): JSX.Element {
  const { sorting, onSort } = props;
  return (
    <div class="run-row header" role="row">
      <span role="columnheader">
        <span class="visually-hidden">Selected</span>
      </span>
      {COLUMNS.map((column) => {
        const isActive = column === sorting.column;
        const order = sorting.descending ? "descending" : "ascending";
        const descending = isActive ? !sorting.descending : column.isNumber;
        return (
          <span
            key={column.key}
            role="columnheader"
            class={`col-${column.key} ${column.isNumber ? "right" : ""}`}
            aria-sort={isActive ? order : undefined}
          >
            <button type="button" onClick={() => onSort({ column, descending })}>
              {column.title}
              {isActive && <i aria-hidden="true">{sorting.descending ? "↓" : "↑"}</i>}
            </button>
          </span>
        );
      })}
      <span role="columnheader">
        <span class="visually-hidden">Actions</span>
      </span>
    </div>
  );
}

function matches(text: string, fields: readonly string[]): boolean {
  const all = fields.join(" ").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

function selectRows(runs: readonly RunRow[], text: string, state: StateFilter, sorting: Sorting): readonly RunRow[] {
  const { column, descending } = sorting;
  return runs
    .filter((row) => state === "all" || row.state === state)
    .filter(({ id, env, model, algorithm, tags, note, state: word }) =>
      matches(text, [id, env ?? "", model ?? "", algorithm ?? "", ...tags, note, word]),
    )
    .sort((a, b) => compareRows(a, b, column, descending));
}
