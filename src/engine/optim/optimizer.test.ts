import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../runtime/runtime.js";
import { Optimizer, warmupScheduleFactor, type OptimizerOptions, type ScheduleOptions } from "./index.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const START = [0.5, -1.25, 2.0, 0.01];
const GRADIENTS = [
  [0.1, -0.2, 0.3, 0.0],
  [1.5, -2.0, 0.25, 4.0],
  [-0.05, 0.02, 0.0, -0.01],
];

async function trainable() {
  const values = runtime.allocate("float32", [4]);
  const gradients = runtime.allocate("float32", [4]);
  await runtime.write(values, Float32Array.from(START));
  return { runtime, values, gradients, count: 4 };
}

async function steps(options: OptimizerOptions): Promise<{ values: number[]; norms: number[] }> {
  const target = await trainable();
  const optimizer = new Optimizer(target, options);
  const norms: number[] = [];
  for (const gradient of GRADIENTS) {
    await runtime.write(target.gradients, Float32Array.from(gradient));
    norms.push((await optimizer.update()).gradNorm);
  }
  return { values: Array.from((await runtime.read(target.values)).data as Float32Array), norms };
}

function expectClose(actual: readonly number[], expected: readonly number[], digits = 6): void {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(actual[i]).toBeCloseTo(value, digits));
}

it("decays the groups that decay only", async () => {
  const groups = [0, 2].map((offset) => ({ offset, count: 2, learningRateFactor: 1, isDecayed: offset === 0 }));
  const [decayed, plain, mixed] = await Promise.all(
    [{ weightDecay: 0.1 }, {}, { weightDecay: 0.1, groups }].map((options) => steps({ learningRate: 0.1, ...options })),
  );
  expect(mixed.values).toEqual([...decayed.values.slice(0, 2), ...plain.values.slice(2)]);
  expect(decayed.values).not.toEqual(plain.values);
});

describe("Optimizer, against PyTorch 2.13", () => {
  it("AdamW with decoupled weight decay and clipping at norm 1", async () => {
    const { values, norms } = await steps({ learningRate: 0.01, weightDecay: 0.1, maxGradNorm: 1 });
    expectClose(values, [0.473406345, -1.219560146, 1.970041513, -0.003140226]);
    expectClose(norms, [0.3741657734, 4.723610878, 0.0547722578]);
  });

  it("AdamW whose values come with each step", async () => {
    const target = await trainable();
    const optimizer = new Optimizer(target, { maxGradNorm: Infinity });
    const values = { learningRate: 0.01, weightDecay: 0.1, maxGradNorm: 1 };
    for (const gradient of GRADIENTS) {
      await runtime.write(target.gradients, Float32Array.from(gradient));
      await optimizer.update({ adamW: values });
    }
    const result = Array.from((await runtime.read(target.values)).data as Float32Array);
    expectClose(result, [0.473406345, -1.219560146, 1.970041513, -0.003140226]);
    await expect(optimizer.update({ adamW: { beta2: 1 } })).rejects.toThrow(/`beta2` must be >= 0 and < 1/);
  });

  it("AdamW with a cosine schedule and one warmup step", async () => {
    const { values } = await steps({
      learningRate: 0.01,
      maxGradNorm: Infinity,
      schedule: { kind: "cosine", warmupSteps: 1, totalSteps: 5 },
    });
    expectClose(values, [0.487120926, -1.236658573, 1.983548522, -0.002337523]);
  });

  it("SGD with momentum, weight decay and clipping at norm 2", async () => {
    const { values } = await steps({
      kind: "sgd",
      learningRate: 0.1,
      momentum: 0.9,
      weightDecay: 0.05,
      maxGradNorm: 2,
    });
    expectClose(values, [0.343771875, -1.002796412, 1.843350172, -0.310220152]);
  });

  it("averages accumulated gradients like one large batch", async () => {
    const whole = await trainable();
    const parts = await trainable();
    const one = new Optimizer(whole, { learningRate: 0.1 });
    const accumulated = new Optimizer(parts, { learningRate: 0.1 });
    await runtime.write(whole.gradients, Float32Array.from([0.2, -0.1, 0.4, 0.3]));
    await runtime.write(parts.gradients, Float32Array.from([0.4, -0.2, 0.8, 0.6]));
    await one.update();
    await accumulated.update({ gradientScale: 0.5 });
    expect((await runtime.read(parts.values)).data).toEqual((await runtime.read(whole.values)).data);
  });
});

