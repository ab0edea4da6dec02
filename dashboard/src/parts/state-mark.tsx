import type { JSX } from "preact";
import type { RunRow } from "../../../src/app/dashboard/api.js";

/**
 * The state of a run as a word with a mark whose shape differs by state, and its progress while it
 * trains.
 */
export function StateMark({ row: { state, progress } }: { readonly row: RunRow }): JSX.Element {
  const percent = progress === null ? undefined : Math.floor(progress * 100);
  return (
    <span class={`state state-${state}`}>
      <i aria-hidden="true" />
      {state}
      {state === "running" && percent !== undefined && <small>{percent} %</small>}
    </span>
  );
}
