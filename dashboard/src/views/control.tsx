import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ChangeableSetting, ControlRequest, ControlResponse, RunDetail } from "../../../src/app/dashboard/api.js";
import { useDashboard, useGet, useLiveEvent } from "../data/context.js";
import { runPath } from "../data/source.js";
import { showNumber } from "../format.js";
import { ConfirmDialog } from "../parts/confirm-dialog.js";
import { Banner, Empty, Panel } from "../parts/controls.js";
import { RunPicker } from "../parts/run-picker.js";
import { StateMark } from "../parts/state-mark.js";
import { stripControls } from "../text/ansi.js";
import { LogTable } from "./health.js";

/** A request with the question that is asked first. */
interface Question {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly request: ControlRequest;
}

const CHECKPOINT: Question = {
  title: "Write a checkpoint now?",
  text: "The run saves a checkpoint after the current update and continues.",
  button: "Write checkpoint",
  request: { action: "checkpoint" },
};

const STOP: Question = {
  title: "Stop after this update?",
  text: "The run finishes the current update, saves a checkpoint and ends. llamagym train --resume continues it.",
  button: "Stop the run",
  request: { action: "stop" },
};

/** Controls a run that trains. */
export function ControlView(): JSX.Element {
  const { selected, source } = useDashboard();
  const run = selected[0];
  const { data, error, reload } = useGet<RunDetail>(run === undefined ? undefined : runPath(run));
  const [question, setQuestion] = useState<Question>();
  const [problem, setProblem] = useState<string>();
  const [sent, setSent] = useState<readonly string[]>([]);
  useLiveEvent("log", (event) => event.run === run && reload());
  useLiveEvent("runs", ({ rows }) => rows.some(({ id }) => id === run) && reload());

  const send = async ({ request }: Question): Promise<void> => {
    setQuestion(undefined);
    setProblem(undefined);
    try {
      const answer = await source.send<ControlResponse>("POST", runPath(run, "/control"), request);
      setSent([...sent, answer.request]);
    } catch (failure) {
      setProblem((failure as Error).message);
    }
  };
  const log = data?.log ?? [];
  const waiting = sent.filter((id) => !log.some(({ request }) => request === id));
  const isRunning = data?.row.state === "running";
  return (
    <div class="view">
      <header class="view-header">
        <h1>Control</h1>
        <RunPicker view="control" />
        {data && <StateMark row={data.row} />}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {problem !== undefined && <Banner kind="error">{problem}</Banner>}
      {waiting.length > 0 && <Banner kind="info">Waiting for the run to reach the end of its update.</Banner>}
      {run === undefined && <Empty title="No runs yet" />}
      {data && !isRunning && (
        <Banner kind="info">This run does not train at present, so it cannot be controlled.</Banner>
      )}
      {data && (
        <>
          <div class="two-columns">
            <Panel title="Checkpoint and stop">
              <div class="control-actions">
                <button type="button" class="button" disabled={!isRunning} onClick={() => setQuestion(CHECKPOINT)}>
                  Write checkpoint
                </button>
                <p class="soft">{CHECKPOINT.text}</p>
                <button type="button" class="button danger" disabled={!isRunning} onClick={() => setQuestion(STOP)}>
                  Stop after this update
                </button>
                <p class="soft">{STOP.text}</p>
              </div>
            </Panel>
            <Panel title="Settings">
              {data.changeable.length === 0 ? (
                <p class="soft">
                  {isRunning ? "This run has no settings that can be changed." : "Settings of running runs only."}
                </p>
              ) : (
                data.changeable.map((setting) => (
                  <SettingForm key={setting.name} setting={setting} onAsk={setQuestion} />
                ))
              )}
            </Panel>
          </div>
          <Panel title="Log">
            <LogTable log={log} />
          </Panel>
        </>
      )}
      {question && (
        <ConfirmDialog
          title={question.title}
          text={question.text}
          button={question.button}
          onCancel={() => setQuestion(undefined)}
          onConfirm={() => void send(question)}
        />
      )}
    </div>
  );
}

interface SettingFormProps {
  readonly setting: ChangeableSetting;
  readonly onAsk: (question: Question) => void;
}

function SettingForm({ setting: { name, description, value }, onAsk }: SettingFormProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const shown = stripControls(name);
  return (
    <form
      class="setting"
      onSubmit={(event) => {
        event.preventDefault();
        const next = input.current!.valueAsNumber;
        if (!Number.isFinite(next)) return;
        onAsk({
          title: `Change ${shown}?`,
          text: `From ${showNumber(value)} to ${showNumber(next)}, from the next update on. The change is written to the log.`,
          button: "Change",
          request: { action: "set", name, value: next },
        });
      }}
    >
      <label>
        <code>{shown}</code>
        <small>{stripControls(description)}</small>
        <input ref={input} type="number" step="any" defaultValue={String(value ?? "")} required />
      </label>
      <button type="submit" class="button">
        Change
      </button>
    </form>
  );
}
