import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { EpisodeDetail, TurnDetail } from "../../../src/app/dashboard/api.js";
import { AnsiText } from "../text/ansi-text.js";
import { EnvDrawing } from "./env-drawing.js";
import { parseDrawing } from "./parse-drawing.js";
import { IconButton } from "./controls.js";

/** Milliseconds that a frame is shown. */
const FRAME_MS = 600;

/** Returns the number of frames: the state before each turn, and the final one. */
export function countFrames({ turns, final }: EpisodeDetail): number {
  return turns.length + (final.render === null && final.observation === null ? 0 : 1);
}

/** The environment at a frame. */
export function Screen({ detail, frame }: { readonly detail: EpisodeDetail; readonly frame: number }): JSX.Element {
  const { render, observation } = detail.turns[frame] ?? detail.final;
  return <StateView render={render} observation={observation} />;
}

/** A state as a picture where it can be drawn, else as text. */
export function StateView({ render, observation }: Pick<TurnDetail, "render" | "observation">): JSX.Element {
  const drawing = parseDrawing(render, observation);
  if (drawing !== undefined) return <EnvDrawing drawing={drawing} />;
  return <ScreenText text={render ?? observation ?? "The environment has no rendering."} />;
}

/** Lines of a rendering that is shown in large type. */
const MAX_LARGE_LINES = 14;

/** Columns of a rendering that is shown in large type. */
const MAX_LARGE_COLUMNS = 36;

/** A rendering, large where it is small. */
function ScreenText({ text }: { readonly text: string }): JSX.Element {
  const lines = text.split("\n");
  const isLarge = lines.length <= MAX_LARGE_LINES && lines.every((line) => line.length <= MAX_LARGE_COLUMNS);
  return (
    <pre class={isLarge ? "screen large" : "screen"} aria-label="Environment">
      <span>
        <AnsiText text={text} />
      </span>
    </pre>
  );
}

interface FilmControlsProps {
  readonly count: number;
  readonly frame: number;
  readonly onFrame: (frame: number) => void;
}

/** Play, pause, step and a slider over the frames. */
export function FilmControls({ count, frame, onFrame }: FilmControlsProps): JSX.Element {
  const [isPlaying, setPlaying] = useState(false);
  const last = Math.max(0, count - 1);
  useEffect(() => {
    if (!isPlaying) return;
    if (frame >= last) {
      setPlaying(false);
      return;
    }
    const timer = setTimeout(() => onFrame(frame + 1), FRAME_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, frame, last]);
  const toggle = (): void => {
    if (!isPlaying && frame >= last) onFrame(0);
    setPlaying(!isPlaying);
  };
  return (
    <div class="film-controls">
      <IconButton icon="previous" label="Previous turn" disabled={frame === 0} onClick={() => onFrame(frame - 1)} />
      <IconButton icon={isPlaying ? "pause" : "play"} label={isPlaying ? "Pause" : "Play"} onClick={toggle} />
      <IconButton icon="next" label="Next turn" disabled={frame >= last} onClick={() => onFrame(frame + 1)} />
      <input
        type="range"
        min="0"
        max={last}
        value={frame}
        aria-label="Turn"
        onInput={(event) => onFrame(event.currentTarget.valueAsNumber)}
      />
      <span class="number soft">
        {frame + 1} / {count}
      </span>
    </div>
  );
}
