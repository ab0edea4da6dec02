import { describe, expect, it } from "vitest";
import { LiveProgress } from "./live-progress.js";
import { renderFields } from "./progress-fields.js";
import type { ProgressOutput } from "./progress-line.js";
import { trainingFields, type ProgressHistory, type ProgressState } from "./training-progress.js";

const metrics = {
  "rollout/ep_rew_mean": -0.0612,
  "objective/kl": 0.0123,
  entropy: 0.41,
  "rollout/turns_per_second": 142.3,
};
const state: ProgressState = { progress: 0.345, updates: 120, episodes: 3200, totalEpisodes: 5000, metrics };
const history = { returns: [-0.4, -0.2, -0.0612], secondsLeft: 130 };

/** The line of a state at a width. */
const renderLine = (state: ProgressState, history: ProgressHistory, width: number, useColor: boolean): string =>
  renderFields(trainingFields(state, history), width, useColor);

/** Strips terminal escape sequences. */
const plain = (text: string): string =>
  text
    .split("\u001B[")
    .map((part, index) => (index === 0 ? part : part.replace(/^\d*[mK]/, "")))
    .join("");

describe("training progress line", () => {
  it("shows all fields when they fit", () => {
    expect(renderLine(state, history, 200, false)).toBe(
      "███████░░░░░░░░░░░░░  34%  episode 3,200/5,000  return -0.0612  ▁▅█  kl 0.0123  entropy 0.41  142 turns/s  update 120  2:10 left",
    );
  });

  it("fits the width and keeps the most important fields", () => {
    for (let width = 4; width <= 140; width++) {
      const line = renderLine(state, history, width, true);
      expect(plain(line).length).toBeLessThanOrEqual(width);
      expect(line).toContain("34%");
    }
    expect(renderLine(state, history, 34, false)).toBe("34%  return -0.0612  2:10 left");
    expect(renderLine(state, history, 80, false)).toBe(
      "34%  episode 3,200/5,000  return -0.0612  kl 0.0123  2:10 left",
    );
  });

  it("leaves out metrics that are missing or not finite", () => {
    const history = { returns: [], secondsLeft: undefined };
    const incomplete: readonly ProgressState["metrics"][] = [{}, { "rollout/ep_rew_mean": NaN }];
    for (const metrics of incomplete)
      expect(renderLine({ progress: 0, updates: 0, episodes: 0, metrics }, history, 100, false)).toBe(
        "░░░░░░░░░░░░░░░░░░░░  0%  episode 0  update 0",
      );
  });

  it("uses color only on request", () => {
    expect(renderLine(state, history, 200, false)).not.toContain("\u001B");
    expect(plain(renderLine(state, history, 200, true))).toBe(renderLine(state, history, 200, false));
    expect(renderLine(state, history, 200, true)).toContain("\u001B[32m▁▅█\u001B[0m");
  });
});

function shownOn(output: Omit<ProgressOutput, "write">, env: Record<string, string> = {}) {
  const written: string[] = [];
  const time = { now: 0 };
  const out = { ...output, write: (text: string) => written.push(text) };
  const progress = new LiveProgress({ out, env, now: () => time.now });
  return { written, time, progress };
}

const at = (updates: number, progress: number): ProgressState => ({
  ...state,
  updates,
  progress,
  metrics: { ...metrics, "rollout/ep_rew_mean": updates },
});

describe("LiveProgress", () => {
  it("redraws one line of a terminal at most every 100 ms and leaves the last state", () => {
    const { written, time, progress } = shownOn({ isTTY: true, columns: 60 });
    for (let update = 0; update <= 100; update++) {
      time.now = update * 10;
      progress.update(at(update, update / 200));
    }
    expect(written).toHaveLength(11);
    progress.end();
    expect(written.slice(0, -1).every((text) => text.startsWith("\r\u001B[K") && !text.includes("\n"))).toBe(true);
    expect(written.slice(0, -1).every((text) => plain(text).trim().length < 60)).toBe(true);
    expect(plain(written.at(-2) ?? "")).toContain("50%");
    expect(written.at(-1)).toBe("\n");
  });

  it("writes a line every ten seconds where nothing can be redrawn, and the last state once", () => {
    for (const { written, time, progress } of [shownOn({}), shownOn({ isTTY: true }, { TERM: "dumb" })]) {
      for (let update = 0; update <= 25; update++) {
        time.now = update * 1000;
        progress.update(at(update, update / 50));
      }
      progress.end();
      expect(written.map((line) => line.split("  ")[0])).toEqual(["0%", "20%", "40%", "50%"]);
      expect(written.at(-1)).toBe(
        "50%  episode 3,200/5,000  return 25  kl 0.0123  entropy 0.41  142 turns/s  update 25  0:25 left\n",
      );
    }
  });

  it("estimates the time left from the speed since the first update", () => {
    const { written, time, progress } = shownOn({});
    progress.update(at(50, 0.5)); // a resumed run
    time.now = 20_000;
    progress.update(at(60, 0.6));
    expect(written[0]).not.toContain("left");
    expect(written[1]).toContain("1:20 left");
  });

  it("respects NO_COLOR", () => {
    const [colored, plainLine] = [shownOn({ isTTY: true }), shownOn({ isTTY: true }, { NO_COLOR: "1" })];
    colored.progress.update(state);
    plainLine.progress.update(state);
    expect(colored.written[0]).toContain("\u001B[36m");
    expect(plainLine.written[0]).toBe(`\r\u001B[K${plain(plainLine.written[0]).trimStart()}`);
  });

  it("prints messages above the line", () => {
    const { written, progress } = shownOn({ isTTY: true, columns: 19 });
    progress.print("before");
    progress.update(state);
    progress.print("Saved.");
    expect(written).toEqual(["\r\u001B[Kbefore\n", "\r\u001B[K34%", "\r\u001B[KSaved.\n", "\r\u001B[K34%"]);
    const log = shownOn({});
    log.progress.print("Saved.");
    log.progress.end();
    expect(log.written).toEqual(["Saved.\n"]);
  });
});
