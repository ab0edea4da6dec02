import { afterAll, describe, expect, it } from "vitest";
import { subview, type BufferView } from "../buffer-view.js";
import { Runtime } from "../runtime.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

async function stored(values: readonly number[]): Promise<BufferView> {
  const view = runtime.allocate("float32", [values.length]);
  await runtime.write(view, Float32Array.from(values));
  return view;
}

const read = async (view: BufferView): Promise<number[]> => Array.from((await runtime.read(view)).data as Float32Array);
const near = (values: readonly number[]): unknown[] => values.map((value) => expect.closeTo(value, 6) as unknown);

/**
 * PyTorch 2.13 in float64: parameters and gradients of three steps, with what came out after each.
 */
const PARAMETERS = [0.5, -1.25, 2.0, 0.0, -0.001];
const GRADIENTS = [
  [0.1, -0.2, 0.3, 0.0, 1e-6],
  [-0.4, 0.05, 0.3, 1e-3, 2e-6],
  [0.25, -0.6, -0.9, -1e-3, -4e-6],
];

describe("adamw", () => {
  it.each([
    {
      settings: { learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1, gradientScale: 1 },
      expected: [
        [0.489500001, -1.238750001, 1.988, 0.0, -0.0108999901],
        [0.4945445186, -1.232763592, 1.976012001, -0.007349497393, -0.02040919625],
        [0.4944322513, -1.224451987, 1.97647643, -0.006895853968, -0.01849191583],
      ],
      first: [-0.0029, -0.0717, -0.0387, -0.00001, -1.39e-7],
      second: [0.01117625, 0.01992375, 0.04883625, 9.75e-8, 1.035e-12],
    },
    {
      settings: { learningRate: 3e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-6, weightDecay: 0, gradientScale: 0.5 },
      expected: [
        [0.499700006, -1.249700003, 1.999700002, 0.0, -0.0011],
        [0.4998678559, -1.249559164, 1.999400004, -0.0002226115639, -0.001227854412],
        [0.4998793864, -1.249342557, 1.999474554, -0.0002090900046, -0.001194739589],
      ],
      first: [-0.00145, -0.03585, -0.01935, -0.000005, -6.95e-8],
      second: [5.808e-5, 1.00604e-4, 2.47433e-4, 5e-10, 5.2e-15],
    },
  ])("takes PyTorch's steps at learning rate $settings.learningRate", async ({ settings, expected, first, second }) => {
    const parameters = await stored(PARAMETERS);
    const moments = [await stored([0, 0, 0, 0, 0]), await stored([0, 0, 0, 0, 0])];
    const gradients = await stored([0, 0, 0, 0, 0]);
    for (const [i, values] of GRADIENTS.entries()) {
      await runtime.write(gradients, Float32Array.from(values));
      await runtime.kernel({
        name: "adamw",
        parameters,
        gradients,
        firstMoment: moments[0],
        secondMoment: moments[1],
        ...settings,
        step: i + 1,
      });
      expect(await read(parameters)).toEqual(near(expected[i]));
    }
    expect(await read(moments[0])).toEqual(near(first));
    expect(await read(moments[1])).toEqual(near(second));
  });
});

describe("sgd", () => {
  it("matches PyTorch with momentum and weight decay", async () => {
    const [parameters, gradients, velocity] = [
      await stored(PARAMETERS),
      await stored([0, 0, 0, 0, 0]),
      await stored([0, 0, 0, 0, 0]),
    ];
    const expected = [
      [0.4895, -1.22875, 1.968, 0.0, -0.0009991],
      [0.5195605, -1.21339625, 1.907232, -0.0001, -0.0009974909],
      [0.5210953895, -1.138364479, 1.940633568, -8.99e-5, -0.0009946452191],
    ];
    for (const [i, values] of GRADIENTS.entries()) {
      await runtime.write(gradients, Float32Array.from(values));
      const settings = { learningRate: 0.1, momentum: 0.9, weightDecay: 0.01, gradientScale: 1 };
      await runtime.kernel({ name: "sgd", parameters, gradients, velocity, ...settings });
      expect(await read(parameters)).toEqual(near(expected[i]));
    }
    expect(await read(velocity)).toEqual(near([-0.015348895, -0.7503177125, -0.33401568, -0.000101, -2.8456809e-5]));
  });

  it("applies plain SGD steps to the scaled gradient without a velocity", async () => {
    const [parameters, gradients] = [await stored(PARAMETERS), await stored([0, 0, 0, 0, 0])];
    for (const values of GRADIENTS) {
      await runtime.write(gradients, Float32Array.from(values));
      const settings = { learningRate: 0.1, momentum: 0, weightDecay: 0, gradientScale: 0.25 };
      await runtime.kernel({ name: "sgd", parameters, gradients, velocity: undefined, ...settings });
    }
    expect(await read(parameters)).toEqual(near([0.50125, -1.23125, 2.0075, 0, -0.000999975]));
  });
});

