import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { ResumePoint, Tracker } from "./tracker.js";

/** Opens a tracker of one run; called again with `resumeFromStep` to resume it. */
export type TrackerFactory = (options: ResumePoint) => Tracker | Promise<Tracker>;

/** Values that records and completions may contain. */
const METRICS = {
  reward: Number.NaN,
  "a/b c": Infinity,
  loss: -Infinity,
  tiny: 5e-324,
  huge: -1e300,
  count: 2 ** 53,
  "": 0,
  step: 3,
  ["__proto__"]: 1,
};
const COMPLETIONS = [
  { prompt: "", completion: "a\r\nb\u2028\u0000\u{1f0a1}</td>|`", reward: -0, kind: null },
  { prompt: "x".repeat(100_000), completion: '{"a":1}', reward: 1e308, extra: true },
];

/**
 * Checks a tracker: records whole runs with unusual metrics and texts, resumes them from several
 * steps, and closes trackers twice. Each call of `openRun` must return a factory for a new run, in
 * a new folder for example.
 * @throws INVALID_STATE at the first violation.
 */
export async function checkTracker(openRun: () => TrackerFactory | Promise<TrackerFactory>): Promise<void> {
  await check("a whole run", async () => recordRun(await (await openRun())({})));
  for (const resumeFromStep of [0, 2, 1e6]) {
    const open = await openRun();
    await check("a run to resume", async () => recordRun(await open({})));
    await check(`resuming from step ${resumeFromStep}`, async () => recordRun(await open({ resumeFromStep })));
    await check(`resuming from step ${resumeFromStep} without earlier records`, async () =>
      recordRun(await (await openRun())({ resumeFromStep })),
    );
  }
  await check("closing twice", async () => {
    const tracker = await (await openRun())({});
    await tracker.close?.("failed");
    await tracker.close?.();
  });
}

async function recordRun(tracker: Tracker): Promise<void> {
  await tracker.logConfig?.({ lr: 1e-5, nested: { list: [1, "a", null], none: null }, "": "" });
  await tracker.log(1, METRICS);
  await tracker.log(1, {});
  await tracker.logCompletions?.(1, []);
  await tracker.logCompletions?.(1, COMPLETIONS);
  for (let step = 2; step <= 3; step++) await tracker.log(step, { reward: step });
  await tracker.log(2 ** 31, METRICS);
  await tracker.close?.("finished");
}

async function check(subject: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const message = errorMessage(error);
    throw new LlamaGymError("INVALID_STATE", `The tracker failed at ${subject}: ${message}`, { cause: error });
  }
}
