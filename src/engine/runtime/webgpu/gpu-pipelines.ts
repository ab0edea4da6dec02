import type { KernelSource } from "../../gpu/program.js";
import { assembleShader, countParameterWords, type BindingPattern } from "./assemble-shader.js";
import type { GpuCounters } from "./gpu-counters.js";
import type { GPUBindGroup, GPUBindGroupLayout, GPUBuffer, GPUComputePipeline, GPUDevice } from "./webgpu-api.js";

/** A buffer on the device with an identity by which bind groups are found. */
export interface DeviceBuffer {
  readonly id: number;
  readonly buffer: GPUBuffer;
  /** Size in words. */
  readonly words: number;
  /** Further buffers of a weight that is larger than one; all but the last have `pieceWords`. */
  readonly rest?: readonly DeviceBuffer[];
}

/** A kernel of a dispatch with the buffers of its operands and the number of its workgroups. */
export interface BoundPart {
  readonly kernel: KernelSource;
  readonly buffers: readonly DeviceBuffer[];
  readonly groups: number;
}

interface Pipeline {
  readonly id: number;
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** One dispatch, ready to be encoded. */
export interface PreparedDispatch {
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly parameterOffset: number;
  readonly groups: readonly [number, number];
}

const MAX_GROUPS = 65_535;

/** The pipelines of a device by their kernels, and their bind groups by the buffers. */
export class GpuPipelines {
  private readonly pipelines = new Map<string, Pipeline>();
  private readonly kernelKeys = new Map<string, number>();
  private readonly groups = new Map<string, GPUBindGroup>();
  private readonly layouts = new Map<string, GPUBindGroupLayout>();

  constructor(
    private readonly device: GPUDevice,
    /** Words of a buffer of a weight that is larger than one. */
    private readonly pieceWords: number,
    private readonly counters: GpuCounters,
  ) {}

  /** Prepares a dispatch of one or several parts. */
  prepare(parts: readonly BoundPart[], uniform: DeviceBuffer, parameterOffset: number): PreparedDispatch {
    const kernels = parts.map(({ kernel }) => kernel);
    const { pattern, buffers } = bindOperands(parts);
    const { id, pipeline, layout } = this.getPipeline(kernels, pattern);
    const key = `${id}:${uniform.id},${buffers.map((buffer) => buffer.id).join()}`;
    const group =
      this.groups.get(key) ??
      this.device.createBindGroup({
        layout,
        entries: [
          { binding: 0, resource: { buffer: uniform.buffer, size: Math.ceil(countParameterWords(kernels) / 4) * 16 } },
          ...buffers.map(({ buffer }, slot) => ({ binding: slot + 1, resource: { buffer } })),
        ],
      });
    this.groups.set(key, group);
    const count = parts.reduce((sum, { groups }) => sum + groups, 0);
    const x = Math.min(count, MAX_GROUPS);
    return { pipeline, group, parameterOffset, groups: [x, Math.ceil(count / x)] };
  }

  /**
   * Compiles what dispatches need and is not compiled yet, in parallel: drivers take up to a second
   * for a kernel, and a training step has about a hundred.
   */
  async compile(dispatches: readonly (readonly BoundPart[])[]): Promise<void> {
    const missing = new Map<string, () => Promise<Pipeline>>();
    for (const parts of dispatches) {
      const kernels = parts.map(({ kernel }) => kernel);
      const { pattern } = bindOperands(parts);
      const key = this.pipelineKey(kernels, pattern);
      if (this.pipelines.has(key)) continue;
      missing.set(key, async () => {
        const layout = this.getLayout(pattern.written);
        const pipeline = await this.device.createComputePipelineAsync(this.describe(kernels, pattern, layout));
        return this.keep(key, pipeline, layout);
      });
    }
    await Promise.all([...missing.values()].map((create) => create()));
  }

  /** Forgets the bind groups of buffers that are destroyed, by their ids. */
  forget(buffers: ReadonlySet<number>): void {
    for (const key of this.groups.keys())
      if (
        key
          .slice(key.indexOf(":") + 1)
          .split(",")
          .some((id) => buffers.has(Number(id)))
      )
        this.groups.delete(key);
  }

  private getPipeline(kernels: readonly KernelSource[], pattern: BindingPattern): Pipeline {
    const key = this.pipelineKey(kernels, pattern);
    const known = this.pipelines.get(key);
    if (known !== undefined) return known;
    const layout = this.getLayout(pattern.written);
    return this.keep(key, this.device.createComputePipeline(this.describe(kernels, pattern, layout)), layout);
  }

  private pipelineKey(kernels: readonly KernelSource[], { slots, written }: BindingPattern): string {
    const kernelKey = kernels.map((kernel) => kernelIdentity(kernel, this.kernelKeys)).join();
    return `${kernelKey}|${slots.join("; ")}|${written.map(Number).join()}`;
  }

  private describe(kernels: readonly KernelSource[], pattern: BindingPattern, layout: GPUBindGroupLayout) {
    const module = this.device.createShaderModule({ code: assembleShader(kernels, pattern, this.pieceWords) });
    return {
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: "main" },
    };
  }

  private keep(key: string, pipeline: GPUComputePipeline, layout: GPUBindGroupLayout): Pipeline {
    const created = { id: this.pipelines.size, pipeline, layout };
    this.pipelines.set(key, created);
    this.counters.pipelines++;
    return created;
  }

  private getLayout(written: readonly boolean[]): GPUBindGroupLayout {
    const key = written.map(Number).join();
    const known = this.layouts.get(key);
    if (known !== undefined) return known;
    const COMPUTE = 4;
    const layout = this.device.createBindGroupLayout({
      entries: [
        { binding: 0, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true } },
        ...written.map((isWritten, slot) => ({
          binding: slot + 1,
          visibility: COMPUTE,
          buffer: { type: isWritten ? ("storage" as const) : ("read-only-storage" as const) },
        })),
      ],
    });
    this.layouts.set(key, layout);
    return layout;
  }
}

/** Returns the buffers of an operand: several for a weight that is larger than one. */
export function listBuffers(operand: DeviceBuffer): readonly DeviceBuffer[] {
  return operand.rest === undefined ? [operand] : [operand, ...operand.rest];
}

const identities = new WeakMap<KernelSource, number>();

/** Returns a number that is equal for equal kernels. */
function kernelIdentity(kernel: KernelSource, keys: Map<string, number>): number {
  const known = identities.get(kernel);
  if (known !== undefined) return known;
  const key = JSON.stringify(kernel);
  const identity = keys.get(key) ?? keys.size;
  keys.set(key, identity);
  identities.set(kernel, identity);
  return identity;
}

/**
 * Binds each buffer once: WebGPU allows no buffer to be both read and written through two bindings.
 */
function bindOperands(parts: readonly BoundPart[]): { pattern: BindingPattern; buffers: DeviceBuffer[] } {
  const slotOf = new Map<number, number>();
  const written: boolean[] = [];
  const bound: DeviceBuffer[] = [];
  const slots = parts.map(({ kernel, buffers }) =>
    buffers.map((operand, i) =>
      listBuffers(operand).map((buffer) => {
        const slot = slotOf.get(buffer.id) ?? bound.push(buffer) - 1;
        slotOf.set(buffer.id, slot);
        written[slot] = (written[slot] ?? false) || kernel.operands[i].isWritten;
        return slot;
      }),
    ),
  );
  return { pattern: { slots, written }, buffers: bound };
}
