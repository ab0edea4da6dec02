import { expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { RolloutTransport } from "../rollout/rollout-job.js";
import { RolloutPipeline } from "./rollout-pipeline.js";
import { INITIAL_STATE } from "./train-task.js";

it.each([0, 1, 4])(
  "queues the jobs of one rollout, and collects at most %i ahead of the updates",
  async (maxStaleness) => {
    const slots = Array.from({ length: 12 }, (_, index) => ({
      state: { env: null, hasStarted: false, random: new RandomStream(index).getState(), episode: null },
      firstSeed: index,
      record: false,
    }));
    let pending = 0;
    let maxPending = 0;
    let jobs = 0;
    const transport: RolloutTransport = {
      publish: async () => {},
      run: async (job) => {
        jobs++;
        maxPending = Math.max(maxPending, ++pending);
        await new Promise((resolve) => setImmediate(resolve));
        pending--;
        return { trajectories: [], finishedEpisodes: [], states: job.slots.map(({ state }) => state) };
      },
      close: async () => {},
    };
    const model = {
      parametersVersion: 0,
      parameters: { values: undefined },
      runtime: { read: async () => ({ data: new Float32Array(1) }) },
    };
    const pipeline = new RolloutPipeline({
      slots,
      slotsPerJob: 4,
      episodeStarts: new RandomStream(0),
      transport,
      model: model as unknown as CausalLM,
      maxStaleness,
      collect: async (source) => source.collectTurns(12),
      advance: (state) => state,
      progress: () => 0,
    });
    for (let updates = 0; updates < 3; updates++) {
      await pipeline.collect({ ...INITIAL_STATE, updates }, () => {});
      // Far more than the rollouts that were asked for need.
      for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(jobs).toBe(3 * (updates + 1 + maxStaleness));
    }
    expect(maxPending).toBe(3);
  },
);