describe("Optimizer", () => {
  it.each(["adamw", "sgd"] as const)("%s updates groups at their own rates", async (kind) => {
    const groups = [
      { offset: 0, count: 2, learningRateFactor: 1 },
      { offset: 2, count: 2, learningRateFactor: 0.1 },
    ];
    const options = { kind, maxGradNorm: 1 };
    const [slow, fast] = [
      await steps({ ...options, learningRate: 0.001 }),
      await steps({ ...options, learningRate: 0.01 }),
    ];
    const { values } = await steps({ ...options, learningRate: 0.01, groups });
    expectClose(values, [...fast.values.slice(0, 2), ...slow.values.slice(2)]);
  });

  it("skips a gradient that is not finite and changes nothing", async () => {
    const target = await trainable();
    const optimizer = new Optimizer(target, {});
    await runtime.write(target.gradients, Float32Array.from([1, NaN, 0, 0]));
    expect(await optimizer.update()).toMatchObject({ skipped: true });
    expect(optimizer.step).toBe(0);
    expect((await runtime.read(target.values)).data).toEqual(Float32Array.from(START));
  });

  it("skips a gradient whose square overflows the moments", async () => {
    const target = await trainable();
    const optimizer = new Optimizer(target, { maxGradNorm: Infinity });
    await runtime.write(target.gradients, Float32Array.from([1e25, 0, 0, 0]));
    expect(await optimizer.update()).toMatchObject({ skipped: true });
    expect((await optimizer.getState()).moments.every((moment) => moment.every(Number.isFinite))).toBe(true);
  });

  it("resumes bit for bit from a saved state", async () => {
    const options: OptimizerOptions = { learningRate: 0.05, weightDecay: 0.01 };
    const straight = await trainable();
    const resumed = await trainable();
    const first = new Optimizer(straight, options);
    const second = new Optimizer(resumed, options);
    const feed = (target: typeof straight, i: number) =>
      runtime.write(target.gradients, Float32Array.from(GRADIENTS[i]));
    for (const i of [0, 1, 2]) {
      await feed(straight, i);
      await first.update();
    }
    await feed(resumed, 0);
    await second.update();
    const third = new Optimizer(resumed, options);
    await third.setState(await second.getState());
    for (const i of [1, 2]) {
      await feed(resumed, i);
      await third.update();
    }
    expect((await runtime.read(resumed.values)).data).toEqual((await runtime.read(straight.values)).data);
  });

  it("rejects another optimizer's state and options out of range", async () => {
    const target = await trainable();
    const sgd = new Optimizer(target, { kind: "sgd" });
    await expect(new Optimizer(target, {}).setState(await sgd.getState())).rejects.toThrow(/does not fit/);
    expect(() => new Optimizer(target, { learningRate: -1 })).toThrow(
      /`learningRate` must be >= 0 and < Infinity, got -1/,
    );
    expect(() => new Optimizer(target, { beta2: 1 })).toThrow(/`beta2` must be >= 0 and < 1, got 1/);
    expect(() => new Optimizer(target, { schedule: { kind: "linear" } })).toThrow(/totalSteps/);
  });
});

describe("warmupScheduleFactor equals Transformers 5.24", () => {
  // get_scheduler with num_warmup_steps 3 and num_training_steps 10.
  it.each<[ScheduleOptions, number[]]>([
    [{ kind: "constant_with_warmup" }, [1, 1, 1, 1, 1, 1, 1, 1]],
    [{ kind: "linear" }, [1, 0.8571429, 0.7142857, 0.5714286, 0.4285714, 0.2857143, 0.1428571, 0]],
    [{ kind: "cosine" }, [1, 0.9504844, 0.8117449, 0.6112605, 0.3887395, 0.1882551, 0.0495156, 0]],
    [
      { kind: "cosine_with_restarts", lrNumCycles: 2 },
      [1, 0.8117449, 0.3887395, 0.0495156, 0.9504844, 0.6112605, 0.1882551, 0],
    ],
    [
      { kind: "cosine_with_min_lr", lrMinRate: 0.1 },
      [1, 0.955436, 0.8305704, 0.6501344, 0.4498656, 0.2694296, 0.144564, 0.1],
    ],
    [
      { kind: "polynomial", lrPower: 2, lrMinRate: 0.1 },
      [1, 0.7612245, 0.5591837, 0.3938776, 0.2653061, 0.1734694, 0.1183673, 0.1],
    ],
    [
      { kind: "warmup_stable_decay", lrDecayRatio: 4 / 7, lrMinRate: 0.1 },
      [1, 1, 1, 1, 0.8681981, 0.55, 0.2318019, 0.1],
    ],
  ])("%o", (options, decay) => {
    const factors = Array.from({ length: 11 }, (_, step) =>
      warmupScheduleFactor({ ...options, warmupSteps: 3, totalSteps: 10 }, step),
    );
    // Only warmup_stable_decay rises from the minimum instead of 0.
    const warmup = options.kind === "warmup_stable_decay" ? [0.1, 0.4, 0.7] : [0, 0.3333333, 0.6666667];
    expectClose(factors, [...warmup, ...decay]);
  });

  it.each<[ScheduleOptions, number[]]>([
    [
      { kind: "inverse_sqrt", warmupSteps: 3 },
      [0, 0.3333333, 0.6666667, 1, 0.8660254, 0.7745967, 0.7071068, 0.6546537, 0.6123724, 0.5773503],
    ],
    [{ kind: "inverse_sqrt" }, [1, 0.99995, 0.9999, 0.99985, 0.9998001, 0.9997501, 0.9997001, 0.9996502]],
    [
      { kind: "cosine_warmup_with_min_lr", warmupSteps: 3, totalSteps: 10, lrMinRate: 0.1 },
      [0.3333333, 0.6666667, 1, 0.955436, 0.8305704, 0.6501344, 0.4498656, 0.2694296, 0.144564, 0.1],
    ],
  ])("%o", (options, expected) => {
    const factors = expected.map((_, step) => warmupScheduleFactor(options, step));
    expectClose(factors, expected);
  });
});
