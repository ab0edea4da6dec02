import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PlayRequest, PlayState, PlayStepRequest } from "../../../src/app/dashboard/api.js";
import { useDashboard } from "../data/context.js";
import { showNumber, showSigned } from "../format.js";
import { Banner, Empty, Panel, SeedField, Segments } from "../parts/controls.js";
import { StateView } from "../parts/film.js";
import { ProbabilityBars } from "../parts/probability-bars.js";
import { stripControls } from "../text/ansi.js";
import { Chat } from "./chat.js";
import { ModelPicker } from "./compare.js";

type Mode = "episode" | "chat";

/** A checkpoint to play with: step by step in its environment, or in a chat. */
export function PlayView(): JSX.Element {
  const { source, selected, runs } = useDashboard();
  const [model, setModel] = useState({ run: selected[0] ?? "", checkpoint: "" });
  const [mode, setMode] = useState<Mode>("episode");
  const [state, setState] = useState<PlayState>();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const session = state?.session;
  useEffect(
    () => () => {
      if (session !== undefined) void source.send("DELETE", `/api/play/${session}`, {}).catch(() => {});
    },
    [session],
  );
  const request = async (path: string, body: unknown): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      setState(await source.send<PlayState>("POST", path, body));
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const start = (): Promise<void> => request("/api/play", model satisfies PlayRequest);
  return (
    <div class="view">
      <header class="view-header">
        <h1>Play</h1>
        {runs.length > 0 && <ModelPicker label="Model" value={model} onChange={setModel} />}
        <button
          type="button"
          class="button primary"
          disabled={isBusy || model.checkpoint === ""}
          onClick={() => void start()}
        >
          {state === undefined ? "Load" : "Load again"}
        </button>
        {state && (
          <Segments
            label="Mode"
            value={mode}
            options={[
              ["episode", "Episode"],
              ["chat", "Chat"],
            ]}
            onChange={setMode}
          />
        )}
      </header>
      {problem !== undefined && <Banner kind="error">{problem}</Banner>}
      {state === undefined && (
        <Empty title={isBusy ? "Loading the model …" : "Load a checkpoint to play"}>
          It runs inside the dashboard's process with its own model, at a lower priority than training.
        </Empty>
      )}
      {state && mode === "chat" && <Chat session={state.session} />}
      {state && mode === "episode" && (
        <EpisodePlay
          key={`${state.session} ${state.seed} ${state.turns.length}`}
          state={state}
          isBusy={isBusy}
          onStep={(body) => void request(`/api/play/${state.session}/step`, body)}
          onReset={(seed) => void request(`/api/play/${state.session}/reset`, { seed })}
        />
      )}
    </div>
  );
}

interface EpisodePlayProps {
  readonly state: PlayState;
  readonly isBusy: boolean;
  readonly onStep: (body: PlayStepRequest) => void;
  readonly onReset: (seed: number) => void;
}

function EpisodePlay({ state, isBusy, onStep, onReset }: EpisodePlayProps): JSX.Element {
  const [observation, setObservation] = useState(state.observation);
  const [completion, setCompletion] = useState("");
  const [seed, setSeed] = useState(state.seed);
  const changed = observation === state.observation ? {} : { observation };
  return (
    <div class="two-columns">
      <Panel
        title={`${stripControls(state.env)}, turn ${state.turns.length + (state.isDone ? 0 : 1)}`}
        tools={
          <form
            class="toolbar"
            onSubmit={(event) => {
              event.preventDefault();
              onReset(seed);
            }}
          >
            <SeedField seed={seed} onSeed={setSeed} />
            <button type="submit" class="button" disabled={isBusy}>
              Reset
            </button>
          </form>
        }
      >
        <StateView render={state.render} observation={state.observation} />
        <p class="play-return">
          {state.isDone && <span class="tag good">The episode has ended</span>} Return{" "}
          <strong class="number">{showSigned(state.return)}</strong>
        </p>
        <h3 class="caption">Turns so far</h3>
        {state.turns.length === 0 && <p class="soft">None.</p>}
        <ol class="play-turns">
          {state.turns.map((turn, i) => (
            <li key={i}>
              <code>{stripControls(turn.text)}</code>
              <span class="soft number">
                {turn.isValid ? stripControls(turn.action ?? "") : "invalid"}, reward {showNumber(turn.reward)}
              </span>
            </li>
          ))}
        </ol>
      </Panel>
      <Panel title="Next turn">
        <div class="play-form">
          <label class="stack">
            Observation that the model reads
            <textarea
              rows={4}
              class="mono"
              value={observation}
              disabled={state.isDone}
              onInput={(event) => setObservation(event.currentTarget.value)}
            />
          </label>
          <button
            type="button"
            class="button primary"
            disabled={isBusy || state.isDone}
            onClick={() => onStep(changed)}
          >
            Let the model reply
          </button>
          {state.actions && (
            <div>
              <h3 class="caption">Actions with the model's probabilities</h3>
              <ProbabilityBars
                items={state.actions.map(({ text, probability }) => ({ text: stripControls(text), probability }))}
                onPick={isBusy || state.isDone ? undefined : (text) => onStep({ ...changed, completion: text })}
              />
            </div>
          )}
          <form
            class="send"
            onSubmit={(event) => {
              event.preventDefault();
              if (completion !== "") onStep({ ...changed, completion });
            }}
          >
            <input
              type="text"
              aria-label="Completion"
              placeholder="Or write the completion"
              value={completion}
              disabled={state.isDone}
              onInput={(event) => setCompletion(event.currentTarget.value)}
            />
            <button type="submit" class="button" disabled={isBusy || state.isDone || completion === ""}>
              Take it
            </button>
          </form>
        </div>
      </Panel>
    </div>
  );
}