describe("vectors", () => {
  it("are filled, added and summed, also in part of a buffer", async () => {
    const [target, source] = [await stored([1, 2, 3, 4, 5]), await stored([10, -20, 30])];
    await runtime.kernel({ name: "addScaled", target: subview(target, 1, [3]), source, scale: 0.5 });
    expect(await read(target)).toEqual([1, 7, -7, 19, 5]);
    expect(await runtime.kernel({ name: "sumSquares", source: subview(target, 1, [2]) })).toBe(98);
    await runtime.kernel({ name: "fill", target: subview(target, 3, [2]), value: -1 });
    expect(await read(target)).toEqual([1, 7, -7, -1, -1]);
    expect(await runtime.kernel({ name: "sumSquares", source: subview(target, 0, [0]) })).toBe(0);
  });

  it("sum squares in float64 and propagate non-finite values", async () => {
    const many = runtime.allocate("float32", [100_000]);
    await runtime.kernel({ name: "fill", target: many, value: 0.1 });
    expect(await runtime.kernel({ name: "sumSquares", source: many })).toBeCloseTo(1e5 * Math.fround(0.1) ** 2, 8);
    for (const bad of [NaN, Infinity, -Infinity]) {
      const result = await runtime.kernel({ name: "sumSquares", source: await stored([1, bad, 2]) });
      expect(Number.isFinite(result)).toBe(false);
    }
  });
});

describe("copyBlocks", () => {
  it("copies blocks by plan in every section", async () => {
    const source = await stored([1, 2, 3, 4, 5, 6, 7, 8]);
    const target = await stored([0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const strides = { sections: 2, sourceStride: 4, targetStride: 5 };
    // Elements 1 and 2 to 0 and 1, element 3 to 4.
    const plan = Int32Array.of(1, 0, 2, 3, 4, 1);
    await runtime.kernel({ name: "copyBlocks", source, target, ...strides, plan });
    expect(await read(target)).toEqual([2, 3, 0, 0, 4, 6, 7, 0, 0, 8]);
  });

  it("copies short and long blocks", async () => {
    for (const length of [1, 128, 129, 1000]) {
      const source = await stored(Array.from({ length: 1001 }, (_, i) => i));
      const target = await stored(Array.from({ length: 1003 }, () => -1));
      const plan = Int32Array.of(1, 2, length);
      const strides = { sections: 1, sourceStride: 0, targetStride: 0 };
      await runtime.kernel({ name: "copyBlocks", source, target, ...strides, plan });
      const expected = Array.from({ length: 1003 }, (_, i) => (i >= 2 && i < 2 + length ? i - 1 : -1));
      expect(await read(target)).toEqual(expected);
      [source, target].forEach((view) => runtime.free(view));
    }
  });

  it("rejects a block out of bounds", async () => {
    const [source, target] = [await stored([1, 2, 3]), await stored([0, 0, 0])];
    for (const plan of [
      [2, 0, 2],
      [0, 2, 2],
      [-1, 0, 1],
      [0, -1, 1],
      [0, 0, 1000],
    ]) {
      const call = { sections: 1, sourceStride: 3, targetStride: 3, plan: Int32Array.from(plan) };
      await expect(runtime.kernel({ name: "copyBlocks", source, target, ...call })).rejects.toThrow("out of bounds");
    }
    const twice = { sections: 2, sourceStride: 3, targetStride: 0, plan: Int32Array.of(0, 0, 1) };
    await expect(runtime.kernel({ name: "copyBlocks", source, target, ...twice })).rejects.toThrow("out of bounds");
  });
});

describe("kernels", () => {
  it("reject vectors of different lengths or other types", async () => {
    const [long, short] = [await stored([1, 2, 3]), await stored([1, 2])];
    const settings = { learningRate: 1, momentum: 0, weightDecay: 0, gradientScale: 1 };
    const adam = { ...settings, beta1: 0.9, beta2: 0.9, epsilon: 1, step: 1 };
    for (const call of [
      { name: "addScaled", target: long, source: short, scale: 1 },
      { name: "sgd", parameters: long, gradients: short, velocity: undefined, ...settings },
      { name: "sgd", parameters: long, gradients: long, velocity: short, ...settings },
      { name: "adamw", parameters: long, gradients: long, firstMoment: short, secondMoment: long, ...adam },
    ] as const) {
      await expect(runtime.kernel(call)).rejects.toThrow("3 and 2 elements");
    }
    const integers = runtime.allocate("int32", [2]);
    await expect(runtime.kernel({ name: "fill", target: integers, value: 1 })).rejects.toThrow(
      "require float32, got int32",
    );
    expect(await read(long)).toEqual([1, 2, 3]);
  });
});
