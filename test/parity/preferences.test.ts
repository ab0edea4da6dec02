import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ParityReport } from "./parity-report.js";
import { runPreferenceParity } from "./preferences.js";

it("losses, gradients, metrics and tokens of TRL's DPOTrainer and KTOTrainer are reproduced, every case", async () => {
  const lines: string[] = [];
  const report = new ParityReport((line) => lines.push(line));
  await runPreferenceParity(fileURLToPath(new URL("../fixtures/preferences/", import.meta.url)), report, {});
  expect(lines.filter((line) => !line.startsWith("ok"))).toEqual([]);
  expect(report.passed).toBe(7 + 3 * 24);
}, 120_000);
