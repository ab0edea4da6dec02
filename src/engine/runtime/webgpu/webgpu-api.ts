/**
 * The part of the WebGPU API that this engine uses, of browsers and of npm's webgpu. The names
 * follow the specification.
 */

export interface GPUBuffer {
  mapAsync(mode: number, offset: number, size: number): Promise<void>;
  getMappedRange(offset: number, size: number): ArrayBuffer;
  unmap(): void;
  destroy(): void;
}

/** Objects without methods; brands keep them apart. */
export interface GPUBindGroupLayout {
  readonly __brand: "GPUBindGroupLayout";
}

export interface GPUBindGroup {
  readonly __brand: "GPUBindGroup";
}

export interface GPUComputePipeline {
  readonly __brand: "GPUComputePipeline";
}

export interface GPUComputePassEncoder {
  setPipeline(pipeline: GPUComputePipeline): void;
  setBindGroup(index: number, group: GPUBindGroup, dynamicOffsets: readonly number[]): void;
  dispatchWorkgroups(x: number, y: number): void;
  end(): void;
}

export interface GPUCommandEncoder {
  beginComputePass(): GPUComputePassEncoder;
  copyBufferToBuffer(
    source: GPUBuffer,
    sourceOffset: number,
    target: GPUBuffer,
    targetOffset: number,
    size: number,
  ): void;
  finish(): object;
}

interface BindGroupLayoutEntry {
  readonly binding: number;
  readonly visibility: number;
  readonly buffer: {
    readonly type: "uniform" | "storage" | "read-only-storage";
    readonly hasDynamicOffset?: boolean;
  };
}

interface BindGroupEntry {
  readonly binding: number;
  readonly resource: { readonly buffer: GPUBuffer; readonly size?: number };
}

interface ComputePipelineOptions {
  readonly layout: object;
  readonly compute: { readonly module: object; readonly entryPoint: string };
}

/** An error that no call has reported. */
interface UncapturedErrorEvent {
  readonly error: { readonly message: string };
  preventDefault(): void;
}

export type GPULimits = Readonly<
  Record<
    | "maxBufferSize"
    | "maxStorageBufferBindingSize"
    | "maxStorageBuffersPerShaderStage"
    | "maxComputeWorkgroupStorageSize"
    | "maxComputeInvocationsPerWorkgroup",
    number
  >
>;

export interface GPUDevice {
  readonly limits: GPULimits;
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;
  readonly queue: {
    writeBuffer(buffer: GPUBuffer, offset: number, data: Uint32Array<ArrayBuffer>): void;
    submit(commands: readonly object[]): void;
  };
  addEventListener(name: "uncapturederror", listener: (event: UncapturedErrorEvent) => void): void;
  createBuffer(options: { readonly size: number; readonly usage: number }): GPUBuffer;
  createBindGroup(options: {
    readonly layout: GPUBindGroupLayout;
    readonly entries: readonly BindGroupEntry[];
  }): GPUBindGroup;
  createBindGroupLayout(options: { readonly entries: readonly BindGroupLayoutEntry[] }): GPUBindGroupLayout;
  createPipelineLayout(options: { readonly bindGroupLayouts: readonly GPUBindGroupLayout[] }): object;
  createShaderModule(options: { readonly code: string }): object;
  createComputePipeline(options: ComputePipelineOptions): GPUComputePipeline;
  createComputePipelineAsync(options: ComputePipelineOptions): Promise<GPUComputePipeline>;
  createCommandEncoder(): GPUCommandEncoder;
  destroy(): void;
}

interface GPUAdapter {
  readonly features: Iterable<string>;
  readonly limits: GPULimits;
  readonly info: { readonly vendor: string; readonly architecture: string; readonly description: string };
  requestDevice(options: { readonly requiredLimits: Partial<GPULimits> }): Promise<GPUDevice>;
}

export interface GPU {
  requestAdapter(options: { readonly powerPreference: "high-performance" }): Promise<GPUAdapter | null>;
}
