import { describe, expect, it } from "vitest";
import { combineTrackers } from "./combine-trackers.js";
import type { Tracker } from "./tracker.js";

/** A tracker that records its calls and throws in those named in `failing`. */
function recordingTracker(failing: readonly string[] = []) {
  const calls: string[] = [];
  const note = (call: string): void => {
    calls.push(call);
    if (failing.includes(call.split(" ")[0])) throw new Error(`no ${call}.`);
  };
  const tracker: Tracker = {
    log: (step, record) => note(`log ${step} ${record.reward}`),
    logCompletions: async (step, rows) => note(`samples ${step} ${rows.length}`),
    logConfig: (settings) => note(`config ${JSON.stringify(settings)}`),
    close: (outcome) => note(`close ${outcome ?? "finished"}`),
  };
  return { calls, tracker };
}

const row = { prompt: "p", completion: "c", reward: 1 };

describe("combineTrackers", () => {
  it("forwards calls in order, awaited or not", async () => {
    const [first, second] = [recordingTracker(), recordingTracker()];
    const warnings: string[] = [];
    const all = combineTrackers([first.tracker, async () => second.tracker], {
      onWarning: (text) => warnings.push(text),
    });
    void all.logConfig({ lr: 1 });
    void all.log(1, { reward: 2 });
    void all.logCompletions(1, [row]);
    await all.close("failed");
    const expected = ['config {"lr":1}', "log 1 2", "samples 1 1", "close failed"];
    expect(first.calls).toEqual(expected);
    expect(second.calls).toEqual(expected);
    expect(warnings).toEqual([]);
  });

  it.each(["log", "samples", "config", "close"])(
    "reports a failing %s once and continues with the other trackers",
    async (call) => {
      const [broken, whole] = [recordingTracker([call]), recordingTracker()];
      const warnings: string[] = [];
      const all = combineTrackers([broken.tracker, whole.tracker], { onWarning: (text) => warnings.push(text) });
      for (let step = 1; step <= 3; step++) {
        await all.logConfig({});
        await all.log(step, { reward: 0 });
        await all.logCompletions(step, [row]);
      }
      await all.close();
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatch(new RegExp(`^A tracker failed: no ${call} .*Training continues`));
      expect(whole.calls).toHaveLength(10);
      expect(broken.calls.filter((name) => name.startsWith(call))).toHaveLength(call === "close" ? 2 : 1);
    },
  );

  it("reports a tracker that fails to open", async () => {
    const whole = recordingTracker();
    const warnings: string[] = [];
    const refused = (): Tracker => {
      throw new Error("Permission denied.");
    };
    const all = combineTrackers([refused, whole.tracker], { onWarning: (text) => warnings.push(text) });
    await all.log(1, { reward: 0 });
    expect(warnings).toEqual(["A tracker failed: Permission denied. Training continues without this tracker."]);
    expect(whole.calls).toEqual(["log 1 0"]);
  });

  it.each<[string, () => Partial<Tracker> | Promise<never>, RegExp]>([
    ["is none", () => 3 as never, /^A tracker must have a method log\(step, record\), got 3\./],
    ["never opens", () => new Promise<never>(() => {}), /^A tracker failed: it did not answer within 0\.02 s\./],
    ["never logs", () => ({ log: () => new Promise(() => {}) }), /^A tracker failed: it did not answer within/],
    ["never closes", () => ({ log: () => {}, close: () => new Promise(() => {}) }), /did not answer within/],
  ])("reports a tracker that %s, and closes", async (_, open, message) => {
    const whole = recordingTracker();
    const warnings: string[] = [];
    const all = combineTrackers([open as () => Tracker, whole.tracker], {
      onWarning: (text) => warnings.push(text),
      timeoutSeconds: 0.02,
    });
    await all.log(1, { reward: 0 });
    await all.close();
    expect(warnings).toEqual([expect.stringMatching(message)]);
    expect(whole.calls).toEqual(["log 1 0", "close finished"]);
  });

  it("accepts a tracker with log only", async () => {
    const steps: number[] = [];
    const warnings: string[] = [];
    const all = combineTrackers([{ log: (step) => void steps.push(step) }], {
      onWarning: (text) => warnings.push(text),
    });
    await all.logConfig({});
    await all.logCompletions(1, []);
    await all.log(1, {});
    await all.close();
    expect([steps, warnings]).toEqual([[1], []]);
  });
});
