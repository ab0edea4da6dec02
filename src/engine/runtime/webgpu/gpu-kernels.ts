import { countElements } from "../../../core/numbers.js";
import type { KernelSource } from "../../gpu/program.js";
import type { BufferView } from "../buffer-view.js";
import { checkBlock, checkSameSize, runKernel, type CpuKernelCall, type KernelResult } from "../kernels/run-kernel.js";
import { defineKernel } from "./define-kernel.js";
import type { GpuContext } from "./plan-builder.js";
import { SamplingKernels } from "./sampling-kernels.js";

const THREADS = 64;
/** Workgroups that add up a vector; the host adds up their sums in float64. */
const SUM_GROUPS = 256;
const SUM_THREADS = 256;

/** Body of a kernel with one thread per element; parameter 0 is the number of elements. */
const perElement = (code: string) => `let i = group * ${THREADS}u + thread; if (i >= $0) { return; } ${code}`;
const float = (k: number) => `bitcast<f32>($${k})`;

const KERNELS = {
  fill: defineKernel("fill", THREADS, [["x", "write"]], perElement(`set_x(i, ${float(1)});`)),
  addScaled: defineKernel(
    "addScaled",
    THREADS,
    [
      ["x", "write"],
      ["y", "read"],
    ],
    perElement(`set_x(i, x(i) + ${float(1)} * y(i));`),
  ),
  adamw: defineKernel(
    "adamw",
    THREADS,
    [
      ["p", "write"],
      ["g", "read"],
      ["m", "write"],
      ["v", "write"],
    ],
    perElement(
      `let grad = g(i) * ${float(1)}; let first = ${float(2)} * m(i) + ${float(3)} * grad;
       let second = ${float(4)} * v(i) + ${float(5)} * grad * grad; set_m(i, first); set_v(i, second);
       set_p(i, p(i) * ${float(6)} - ${float(7)} * first / (sqrt(second) * ${float(8)} + ${float(9)}));`,
    ),
  ),
  sgd: defineKernel(
    "sgd",
    THREADS,
    [
      ["p", "write"],
      ["g", "read"],
      ["m", "write"],
    ],
    perElement(
      `var change = g(i) * ${float(1)} + ${float(2)} * p(i);
       if ($5 == 1u) { change += ${float(3)} * m(i); set_m(i, change); }
       set_p(i, p(i) - ${float(4)} * change);`,
    ),
  ),
  sumSquares: defineKernel(
    "sumSquares",
    SUM_THREADS,
    [
      ["x", "read"],
      ["sums", "write"],
    ],
    `var total = 0.0;
     for (var i = group * ${SUM_THREADS}u + thread; i < $0; i += ${SUM_GROUPS * SUM_THREADS}u) { let value = x(i); total += value * value; }
     combined[thread] = total; workgroupBarrier();
     for (var step = ${SUM_THREADS / 2}u; step > 0u; step /= 2u) {
       if (thread < step) { combined[thread] += combined[thread + step]; } workgroupBarrier(); }
     if (thread == 0u) { set_sums(group, combined[0]); }`,
    `var<workgroup> combined: array<f32, ${SUM_THREADS}>;`,
  ),
  copyBlocks: defineKernel(
    "copyBlocks",
    THREADS,
    [
      ["source", "read"],
      ["copied", "write"],
      ["plan", "read", "i32"],
    ],
    `let block = group % $0; let section = group / $0;
     let a = section * $1 + u32(plan(3u * block)); let b = section * $2 + u32(plan(3u * block + 1u));
     let length = u32(plan(3u * block + 2u));
     for (var i = thread; i < length; i += ${THREADS}u) { set_copied(b + i, source(a + i)); }`,
  ),
};

const bits = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0];

/** Runs kernels outside of programs on buffers of the device. */
export class GpuKernels {
  private readonly sums;
  private readonly sampling: SamplingKernels;

  constructor(private readonly context: GpuContext) {
    this.sampling = new SamplingKernels(context);
    this.sums = { buffer: context.executor.createBuffer(SUM_GROUPS), start: 0 };
  }

