import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Reporter, type ParityOptions } from "./report.js";

type RunPart = (directory: string, report: Reporter, options: ParityOptions) => Promise<void>;

interface Part {
  /** The fixtures' folder. */
  readonly folder: string;
  /** Loads what compares it; undefined where nothing does yet. Each takes what its `from` says. */
  readonly load?: () => Promise<RunPart>;
  /** Whether the module is given the part's own folder (the default) or the one above. */
  readonly from?: "own folder" | "folder above";
}

/** Every part of the fixtures; a new one is a module here beside and a line. */
const parts: readonly Part[] = [
  { folder: "models", load: async () => (await import("./models.js")).runModelsParity },
  { folder: "models", load: async () => (await import("./chat.js")).runTokenizerParity },
  { folder: "sampling", load: async () => (await import("./sampling.js")).runSamplingParity },
  { folder: "chat", load: async () => (await import("./chat.js")).runChatParity },
  { folder: "rl", load: async () => (await import("./rl.js")).runRlParity },
  { folder: "gym", load: async () => (await import("./gym.js")).runGymParity },
  { folder: "textworld", load: async () => (await import("./textworld.js")).runTextWorldParity, from: "folder above" },
];

const USAGE = "Usage: npm run parity -- DIR [--model PATH]";

async function main(): Promise<number> {
  const { directory, model } = readArguments();
  if (directory === undefined) return 1;
  const report = new Reporter();
  for (const { folder, load, from = "own folder" } of parts) {
    const own = join(directory, folder);
    if (!existsSync(own)) report.skip(folder, `there is no ${own}`);
    else if (load === undefined) report.skip(folder, "not supported yet");
    else await attempt(report, folder, load, from === "own folder" ? own : directory, { model });
  }
  console.log(`${report.passed} passed, ${report.failed} failed`);
  return report.failed > 0 || report.passed === 0 ? 1 : 0;
}

/** A part that breaks is one failure; the others go on. */
async function attempt(
  report: Reporter,
  name: string,
  load: () => Promise<RunPart>,
  directory: string,
  options: ParityOptions,
): Promise<void> {
  const before = report.passed + report.failed;
  try {
    await (
      await load()
    )(directory, report, options);
    if (report.passed + report.failed === before) report.skip(name, "no case ran");
  } catch (error) {
    report.error(name, error);
  }
}

function readArguments(): { directory?: string; model?: string } {
  const complain = (message: string) => {
    console.error(`${message}\n${USAGE}`);
    return {};
  };
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { model: { type: "string" } } });
    const [directory, ...others] = positionals;
    if (directory === undefined || others.length > 0) return complain("Give the folder that holds the fixtures.");
    if (!existsSync(directory) || !statSync(directory).isDirectory())
      return complain(`There is no folder ${directory}. Give the folder that holds models/, chat/, gym/ and so on.`);
    if (values.model !== undefined && !existsSync(values.model))
      return complain(`There is no model at ${values.model}.`);
    return { directory, model: values.model };
  } catch (error) {
    return complain((error as Error).message);
  }
}

process.exitCode = await main();
