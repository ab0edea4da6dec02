import { defineSettings, boolean, integer } from "../../../core/settings.js";
import { EMBEDDED_MODEL, modelSettings } from "../../../models/index.js";
import { describeGpu } from "../describe-gpu.js";
import { measureDevice, type DeviceMeasurement } from "../measure-device.js";
import { openModel } from "../open-model.js";
import type { ChosenDevice } from "../../../engine/runtime/index.js";
import { defineCommand } from "../options/define-command.js";
import { UsageError } from "../options/usage-error.js";

/** Devices by the names that the command takes. */
const DEVICES: Readonly<Record<string, ChosenDevice>> = { cpu: "cpu", gpu: "webgpu" };

export const benchCommand = defineCommand({
  name: "bench",
  description:
    "Measures a device: matrix products, decoding of 1 and 32 rows, and a LoRA step of 1,024 tokens. Run it for gpu and for cpu to choose one for a model.",
  examples: [
    { description: "What the GPU does with the embedded model", args: "bench gpu" },
    { description: "As JSON, to share", args: "bench gpu -m SmolLM2-135M-Instruct.Q4_1.gguf --json" },
  ],
  positionals: [{ name: "DEVICE", description: "gpu or cpu.", required: true }],
  options: defineSettings({
    model: { ...modelSettings.model, default: EMBEDDED_MODEL, description: "Model that is measured." },
    threads: modelSettings.threads,
    quantize: modelSettings.quantize,
    matrixSize: integer({ default: 1024, min: 16, max: 8192, description: "Rows and columns of the matrices." }),
    json: boolean({ description: "Print one JSON object." }),
  }),
  run: async ({ model: path = EMBEDDED_MODEL, matrixSize = 1024, json = false, ...options }, reporter, [name]) => {
    const device = DEVICES[name];
    if (device === undefined) throw new UsageError(`Unknown device "${name}". Expected gpu or cpu.`);
    const model = await openModel(path, { ...options, device }, reporter);
    const results: DeviceMeasurement[] = [];
    try {
      const { runtime } = model.causalLM;
      const gpu = device === "webgpu" ? await runtime.getGpuReport() : undefined;
      if (!json) reporter.print(gpu === undefined ? `Device: ${device}` : `Device: ${describeGpu(gpu)}`);
      await measureDevice(model.causalLM, {
        matrixSize,
        onResult: (result) => {
          results.push(result);
          if (!json) reporter.print(`${result.name}: ${result.rate} ${result.unit}`);
        },
      });
      const { adapter, features, maxBufferBytes } = gpu ?? {};
      if (json) reporter.print(JSON.stringify({ device, adapter, features, maxBufferBytes, model: path, results }));
      return 0;
    } finally {
      await model.close();
    }
  },
});