  /** Runs a kernel. @throws Error when views differ in size or a block exceeds its view. */
  async run(call: CpuKernelCall): Promise<KernelResult> {
    switch (call.name) {
      case "fill":
        return this.elements(KERNELS.fill, [call.target], [bits(call.value)]);
      case "addScaled":
        checkSameSize(call.target, call.source);
        return this.elements(KERNELS.addScaled, [call.target, call.source], [bits(call.scale)]);
      case "sumSquares":
        return this.sumSquares(call.source);
      case "adamw":
        return this.adamw(call);
      case "sgd":
        return this.sgd(call);
      case "copyBlocks":
        return this.copyBlocks(call);
      case "sample":
        return this.sampling.canSample(call) ? this.sampling.sample(call) : this.runOnHost(call);
      case "gatherLogProbs":
        return this.sampling.canScore(call) ? this.sampling.score(call) : this.runOnHost(call);
    }
  }

  private locate(view: BufferView) {
    if (view.dtype !== "float32") throw new Error(`kernels require float32, got ${view.dtype}`);
    return this.context.locate(view);
  }

  private elements(kernel: KernelSource, views: readonly BufferView[], parameters: readonly number[]): undefined {
    const count = countElements(views[0].shape);
    const locations = views.map((view) => this.locate(view));
    this.context.executor.run(kernel, locations, [count, ...parameters], Math.ceil(count / THREADS));
  }

  private async sumSquares(source: BufferView): Promise<number> {
    const { executor } = this.context;
    const count = countElements(source.shape);
    if (count === 0) return 0;
    executor.run(KERNELS.sumSquares, [this.locate(source), this.sums], [count], SUM_GROUPS);
    const [words] = await executor.read([{ ...this.sums, words: SUM_GROUPS }]);
    return new Float32Array(words.slice().buffer).reduce((total, sum) => total + sum, 0);
  }

  private adamw(call: Extract<CpuKernelCall, { name: "adamw" }>): undefined {
    const { parameters, gradients, firstMoment, secondMoment } = call;
    checkSameSize(parameters, gradients, firstMoment, secondMoment);
    const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = call;
    const factors = [
      gradientScale,
      beta1,
      1 - beta1,
      beta2,
      1 - beta2,
      1 - learningRate * weightDecay,
      learningRate / (1 - beta1 ** step),
      1 / Math.sqrt(1 - beta2 ** step),
      epsilon,
    ];
    return this.elements(KERNELS.adamw, [parameters, gradients, firstMoment, secondMoment], factors.map(bits));
  }

  private sgd(call: Extract<CpuKernelCall, { name: "sgd" }>): undefined {
    const { parameters, gradients, velocity, learningRate, momentum, weightDecay, gradientScale } = call;
    checkSameSize(parameters, gradients, velocity ?? parameters);
    const factors = [gradientScale, weightDecay, momentum, learningRate].map(bits);
    const hasVelocity = velocity === undefined ? 0 : 1;
    return this.elements(KERNELS.sgd, [parameters, gradients, velocity ?? parameters], [...factors, hasVelocity]);
  }

  private copyBlocks(call: Extract<CpuKernelCall, { name: "copyBlocks" }>): undefined {
    const { source, target, sections, sourceStride, targetStride, plan } = call;
    const [sourceSize, targetSize] = [source, target].map(({ shape }) => countElements(shape));
    for (let section = 0; section < sections; section += Math.max(1, sections - 1))
      for (let i = 0; i < plan.length; i += 3)
        checkBlock(
          [section * sourceStride + plan[i], section * targetStride + plan[i + 1], plan[i + 2]],
          sourceSize,
          targetSize,
        );
    const { executor } = this.context;
    const uploaded = executor.uploadTransient(Uint32Array.from(plan));
    const blocks = plan.length / 3;
    const locations = [this.locate(source), this.locate(target), uploaded];
    executor.run(KERNELS.copyBlocks, locations, [blocks, sourceStride, targetStride], blocks * sections);
  }

  /** Runs a kernel on the processor, on copies of what it reads. */
  private async runOnHost(call: CpuKernelCall): Promise<KernelResult> {
    const views = Object.values(call).filter(
      (value): value is BufferView =>
        typeof value === "object" && value !== null && "buffer" in value && "dtype" in value,
    );
    const words = await this.context.executor.read(
      views.map((view) => ({ ...this.locate(view), words: countElements(view.shape) })),
    );
    const copies = views.map((view, i) => {
      const own = words[i];
      return { view, data: new Float32Array(own.buffer, own.byteOffset, own.length) };
    });
    return runKernel(call, (part) => {
      const size = countElements(part.shape);
      const { view, data } = copies.find(
        (each) =>
          each.view.buffer === part.buffer &&
          each.view.offset <= part.offset &&
          part.offset + size <= each.view.offset + each.data.length,
      )!;
      return data.subarray(part.offset - view.offset, part.offset - view.offset + size);
    });
  }
}
