import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CompareRequest, CompareResponse, EpisodeDetail, RunDetail } from "../../../src/app/dashboard/api.js";
import { useDashboard, useGet } from "../data/context.js";
import { runPath } from "../data/source.js";
import { showSigned } from "../format.js";
import { Banner, Empty, Panel, SeedField, Select } from "../parts/controls.js";
import { countFrames, FilmControls, Screen } from "../parts/film.js";
import { TurnText } from "../parts/turn-text.js";
import { stripControls } from "../text/ansi.js";
import { RecordedCompare } from "./recorded-compare.js";

/** Turns that are played at most. */
const MAX_TURNS = 200;

/** The same start played by two models, side by side. */
export function CompareView(): JSX.Element {
  const { source, runs } = useDashboard();
  return (
    <div class="view">
      <header class="view-header">
        <h1>Compare</h1>
        <span class="soft">The same start, two models</span>
      </header>
      {runs.length === 0 ? <Empty title="No runs yet" /> : source.isReport ? <RecordedCompare /> : <PlayedCompare />}
    </div>
  );
}

function PlayedCompare(): JSX.Element {
  const { source, selected } = useDashboard();
  const [a, setA] = useState({ run: selected[0], checkpoint: "" });
  const [b, setB] = useState({ run: selected[1] ?? selected[0], checkpoint: "" });
  const [seed, setSeed] = useState(1);
  const [isPlaying, setPlaying] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [result, setResult] = useState<CompareResponse>();

  const play = async (): Promise<void> => {
    setPlaying(true);
    setProblem(undefined);
    const body: CompareRequest = { a, b, seed, temperature: 0, maxTurns: MAX_TURNS };
    try {
      setResult(await source.send<CompareResponse>("POST", "/api/compare", body));
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setPlaying(false);
    }
  };
  return (
    <>
      <Panel>
        <form
          class="toolbar"
          onSubmit={(event) => {
            event.preventDefault();
            void play();
          }}
        >
          <ModelPicker label="A" value={a} onChange={setA} />
          <ModelPicker label="B" value={b} onChange={setB} />
          <SeedField seed={seed} onSeed={setSeed} />
          <button
            type="submit"
            class="button primary"
            disabled={isPlaying || a.checkpoint === "" || b.checkpoint === ""}
          >
            {isPlaying ? "Playing …" : "Play both"}
          </button>
        </form>
      </Panel>
      {problem !== undefined && <Banner kind="error">{problem}</Banner>}
      {result && <Comparison result={result} names={[modelName(a), modelName(b)]} />}
    </>
  );
}

interface Model {
  readonly run: string;
  readonly checkpoint: string;
}

function modelName({ run, checkpoint }: Model): string {
  return `${stripControls(run)}, ${stripControls(checkpoint)}`;
}

interface ModelPickerProps {
  readonly label: string;
  readonly value: Model;
  readonly onChange: (model: Model) => void;
}

/** Selects a run and one of its checkpoints, at first the newest. */
export function ModelPicker({ label, value, onChange }: ModelPickerProps): JSX.Element {
  const { runs } = useDashboard();
  const { data } = useGet<RunDetail>(value.run === "" ? undefined : runPath(value.run));
  const checkpoints = data?.row.id === value.run ? data.checkpoints : [];
  const first = checkpoints[0]?.name;
  useEffect(() => {
    if (first !== undefined && value.checkpoint === "") onChange({ ...value, checkpoint: first });
  }, [first, value.checkpoint]);
  const options = runs.map(({ id }) => [id, stripControls(id)] as const);
  return (
    <span class="model-picker">
      <Select label={label} value={value.run} options={options} onChange={(run) => onChange({ run, checkpoint: "" })} />
      {checkpoints.length > 0 ? (
        <select
          aria-label={`Checkpoint of ${label}`}
          value={value.checkpoint}
          onChange={(event) => onChange({ ...value, checkpoint: event.currentTarget.value })}
        >
          {checkpoints.map(({ name, updates }) => (
            <option key={name} value={name} selected={name === value.checkpoint}>
              {updates === null || String(updates) === name
                ? stripControls(name)
                : `${stripControls(name)} (${updates})`}
            </option>
          ))}
        </select>
      ) : (
        <span class="soft">{data && "no checkpoint"}</span>
      )}
    </span>
  );
}

interface ComparisonProps {
  readonly result: CompareResponse;
  readonly names: readonly [string, string];
}

/** Two episodes side by side at the same turn, from the turn where they part. */
export function Comparison({ result: { a, b, partsAt }, names }: ComparisonProps): JSX.Element {
  const [frame, setFrame] = useState(partsAt?.turn ?? 0);
  useEffect(() => setFrame(partsAt?.turn ?? 0), [a, b]);
  const count = Math.max(countFrames(a), countFrames(b));
  return (
    <>
      <div class="toolbar">
        <FilmControls count={count} frame={Math.min(frame, count - 1)} onFrame={setFrame} />
        {partsAt === null ? (
          <span class="tag">The completions are equal throughout</span>
        ) : (
          <>
            <span class="tag warn">
              They part at turn {partsAt.turn + 1}, token {partsAt.token + 1}
            </span>
            <button type="button" class="button" onClick={() => setFrame(partsAt.turn)}>
              Show this turn
            </button>
          </>
        )}
      </div>
      <div class="two-columns">
        {([a, b] as const).map((detail, i) => (
          <Side
            key={i}
            name={`${"AB"[i]}: ${names[i]}`}
            detail={detail}
            frame={frame}
            isParting={partsAt?.turn === frame}
          />
        ))}
      </div>
    </>
  );
}

interface SideProps {
  readonly name: string;
  readonly detail: EpisodeDetail;
  readonly frame: number;
  readonly isParting: boolean;
}

function Side({ name, detail, frame, isParting }: SideProps): JSX.Element {
  const shown = Math.min(frame, countFrames(detail) - 1);
  const turn = detail.turns[shown];
  const total = detail.turns.reduce((sum, { reward }) => sum + (reward ?? 0), 0);
  return (
    <Panel
      title={name}
      className={isParting ? "parting" : ""}
      tools={<span class="soft">return {showSigned(detail.row.return ?? total)}</span>}
    >
      <Screen detail={detail} frame={shown} />
      {turn ? <TurnText turn={turn} vocabulary={detail.vocabulary} /> : <p class="soft">The episode has ended.</p>}
    </Panel>
  );
}
