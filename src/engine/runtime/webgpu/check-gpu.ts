import { LlamaGymError } from "../../../core/errors.js";
import { defineKernel } from "./define-kernel.js";
import type { GpuExecutor } from "./gpu-executor.js";

const THREADS = 256;
const TOLERANCE = 1e-4;

/** Adds up exponentials across a workgroup, and reads packed 16-bit and 8-bit numbers. */
const CHECK = defineKernel(
  "check",
  THREADS,
  [
    ["half", "read", "f16"],
    ["brain", "read", "bf16"],
    ["bytes", "read", "i8"],
    ["results", "write"],
  ],
  `parts[thread] = exp(-f32(thread) / 64.0); workgroupBarrier();
   for (var step = ${THREADS / 2}u; step > 0u; step /= 2u) {
     if (thread < step) { parts[thread] += parts[thread + step]; } workgroupBarrier(); }
   if (thread == 0u) { set_results(0u, parts[0]); set_results(1u, half(1u)); set_results(2u, brain(1u));
     set_results(3u, f32(bytes(1u))); set_results(4u, tanh(0.5)); }`,
  `var<workgroup> parts: array<f32, ${THREADS}>;`,
);

/**
 * Compares arithmetic of a GPU with the processor's before it is used: drivers have faults.
 *
 * @throws DEVICE_UNAVAILABLE when a result is wrong.
 */
export async function checkGpu(executor: GpuExecutor): Promise<void> {
  const exponentials = Array.from({ length: THREADS }, (_, i) => Math.exp(-i / 64)).reduce((a, b) => a + b);
  const expected = [exponentials, -2, 3.140625, -3, Math.tanh(0.5)];
  // Second elements: -2 in float16, 3.140625 in bfloat16 and -3 in int8.
  const inputs = [0xc000_0000, 0x4049_0000, 0x0000_fd00].map((word) => executor.uploadTransient(Uint32Array.of(word)));
  const results = { buffer: executor.createBuffer(expected.length), start: 0 };
  executor.run(CHECK, [...inputs, results], [], 1);
  const [words] = await executor.read([{ ...results, words: expected.length }]);
  executor.destroyBuffer(results.buffer);
  const found = new Float32Array(words.slice().buffer);
  const wrong = expected.findIndex((value, i) => !(Math.abs(found[i] - value) <= TOLERANCE * Math.abs(value)));
  if (wrong >= 0)
    throw new LlamaGymError(
      "DEVICE_UNAVAILABLE",
      `The GPU ${executor.name} failed the self-test: result ${wrong} is ${found[wrong]}, expected ${expected[wrong]}. ` +
        "Update its driver, or use the CPU.",
    );
}
