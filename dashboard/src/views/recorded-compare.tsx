import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { CompareResponse, EpisodeDetail } from "../../../src/app/dashboard/api.js";
import { useDashboard, useGet } from "../data/context.js";
import { runPath } from "../data/source.js";
import { useEpisodes } from "../data/use-episodes.js";
import { showSigned } from "../format.js";
import { Panel, Select } from "../parts/controls.js";
import { stripControls } from "../text/ansi.js";
import { Comparison } from "./compare.js";

/** Two recorded episodes side by side: what a report can compare without a model. */
export function RecordedCompare(): JSX.Element {
  const { selected, runs } = useDashboard();
  const [a, setA] = useState({ run: selected[0], id: "" });
  const [b, setB] = useState({ run: selected[1] ?? runs[1]?.id ?? selected[0], id: "" });
  const detailA = useRecorded(a.run, a.id);
  const detailB = useRecorded(b.run, b.id);
  const result = useMemo<CompareResponse | undefined>(
    () => (detailA && detailB ? { a: detailA, b: detailB, partsAt: findDifference(detailA, detailB) } : undefined),
    [detailA, detailB],
  );
  return (
    <>
      <Panel>
        <div class="toolbar">
          <EpisodePicker label="A" value={a} onChange={setA} />
          <EpisodePicker label="B" value={b} onChange={setB} />
        </div>
      </Panel>
      {result && <Comparison result={result} names={[nameOf(a.run, result.a), nameOf(b.run, result.b)]} />}
    </>
  );
}

function nameOf(run: string, { row }: EpisodeDetail): string {
  return `${stripControls(run)}, episode ${row.id}`;
}

/** Loads an episode, the newest one without an id. */
function useRecorded(run: string, id: string): EpisodeDetail | undefined {
  const { list } = useEpisodes(run);
  const episode = id === "" ? list?.episodes[0]?.id : id;
  return useGet<EpisodeDetail>(episode === undefined ? undefined : runPath(run, `/episodes/${episode}`)).data;
}

interface RecordedEpisode {
  readonly run: string;
  readonly id: string;
}

interface EpisodePickerProps {
  readonly label: string;
  readonly value: RecordedEpisode;
  readonly onChange: (value: RecordedEpisode) => void;
}

function EpisodePicker({ label, value, onChange }: EpisodePickerProps): JSX.Element {
  const { runs } = useDashboard();
  const { list } = useEpisodes(value.run);
  const options = (list?.episodes ?? []).map(
    ({ id, return: sum }) => [id, `${id}: return ${showSigned(sum)}`] as const,
  );
  return (
    <span class="model-picker">
      <Select
        label={label}
        value={value.run}
        options={runs.map(({ id }) => [id, stripControls(id)] as const)}
        onChange={(run) => onChange({ run, id: "" })}
      />
      <Select
        label="Episode"
        value={value.id === "" ? (options[0]?.[0] ?? "") : value.id}
        options={options}
        onChange={(id) => onChange({ ...value, id })}
      />
    </span>
  );
}

function findDifference(a: EpisodeDetail, b: EpisodeDetail): CompareResponse["partsAt"] {
  const count = Math.max(a.turns.length, b.turns.length);
  for (let turn = 0; turn < count; turn++) {
    const [x, y] = [a.turns[turn]?.tokens ?? [], b.turns[turn]?.tokens ?? []];
    const length = Math.max(x.length, y.length);
    for (let token = 0; token < length; token++) if (x[token] !== y[token]) return { turn, token };
  }
  return null;
}
